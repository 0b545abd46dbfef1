// How many nodes of a zone are not ready, and how fast such nodes are tainted for that (pkg/controller/nodelifecycle): where most of a
// zone is lost at once, it is rather the way to them that is. Pure, but for the state of the limits.

import type { Node } from '../../client/types.ts';
import { elapsedMs, type MonotonicMs, plusMs } from '../../lib/clock.ts';

/** full: no node of it is ready. partial: more than two are not, and they are a large part. */
export type ZoneState = 'normal' | 'partial' | 'full';

export interface EvictionRates {
  /** Nodes of a zone that are tainted in a second. */
  readonly perSecond: number;
  /** The same in a large zone in partial disruption; in a small one none is. */
  readonly secondaryPerSecond: number;
  /** The part of a zone's nodes, 0 to 1, from which on its disruption is partial. */
  readonly unhealthyThreshold: number;
  /** A zone with more nodes is large. */
  readonly largeZone: number;
}

/** The defaults of --node-eviction-rate, --secondary-node-eviction-rate, --unhealthy-zone-threshold, --large-cluster-size-threshold. */
export const EVICTION_RATES: EvictionRates = {
  perSecond: 0.1,
  secondaryPerSecond: 0.01,
  unhealthyThreshold: 0.55,
  largeZone: 50,
};

export interface Zone {
  readonly state: ZoneState;
  readonly size: number;
}

/** Its loss is no sign of a disruption. */
export function isExcluded({ metadata }: Pick<Node, 'metadata'>): boolean {
  return metadata.labels?.['node.kubernetes.io/exclude-disruption'] !== undefined;
}

export function readiness({ status }: Node): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

/** Region and zone; nodes without either are in one zone. */
export function zoneOf({ metadata }: Pick<Node, 'metadata'>): string {
  const { labels = {} } = metadata;
  const region = labels['topology.kubernetes.io/region'] ?? labels['failure-domain.beta.kubernetes.io/region'];
  const zone = labels['topology.kubernetes.io/zone'] ?? labels['failure-domain.beta.kubernetes.io/zone'];
  return `${region ?? ''}\0${zone ?? ''}`;
}

export function zoneState(ready: number, notReady: number, unhealthyThreshold: number): ZoneState {
  if (ready === 0 && notReady > 0) return 'full';
  return notReady > 2 && notReady / (ready + notReady) >= unhealthyThreshold ? 'partial' : 'normal';
}

/** The zones of all nodes that count. */
export function surveyZones(nodes: Iterable<Node>, { unhealthyThreshold }: EvictionRates): ReadonlyMap<string, Zone> {
  const counts = new Map<string, { ready: number; notReady: number }>();
  for (const node of nodes) {
    if (isExcluded(node)) continue;
    const zone = zoneOf(node);
    const count = counts.get(zone) ?? { ready: 0, notReady: 0 };
    counts.set(zone, count);
    if (readiness(node) === 'True') count.ready++;
    else count.notReady++;
  }
  return new Map(
    [...counts].map(([zone, { ready, notReady }]) => {
      return [zone, { state: zoneState(ready, notReady, unhealthyThreshold), size: ready + notReady }];
    }),
  );
}

/** No node anywhere is ready: none is tainted, since it is the control plane that has lost them. */
export function allAreLost(zones: ReadonlyMap<string, Zone>): boolean {
  return zones.size > 0 && [...zones.values()].every(({ state }) => state === 'full');
}

/** Nodes in a second. */
export function rateOf(zone: Zone | undefined, rates: EvictionRates): number {
  if (zone?.state !== 'partial') return rates.perSecond;
  return zone.size > rates.largeZone ? rates.secondaryPerSecond : 0;
}

/** A token bucket of one token for each zone. */
export class EvictionLimits {
  readonly #zones = new Map<string, { perSecond: number; nextAt: MonotonicMs }>();
  readonly #usual: number;

  /** `usual`: nodes in a second, of a zone for which no other rate is set. */
  constructor(usual: number) {
    this.#usual = usual;
  }

  /** A zone whose token is used waits at the new rate from now on. 0: none is to be had. */
  setRate(zone: string, perSecond: number, now: MonotonicMs): void {
    const limit = this.#zones.get(zone);
    if (limit?.perSecond === perSecond) return;
    const isFree = limit === undefined || (limit.perSecond > 0 && limit.nextAt <= now);
    this.#zones.set(zone, { perSecond, nextAt: isFree || perSecond === 0 ? now : plusMs(now, 1000 / perSecond) });
  }

  /** 0 where the token was free, and is taken now; else ms until it may be, Infinity where the rate has to change before. */
  take(zone: string, now: MonotonicMs): number {
    const limit = this.#zones.get(zone) ?? { perSecond: this.#usual, nextAt: now };
    this.#zones.set(zone, limit);
    if (limit.perSecond === 0) return Number.POSITIVE_INFINITY;
    if (limit.nextAt > now) return elapsedMs(now, limit.nextAt);
    limit.nextAt = plusMs(now, 1000 / limit.perSecond);
    return 0;
  }
}
