// What the kubelets of a cluster send all the time, at a multiple of the usual rates, with their watches and those of some
// controllers open: how long each takes, and an event to its watch.

import { elapsedMs, monotonicMs, systemClock } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { reader, steadily } from '../apiserver/deliveries.ts';
import type { Connections } from '../apiserver/requests.ts';
import type { BenchServer } from '../apiserver/server.ts';
import { each, type Watching } from '../apiserver/watching.ts';
import {
  ALL_PODS,
  MARK,
  readConfigMap,
  renewLease,
  reportNode,
  reportPod,
  type Size,
  selectorOf,
  tokenOf,
} from './cluster.ts';

/** Watches of all pods: a scheduler, a controller manager and the like. */
export const CONTROLLERS = 5;
/** Seconds between two renewals of a Lease, two reports of a Node that has not changed, and two changes of a pod's status. */
const LEASE_EVERY = 10;
const NODE_EVERY = 300;
const POD_EVERY = 300;
/** ConfigMaps read in a second, by each thousand nodes. */
const READS_PER_THOUSAND = 10;
const AT_ONCE = 32;
const TICK_MS = 10;
/** How long is waited for what is still under way at the end, ms. */
const PATIENCE_MS = 20_000;

export interface Watches {
  /** From a write to its event, ms; emptied by who reads it. */
  readonly own: number[];
  readonly all: number[];
  /** For all of them to open, ms. */
  readonly openMs: number;
  close(): void;
}

/** A watch of its own pods for each node, and some of all pods. */
export async function openWatches(watching: Watching, size: Size, revision: string): Promise<Watches> {
  const [own, all]: [number[], number[]] = [[], []];
  const into = (times: number[]) => (sent: number) => {
    times.push(elapsedMs(monotonicMs(sent), systemClock.monotonic()));
  };
  const ends: (() => void)[] = [];
  const began = performance.now();
  await each(size.nodes, AT_ONCE, async (node) => {
    const query = `resourceVersion=${revision}&${selectorOf(node)}`;
    ends.push(await watching.open(ALL_PODS, query, reader(MARK, into(own)), tokenOf(node)));
  });
  const openMs = performance.now() - began;
  await each(CONTROLLERS, AT_ONCE, async () => {
    ends.push(await watching.open(ALL_PODS, `resourceVersion=${revision}`, reader(MARK, into(all))));
  });
  const close = (): void => {
    for (const end of ends) end();
  };
  return { own, all, openMs, close };
}

/** What is sent, and how often a second at the usual rate. Pure. */
export function ratesOf({ nodes, pods }: Size): Readonly<Record<Kind, number>> {
  return {
    'Lease renewed': nodes / LEASE_EVERY,
    'Node reported': nodes / NODE_EVERY,
    'pod status': pods / POD_EVERY,
    'ConfigMap read': (nodes / 1000) * READS_PER_THOUSAND,
  };
}

export const KINDS = ['Lease renewed', 'Node reported', 'pod status', 'ConfigMap read'] as const;
export type Kind = (typeof KINDS)[number];

export interface Load {
  readonly factor: number;
  /** How long each took, ms. */
  readonly times: Readonly<Record<Kind, readonly number[]>>;
  readonly own: readonly number[];
  readonly all: readonly number[];
  readonly seconds: number;
  /** Requests and events that had not come when it was given up. */
  readonly missing: number;
  /** Of the server, percent of a core. */
  readonly cpuPercent: number;
  readonly residentMiB: number;
}

function requestOf(kind: Kind, index: number, size: Size): Buffer {
  const now = rfc3339(systemClock.now());
  switch (kind) {
    case 'Lease renewed':
      return renewLease(index % size.nodes, now);
    case 'Node reported':
      return reportNode(index % size.nodes, now);
    case 'pod status':
      // Neighbours in time are on different nodes.
      return reportPod((index * 7919) % size.pods, size, now, systemClock.monotonic().toFixed(3));
    case 'ConfigMap read':
      return readConfigMap((index * 7919) % size.pods, size);
  }
}

/** `factor` times the usual rates, for some seconds. */
export async function load(
  server: BenchServer,
  connections: Connections,
  watches: Watches,
  size: Size,
  factor: number,
  seconds: number,
): Promise<Load> {
  watches.own.length = 0;
  watches.all.length = 0;
  const times: Record<Kind, number[]> = {
    'Lease renewed': [],
    'Node reported': [],
    'pod status': [],
    'ConfigMap read': [],
  };
  const rates = ratesOf(size);
  const cpuBefore = await server.cpuMs();
  const began = performance.now();
  let underWay = 0;
  const send = (kind: Kind, index: number): void => {
    underWay++;
    void connections.send(requestOf(kind, index, size)).then((took) => {
      times[kind].push(took);
      underWay--;
    });
  };
  const counts = await Promise.all(
    KINDS.map((kind) => steadily(rates[kind] * factor, seconds, (index) => send(kind, index))),
  );
  const cpuPercent = (((await server.cpuMs()) - cpuBefore) / (performance.now() - began)) * 100;
  const changes = counts[KINDS.indexOf('pod status')] ?? 0;
  const events = (): number => changes * (1 + CONTROLLERS) - watches.own.length - watches.all.length;
  const end = performance.now() + PATIENCE_MS;
  while ((underWay > 0 || events() > 0) && performance.now() < end) await systemClock.sleep(TICK_MS);
  return {
    factor,
    times,
    own: [...watches.own],
    all: [...watches.all],
    seconds,
    missing: underWay + events(),
    cpuPercent,
    residentMiB: await server.residentMiB(),
  };
}

/** Upstream's service level objective for a single object's request: 99 of 100 within a second. */
const SLO_MS = 1000;

export function holds({ times, own, all, missing }: Load): boolean {
  const isLate = (list: readonly number[]): boolean =>
    list.filter((ms) => ms > SLO_MS).length > Math.floor(list.length / 100);
  return missing === 0 && ![...Object.values(times), own, all].some(isLate);
}
