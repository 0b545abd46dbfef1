// How fast nodes of a failure zone may lose their pods: by how many nodes of the zone, and of the cluster, are not ready. Pure.
// Upstream's handleDisruption (pkg/controller/nodelifecycle): when no node of the whole cluster is ready it is more likely the control
// plane that is cut off than all nodes, and no pod is evicted.

import type { Node } from '../../../client/types.ts';
import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';

/** kube-controller-manager's flags of these names. */
export interface EvictionSettings {
  /** Nodes a second, in each zone. */
  readonly nodeEvictionRate: number;
  /** Nodes a second in a large zone that is partially disrupted; a small one has none. */
  readonly secondaryNodeEvictionRate: number;
  /** The part of a zone's nodes that are not ready from which on it is partially disrupted. */
  readonly unhealthyZoneThreshold: number;
  /** A zone with more nodes is large. */
  readonly largeClusterSizeThreshold: number;
}

export const EVICTION_DEFAULTS: EvictionSettings = {
  nodeEvictionRate: 0.1,
  secondaryNodeEvictionRate: 0.01,
  unhealthyZoneThreshold: 0.55,
  largeClusterSizeThreshold: 50,
};

export type ZoneState = 'Normal' | 'PartialDisruption' | 'FullDisruption';

/** Nodes with this label count for no zone. */
const EXCLUDE_DISRUPTION = 'node.kubernetes.io/exclude-disruption';
/** Fewer nodes than this that are not ready are no disruption of a part. */
const FEW = 3;

/** By region and zone; '' for a node of none. The older labels come first, as upstream. */
export function zoneOf({ metadata: { labels = {} } }: Pick<Node, 'metadata'>): string {
  const label = (older: string, newer: string): string => getOwn(labels, older) ?? getOwn(labels, newer) ?? '';
  const zone = label('failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone');
  const region = label('failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region');
  return region === '' && zone === '' ? '' : `${region}:${zone}`;
}

export function readyStatus({ status }: Pick<Node, 'status'>): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

export function zoneState(ready: number, notReady: number, threshold: number): ZoneState {
  if (ready === 0 && notReady > 0) return 'FullDisruption';
  return notReady >= FEW && notReady / (ready + notReady) >= threshold ? 'PartialDisruption' : 'Normal';
}

export interface Disruption {
  readonly zones: ReadonlyMap<string, ZoneState>;
  /** Nodes a second that may be tainted with NoExecute, by zone. */
  readonly rates: ReadonlyMap<string, number>;
  /** No node of any zone is ready: nothing is evicted, and what was begun is taken back. */
  readonly isTotal: boolean;
}

export interface ZoneCount {
  readonly ready: number;
  readonly notReady: number;
}

/** Without the nodes that count for none. */
export function zoneCounts(nodes: readonly Node[]): ReadonlyMap<string, ZoneCount> {
  const counts = new Map<string, { ready: number; notReady: number }>();
  for (const node of nodes) {
    if (node.metadata.labels?.[EXCLUDE_DISRUPTION] !== undefined) continue;
    const count = counts.get(zoneOf(node)) ?? { ready: 0, notReady: 0 };
    if (readyStatus(node) === 'True') count.ready++;
    else count.notReady++;
    counts.set(zoneOf(node), count);
  }
  return counts;
}

export function disruptionOf(nodes: readonly Node[], settings: EvictionSettings): Disruption {
  const counts = zoneCounts(nodes);
  const zones = new Map<string, ZoneState>();
  for (const [zone, { ready, notReady }] of counts) {
    zones.set(zone, zoneState(ready, notReady, settings.unhealthyZoneThreshold));
  }
  const isTotal = zones.size > 0 && [...zones.values()].every((state) => state === 'FullDisruption');
  const rates = new Map<string, number>();
  for (const node of nodes) rates.set(zoneOf(node), isTotal ? 0 : settings.nodeEvictionRate);
  for (const [zone, state] of zones) {
    const { ready = 0, notReady = 0 } = counts.get(zone) ?? {};
    const isLarge = ready + notReady > settings.largeClusterSizeThreshold;
    if (state === 'PartialDisruption') rates.set(zone, isLarge ? settings.secondaryNodeEvictionRate : 0);
  }
  return { zones, rates, isTotal };
}

/** A token bucket that holds one token. */
export interface Bucket {
  /** Tokens a second. */
  readonly rate: number;
  readonly tokens: number;
  readonly at: MonotonicMs;
}

export function fullBucket(rate: number, at: MonotonicMs): Bucket {
  return { rate, tokens: 1, at };
}

function filled({ rate, tokens, at }: Bucket, now: MonotonicMs): Bucket {
  return { rate, tokens: Math.min(1, tokens + (rate * elapsedMs(at, now)) / 1000), at: now };
}

/** How long until there is a token, whole ms; undefined: never. */
export function tokenInMs(bucket: Bucket, now: MonotonicMs): number | undefined {
  if (bucket.rate <= 0) return undefined;
  // What is left of a sum of fractions is no reason to wait.
  return Math.max(0, Math.ceil(((1 - filled(bucket, now).tokens) / bucket.rate) * 1000 - 1e-6));
}

/** Without the token that `tokenInMs` has promised. */
export function withoutToken(bucket: Bucket, now: MonotonicMs): Bucket {
  return { rate: bucket.rate, tokens: 0, at: now };
}

/** With another rate; where there was no token yet there is none now. */
export function withRate(bucket: Bucket, rate: number, now: MonotonicMs): Bucket {
  if (bucket.rate === rate) return bucket;
  return { rate, tokens: tokenInMs(bucket, now) === 0 ? 1 : 0, at: now };
}
