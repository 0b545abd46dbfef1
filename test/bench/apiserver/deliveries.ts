// How long a change takes to its watchers: pods spread over nodes, a watch for each node as kubelets have it, some watches of
// all pods as controllers have them, and writes at a steady rate. Times are from the moment a write is sent to the moment a
// watcher has its event, both read in this process, so that they have the request, the write, TLS and the reading of the event
// in them. Writes do not wait for one another.

import { elapsedMs, monotonicMs, systemClock } from '../../../lib/clock.ts';
import { MERGE_PATCH, PODS, podName } from './pods.ts';
import { each, type Watching } from './watching.ts';

/** What a write changes: when it was sent, by this process's clock. */
const MARK = '"bench/sent":"';
const TICK_MS = 10;
/** Requests at a time while watches are opened. */
const AT_ONCE = 32;
/** How long is waited for what did not come, ms. */
const PATIENCE_MS = 20_000;
const PERIOD_MS = 5000;

export interface DeliveryOptions {
  readonly pods: number;
  /** Pods are spread over so many. */
  readonly nodes: number;
  readonly watchers: number;
  /** How many of the watchers watch all pods. */
  readonly everything: number;
  readonly writesPerSecond: number;
  readonly seconds: number;
}

/** ms, by periods of five seconds. */
export type Times = readonly (readonly number[])[];

export interface Deliveries {
  /** To the watches of one node. */
  readonly one: Times;
  /** To those of all pods. */
  readonly all: Times;
  /** Until the response of a write. */
  readonly writes: Times;
  readonly missing: number;
}

class Periods {
  readonly times: number[][] = [];
  count = 0;
  readonly #last: number;

  constructor(seconds: number) {
    this.#last = Math.max(0, Math.ceil((seconds * 1000) / PERIOD_MS) - 1);
  }

  /** `sentAfter`: when it was sent, from the beginning, ms. */
  add(sentAfter: number, took: number): void {
    const period = Math.min(this.#last, Math.floor(sentAfter / PERIOD_MS));
    let times = this.times[period];
    if (times === undefined) {
      times = [];
      this.times[period] = times;
    }
    times.push(took);
    this.count++;
  }
}

/** Takes the lines of one watch; `onEvent` gets when the write of each was sent, which stands behind `mark`. */
export function reader(mark: string, onEvent: (sent: number) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const at = line.indexOf(mark);
      if (at < 0) throw new Error(`an event that no write made: ${line.slice(0, 300)}`);
      onEvent(Number(line.slice(at + mark.length, line.indexOf('"', at + mark.length))));
    }
  };
}

/**
 * Calls `write` at the rate, whether or not earlier ones are done. Resolves after that time with the number of calls, which is the
 * nearest whole one: none of what happens once in a minute, in ten seconds.
 */
export async function steadily(perSecond: number, seconds: number, write: (index: number) => void): Promise<number> {
  const began = systemClock.monotonic();
  const total = Math.round(perSecond * seconds);
  let count = 0;
  for (;;) {
    const elapsed = elapsedMs(began, systemClock.monotonic());
    const due = Math.min(total, Math.floor((elapsed / (seconds * 1000)) * total));
    for (; count < due; count += 1) write(count);
    if (count >= total) return count;
    await systemClock.sleep(TICK_MS);
  }
}

/** Opens the watches, writes, and waits until every event has come. */
export async function measureDeliveries(watching: Watching, options: DeliveryOptions): Promise<Deliveries> {
  const { pods, nodes, watchers, everything, writesPerSecond, seconds } = options;
  const [one, all, writes] = [new Periods(seconds), new Periods(seconds), new Periods(seconds)];
  let began = systemClock.monotonic();
  const into = (periods: Periods) => (sent: number) => {
    const at = monotonicMs(sent);
    periods.add(elapsedMs(began, at), elapsedMs(at, systemClock.monotonic()));
  };
  const revision = await watching.revision(PODS);
  const ends: (() => void)[] = [];
  await each(watchers, AT_ONCE, async (index) => {
    const ofAll = index < everything;
    const selector = ofAll ? '' : `&fieldSelector=spec.nodeName%3Dnode-${(index - everything) % nodes}`;
    const query = `resourceVersion=${revision}${selector}`;
    ends.push(await watching.open(PODS, query, reader(MARK, into(ofAll ? all : one))));
  });
  began = systemClock.monotonic();
  const pending = new Set<Promise<unknown>>();
  const count = await steadily(writesPerSecond, seconds, (index) => {
    // Neighbours are on different nodes.
    const path = `${PODS}/${podName((index * 7919) % pods)}`;
    const sent = systemClock.monotonic();
    const body = { metadata: { annotations: { 'bench/sent': sent.toFixed(3) } } };
    const write = watching.call('PATCH', path, body, MERGE_PATCH).then(() => into(writes)(sent));
    pending.add(write);
    void write.finally(() => pending.delete(write));
  });
  await Promise.all(pending);
  const due = count * (everything + (watchers - everything) / nodes);
  const patience = systemClock.monotonic();
  while (one.count + all.count < due && elapsedMs(patience, systemClock.monotonic()) < PATIENCE_MS) {
    await systemClock.sleep(TICK_MS);
  }
  for (const end of ends) end();
  return { one: one.times, all: all.times, writes: writes.times, missing: Math.max(0, due - one.count - all.count) };
}
