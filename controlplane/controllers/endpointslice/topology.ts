// For which zones endpoints are meant where the Service has the annotation service.kubernetes.io/topology-mode: Auto (KEP-2433): each zone gets
// endpoints in proportion to the CPUs of its nodes, and no endpoint is to get more than 20 % above its share. Pure.

import type { Endpoint, Node } from '../../../client/types.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import { ZONE_LABEL } from './desired.ts';

/** How far above its share an endpoint may be loaded. */
const OVERLOAD = 0.2;
const LEFT_OUT = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** The share of the cluster's CPUs, from 0 to 1, by zone. Undefined: a node has no zone or no CPUs, or there are not two zones. */
export type ZoneShares = ReadonlyMap<string, number> | undefined;

/** What decides the shares: nodes of the control plane and those that are not Ready do not count. */
export function isZoneNode({ metadata, status }: Node): boolean {
  if (LEFT_OUT.some((label) => Object.hasOwn(metadata.labels ?? {}, label))) return false;
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

export function zoneShares(nodes: readonly Node[]): ZoneShares {
  const milli = new Map<string, number>();
  for (const node of nodes.filter(isZoneNode)) {
    const zone = node.metadata.labels?.[ZONE_LABEL] ?? '';
    const cpu = quantityMilli(node.status?.allocatable?.['cpu'] ?? '0');
    if (zone === '' || cpu === 0) return undefined;
    milli.set(zone, (milli.get(zone) ?? 0) + cpu);
  }
  if (milli.size < 2) return undefined;
  const total = [...milli.values()].reduce((sum, each) => sum + each, 0);
  return new Map([...milli].sort(([a], [b]) => (a < b ? -1 : 1)).map(([zone, each]) => [zone, each / total]));
}

/** How many endpoints have a hint for each zone. */
export type ZoneCounts = ReadonlyMap<string, number>;

/** Whether a zone has too few endpoints, so that the hints have to be decided anew. */
export function isOverloaded(counts: ZoneCounts, shares: ZoneShares): boolean {
  if (counts.size === 0) return false;
  if (shares === undefined) return true;
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0);
  return [...shares].some(([zone, share]) => (counts.get(zone) ?? -1) < minimumOf(total * share));
}

const minimumOf = (desired: number): number => Math.ceil(desired * (1 / (1 + OVERLOAD)));

interface Allocation {
  readonly maximum: number;
  readonly desired: number;
}

/** For each zone; the text is why there can be none. */
function allocate(shares: ZoneShares, count: number): ReadonlyMap<string, Allocation> | string {
  if (shares === undefined) {
    return 'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes';
  }
  const of = `(${count} endpoints, ${shares.size} zones)`;
  if (shares.size > count) return `Insufficient number of endpoints ${of}`;
  const zones = [...shares].map(([zone, share]) => {
    const minimum = minimumOf(share * count);
    return { zone, minimum, desired: Math.max(share * count, minimum) };
  });
  const least = zones.reduce((sum, { minimum }) => sum + minimum, 0);
  if (least > count) {
    return `Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ${of}`;
  }
  return new Map(zones.map(({ zone, minimum, desired }) => [zone, { desired, maximum: minimum + count - least }]));
}

export interface HintedSlice {
  /** Those of a slice that does not change otherwise have the hints that they have. */
  readonly endpoints: readonly Endpoint[];
  readonly changed: boolean;
}

/** The endpoints of each slice with their hints, or why none has any. */
export type ZoneHints =
  | { readonly endpoints: readonly (readonly Endpoint[])[]; readonly counts: ZoneCounts }
  | { readonly disabled: string };

const isReady = ({ conditions }: Endpoint): boolean => conditions?.ready === true;
const forZone = (endpoint: Endpoint, zone: string): Endpoint => ({
  ...endpoint,
  hints: { forZones: [{ name: zone }] },
});
const add = (counts: Map<string, number>, zone: string, number: number): void => {
  counts.set(zone, (counts.get(zone) ?? 0) + number);
};

