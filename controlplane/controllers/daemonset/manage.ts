// What a daemon set's pods on each node should be: one where one belongs, none elsewhere, and no finished ones. Pure.

import type { Node, Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import type { DaemonSet } from '../shared/objects.ts';
import { availableInMs, isReady } from '../shared/pods.ts';
import { REVISION_HASH } from '../shared/revisions.ts';
import { scaledValue } from '../shared/scaled-value.ts';
import { placementOn, targetNode } from './placement.ts';

/** Pods by the name of their node. */
export type PodsByNode = ReadonlyMap<string, readonly Pod[]>;

export interface Facts {
  readonly set: DaemonSet;
  readonly nodes: readonly Node[];
  readonly pods: PodsByNode;
  /** Of the set's template. */
  readonly hash: string;
  readonly now: EpochMs;
}

export interface Changes {
  /** Names of nodes that get a pod. */
  readonly create: readonly string[];
  readonly remove: readonly Pod[];
}

/** A pod that has ended, which goes so that another is made. */
export interface Finished {
  readonly node: string;
  readonly pod: Pod;
  readonly kind: 'failed' | 'succeeded';
}

export interface Managed extends Changes {
  /** They are in `remove`. */
  readonly finished: readonly Finished[];
  /** Nodes on which a failed pod stays for now. */
  readonly delayed: readonly string[];
}

export const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
export const isAvailable = (pod: Pod, { set, now }: Pick<Facts, 'set' | 'now'>): boolean =>
  availableInMs(pod, set.spec.minReadySeconds ?? 0, now) === 0;

/** Pods that have ended and are being deleted hold up nothing: they are left out. */
export function podsByNode(pods: readonly Pod[]): PodsByNode {
  const byNode = new Map<string, Pod[]>();
  for (const pod of pods) {
    const ended = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
    const node = targetNode(pod);
    if (node === undefined || (ended && isTerminating(pod))) continue;
    const there = byNode.get(node) ?? [];
    there.push(pod);
    byNode.set(node, there);
  }
  return byNode;
}

/** Bound pods first, of those the oldest. */
export function byAge(pods: readonly Pod[]): readonly Pod[] {
  const age = ({ metadata }: Pod): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  const unbound = ({ spec }: Pod): number => ((spec.nodeName ?? '') === '' ? 1 : 0);
  return pods.toSorted((a, b) => unbound(a) - unbound(b) || (age(a) < age(b) ? -1 : 1));
}

/** Nodes that may have two pods at a time, of `total` that have any. */
export function maxSurge({ spec }: DaemonSet, total: number): number {
  const { type, rollingUpdate } = spec.updateStrategy ?? {};
  return type === 'RollingUpdate' ? scaledValue(rollingUpdate?.maxSurge ?? 0, total, Math.ceil) : 0;
}

/** `inBackoff`: whether a failed pod on this node has been replaced a short time ago. */
export function manage(facts: Facts, inBackoff: (node: string) => boolean): Managed {
  const create: string[] = [];
  const remove: Pod[] = [];
  const finished: Finished[] = [];
  const delayed: string[] = [];
  for (const node of facts.nodes) {
    const one = manageNode(facts, node, inBackoff);
    create.push(...one.create);
    remove.push(...one.remove);
    finished.push(...one.finished);
    delayed.push(...one.delayed);
  }
  const known = new Set(facts.nodes.map(({ metadata }) => metadata.name));
  for (const [node, pods] of facts.pods) {
    // Nothing else deletes a pod that waits for a node that is gone.
    const waiting = (pod: Pod): boolean => (pod.spec.nodeName ?? '') === '' && !isTerminating(pod);
    if (!known.has(node)) remove.push(...pods.filter(waiting));
  }
  return { create, remove, finished, delayed };
}

function manageNode(facts: Facts, node: Node, inBackoff: (node: string) => boolean): Managed {
  const { set } = facts;
  const { name } = node.metadata;
  const { run, stay } = placementOn(set, node);
  const there = facts.pods.get(name) ?? [];
  const result = (create: boolean, remove: readonly Pod[], finished: readonly Finished[] = [], delayed = false) => ({
    create: create ? [name] : [],
    remove,
    finished,
    delayed: delayed ? [name] : [],
  });
  if (run && there.length === 0) return result(true, []);
  const present = there.filter((pod) => !isTerminating(pod));
  if (!stay) return result(false, present);
  const failed = present.filter(({ status }) => status?.phase === 'Failed');
  const succeeded = present.filter(({ status }) => status?.phase === 'Succeeded');
  const delayed = failed.length > 1 || (failed.length > 0 && inBackoff(name));
  const finished: readonly Finished[] = [
    ...(inBackoff(name) ? [] : failed.slice(0, 1).map((pod) => ({ node: name, pod, kind: 'failed' as const }))),
    ...succeeded.map((pod) => ({ node: name, pod, kind: 'succeeded' as const })),
  ];
  const running = byAge(present.filter((pod) => !failed.includes(pod) && !succeeded.includes(pod)));
  const ended = finished.map(({ pod }) => pod);
  if (maxSurge(set, 1) === 0) return result(false, [...ended, ...running.slice(1)], finished, delayed);
  if (running.length === 0) return result(run, ended, finished, delayed);
  return result(false, [...ended, ...surplusWithSurge(facts, running)], finished, delayed);
}

/** Two pods may be there while the new one is not available and the old one serves. */
function surplusWithSurge(facts: Facts, running: readonly Pod[]): readonly Pod[] {
  if (running.length <= 1) return [];
  const isNew = ({ metadata }: Pod): boolean => metadata.labels?.[REVISION_HASH] === facts.hash;
  const current = running.find(isNew);
  const old = running.find((pod) => !isNew(pod));
  const surplus = running.filter((pod) => pod !== current && pod !== old);
  if (current === undefined || old === undefined) return surplus;
  return isReady(old) && !isAvailable(current, facts) ? surplus : [...surplus, old];
}
