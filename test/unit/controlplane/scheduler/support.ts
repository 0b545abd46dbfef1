// Nodes and pods for tests of the scheduler, and plugins run on them as a profile does.

import type { Node, Pod } from '../../../../client/types.ts';
import { SchedulerCache } from '../../../../controlplane/scheduler/cache/cache.ts';
import { podInfo } from '../../../../controlplane/scheduler/cache/pod-info.ts';
import { CycleState } from '../../../../controlplane/scheduler/framework/cycle-state.ts';
import type { Plugin } from '../../../../controlplane/scheduler/framework/plugin.ts';
import { AssumedStorage } from '../../../../controlplane/scheduler/storage-assumptions.ts';
import type { StorageView } from '../../../../controlplane/scheduler/volumes.ts';

type Labels = Record<string, string>;

export function pod(name: string, spec: Partial<Pod['spec']> = {}, labels: Labels = {}, more: Partial<Pod> = {}): Pod {
  return {
    metadata: { name, namespace: 'demo', uid: `uid-${name}`, resourceVersion: '1', labels },
    spec: { containers: [{ name: 'c' }], ...spec },
    ...more,
  };
}

export interface NodeParts {
  readonly labels?: Labels;
  readonly spec?: NonNullable<Node['spec']>;
  readonly allocatable?: Record<string, string>;
  readonly images?: { names: string[]; sizeBytes: number }[];
}

/** 4 cores, 8 Gi, 110 pods. */
export function node(name: string, { labels = {}, spec = {}, allocatable = {}, images = [] }: NodeParts = {}): Node {
  return {
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: { 'kubernetes.io/hostname': name, ...labels },
    },
    spec,
    status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...allocatable }, images },
  };
}

export const requests = (amounts: Record<string, string>): Partial<Pod['spec']> => ({
  containers: [{ name: 'c', resources: { requests: amounts } }],
});

/** The pod on the node. */
export const on = (nodeName: string, placed: Pod): Pod => ({ ...placed, spec: { ...placed.spec, nodeName } });

export const inZone = (zone: string): Labels => ({ 'topology.kubernetes.io/zone': zone });

export function cluster(
  nodes: readonly Node[],
  pods: readonly Pod[] = [],
  namespaces: Readonly<Record<string, Labels>> = {},
): SchedulerCache {
  const labels = new Map(Object.entries(namespaces));
  const cache = new SchedulerCache((name) => labels.get(name) ?? {});
  for (const one of nodes) cache.setNode(one);
  for (const one of pods) cache.setPod(one);
  return cache;
}

/** For each node, in the order of their names, why it is not for the pod: "a: reason (code)", or that it is: "a". */
export function filtered(plugin: Plugin, incoming: Pod, cache: SchedulerCache): readonly string[] {
  const [state, info] = [new CycleState(), podInfo(incoming)];
  const result = plugin.preFilter?.(state, info, cache);
  const nodes = [...cache.nodes].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (result?.kind === 'skip') return nodes.map(({ name }) => name);
  if (result?.kind === 'reject') return [`${result.rejection.reasons.join(', ')} (${result.rejection.code})`];
  return nodes.map((each) => {
    const rejection = plugin.filter?.(state, info, each);
    return rejection === undefined ? each.name : `${each.name}: ${rejection.reasons.join(', ')} (${rejection.code})`;
  });
}

/** For each node, in the order of their names, the plugin's score, normalised; undefined where the plugin does not score. */
export function scored(
  plugin: Plugin,
  incoming: Pod,
  cache: SchedulerCache,
): Readonly<Record<string, number>> | undefined {
  const [state, info] = [new CycleState(), podInfo(incoming)];
  const nodes = [...cache.nodes].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (plugin.preScore?.(state, info, cache, nodes) === 'skip') return undefined;
  const scores = nodes.map((each) => plugin.score?.(state, info, each) ?? 0);
  plugin.normalizeScores?.(state, info, scores, nodes);
  return Object.fromEntries(nodes.map(({ name }, index) => [name, scores[index] ?? 0]));
}

/** A storage view of nothing. */
export function noStorage(more: Partial<StorageView> = {}): AssumedStorage {
  return new AssumedStorage({
    claim: () => undefined,
    volume: () => undefined,
    volumes: () => [],
    storageClass: () => undefined,
    csiDriver: () => undefined,
    csiNode: () => undefined,
    capacities: () => [],
    ...more,
  });
}