/** `slices`: those that are to be made come first. */
export function zoneHints(slices: readonly HintedSlice[], shares: ZoneShares): ZoneHints {
  const ready = slices.flatMap(({ endpoints }) => endpoints.filter(isReady));
  const allocations = allocate(shares, ready.length);
  if (typeof allocations === 'string') return { disabled: allocations };
  const counts = new Map<string, number>();
  const kept = new Set<HintedSlice>();
  for (const slice of slices) {
    const found = slice.changed ? undefined : hintsToKeep(slice, counts, allocations);
    if (found === undefined) continue;
    kept.add(slice);
    for (const [zone, number] of found) add(counts, zone, number);
  }
  const open = slices.filter((slice) => !kept.has(slice));
  for (const { zone = '' } of open.flatMap(({ endpoints }) => endpoints.filter(isReady))) {
    if (zone === '') return { disabled: 'One or more endpoints do not have a zone specified' };
    add(counts, zone, 1);
  }
  const moves = movesOf(allocations, counts);
  const endpoints = slices.map((slice) => {
    if (kept.has(slice)) return slice.endpoints;
    return slice.endpoints.map(({ hints: _, ...endpoint }) => {
      if (!isReady(endpoint)) return endpoint;
      const { zone = '' } = endpoint;
      const to = moves.take(zone);
      if (to === undefined) return forZone(endpoint, zone);
      add(counts, zone, -1);
      add(counts, to, 1);
      return forZone(endpoint, to);
    });
  });
  return { endpoints, counts };
}

/** By zone; undefined: an endpoint has none, a zone needs none any longer, or has too many together with `counts`. */
function hintsToKeep(
  { endpoints }: HintedSlice,
  counts: ZoneCounts,
  allocations: ReadonlyMap<string, Allocation>,
): ZoneCounts | undefined {
  const found = new Map<string, number>();
  for (const { hints } of endpoints.filter(isReady)) {
    const { forZones = [] } = hints ?? {};
    if (forZones.length === 0) return undefined;
    for (const { name } of forZones) add(found, name, 1);
  }
  const fits = [...found].every(([zone, number]) => {
    const { maximum = -1 } = allocations.get(zone) ?? {};
    return number + (counts.get(zone) ?? 0) <= maximum;
  });
  return fits ? found : undefined;
}

interface Moves {
  /** Where an endpoint of this zone goes; undefined: it stays. */
  readonly take: (zone: string) => string | undefined;
}

/** Which zones give endpoints, and which get them: those that have most beyond their share give first to those that lack most. */
function movesOf(allocations: ReadonlyMap<string, Allocation>, counts: ZoneCounts): Moves {
  const over = new Map<string, number>();
  const lacking = new Map<string, number>();
  for (const [zone, { desired }] of allocations) {
    const has = counts.get(zone) ?? 0;
    if (has > desired) over.set(zone, has - desired);
    else if (has < desired) lacking.set(zone, desired - has);
  }
  const giving = new Map<string, number>();
  const receiving = new Map<string, number>();
  for (;;) {
    const [from, toGive] = mostOf(over);
    const [to, toGet] = mostOf(lacking);
    if ((toGive < 1 && toGet < 1) || toGive < 0.5 || toGet < 0.5) break;
    add(giving, from, 1);
    over.set(from, toGive - 1);
    add(receiving, to, 1);
    lacking.set(to, toGet - 1);
  }
  return {
    take: (zone) => {
      const [to] = [...receiving].find(([, number]) => number > 0) ?? [];
      if (to === undefined || (giving.get(zone) ?? 0) === 0) return undefined;
      add(giving, zone, -1);
      add(receiving, to, -1);
      return to;
    },
  };
}

/** ['', 0]: no zone has any. */
function mostOf(zones: ReadonlyMap<string, number>): readonly [string, number] {
  return [...zones].reduce<readonly [string, number]>((most, each) => (each[1] > most[1] ? each : most), ['', 0]);
}
