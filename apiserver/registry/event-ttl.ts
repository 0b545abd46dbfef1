// Events are kept for an hour after they were last seen. Checked every few minutes in the background.

import { type Clock, type EpochMs, elapsedMs, later, type Timer, ZERO_TIME } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import { parseObject } from '../storage/change.ts';
import type { StoredObject } from '../storage/object-store.ts';
import type { Registry } from './registry.ts';

/** The API server's --event-ttl. */
export const EVENT_TTL_MS = 60 * 60 * 1000;
const INTERVAL_MS = 5 * 60 * 1000;

/** When an event was last written: the newest of its times. Pure. */
export function lastSeen(event: KubeObject): EpochMs {
  const series = isObject(event['series']) ? event['series']['lastObservedTime'] : undefined;
  const times = [event.metadata.creationTimestamp, event['lastTimestamp'], event['eventTime'], series];
  const moments = times.map((time) => (typeof time === 'string' ? parseRfc3339(time) : undefined) ?? ZERO_TIME);
  return moments.reduce((newest, each) => later(newest, each), ZERO_TIME);
}

/** Events that are read between two removals; nothing is written during the reading. */
const BATCH = 200;

/** Removes events that were last seen too long before `now` (epoch ms). Returns how many. */
export function removeOldEvents(registry: Registry, now: EpochMs): number {
  if (!registry.hasRow('', 'events')) return 0;
  const row = registry.rowOf('', 'events');
  let removed = 0;
  let after: StoredObject | undefined;
  do {
    const batch = take(registry.store.scan(registry.resource(row), undefined, after), BATCH);
    for (const stored of batch) {
      const event = parseObject(stored.text);
      if (elapsedMs(lastSeen(event), now) <= EVENT_TTL_MS) continue;
      registry.remove(row, registry.key(row, stored.namespace, stored.name), event, stored);
      removed++;
    }
    after = batch.at(-1);
  } while (after !== undefined);
  return removed;
}

function take<T>(from: Iterable<T>, count: number): T[] {
  const taken: T[] = [];
  for (const one of from) {
    taken.push(one);
    if (taken.length === count) break;
  }
  return taken;
}

/** Removes old events now and then, and logs what keeps it from that; the returned function stops it. */
export function startEventCleanup(registry: Registry, clock: Clock, log: (line: string) => void): () => void {
  let timer: Timer;
  const run = (): void => {
    try {
      removeOldEvents(registry, clock.now());
    } catch (error) {
      // A background task: the next round tries again.
      log(`old events could not be removed: ${errorMessage(error)}`);
    }
    timer = clock.after(INTERVAL_MS, run);
  };
  timer = clock.after(INTERVAL_MS, run);
  return () => timer.cancel();
}
