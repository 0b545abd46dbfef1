// What changes of the cache mean to workers (the kubelet's PodLifecycleEvents), and whether the relist that underlies
// them is healthy. Pure, but for the set of listeners.

import { elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { goDuration } from '../../../lib/go-duration.ts';
import type { PodLifecycleEvent } from '../../ports/runtime.ts';
import type { CacheChange } from '../cache/inputs.ts';
import { containerId } from '../convert.ts';

const TYPES = { started: 'containerStarted', died: 'containerDied', removed: 'containerRemoved' } as const;

export function lifecycleEvent({ type, id, kind, pod, at }: CacheChange): PodLifecycleEvent {
  // A sandbox event is no container's event: the worker finds out what changed.
  if (kind === 'sandbox' || type === 'changed') return { podUID: pod.uid, type: 'podSync', at };
  return { podUID: pod.uid, type: TYPES[type], containerId: containerId(id), at };
}

/** The listeners of lifecycle events. Made before the cache that reports changes, and before the streams that feed it. */
export class LifecycleListeners {
  readonly #listeners = new Set<(event: PodLifecycleEvent) => void>();

  add(listener: (event: PodLifecycleEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  report(change: CacheChange): void {
    const event = lifecycleEvent(change);
    for (const listener of this.#listeners) listener(event);
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/** A list of what runs may be this old, ms, before PLEG counts as unhealthy: the kubelet's relist threshold. */
const RELIST_THRESHOLD_MS = 180_000;

/**
 * Why the lists are not healthy, in the kubelet's words; undefined while they are. The kubelet also complains before its
 * first list; here that one has as long as any other. All in monotonic ms.
 */
export function plegProblem(
  startedAt: MonotonicMs | undefined,
  relistedAt: MonotonicMs | undefined,
  now: MonotonicMs,
): string | undefined {
  const since = relistedAt ?? startedAt;
  if (since === undefined || elapsedMs(since, now) <= RELIST_THRESHOLD_MS) return undefined;
  if (relistedAt === undefined) return 'PLEG is not healthy: pleg has yet to be successful';
  const [elapsed, threshold] = [goDuration(elapsedMs(relistedAt, now)), goDuration(RELIST_THRESHOLD_MS)];
  return `PLEG is not healthy: pleg was last seen active ${elapsed} ago; threshold is ${threshold}`;
}

/** Where nothing happens, lists come so many times rarer at most. */
const QUIET_FACTOR = 6;

/** The longest time between two lists under a stream of events (ms), where they have this period. */
export function longestRelistMs(periodMs: number): number {
  return periodMs * QUIET_FACTOR;
}

/** How long after a list (ms) that nothing had happened before, and that came after `lastMs`, the next one is due. */
export function nextRelistMs(lastMs: number, periodMs: number): number {
  return Math.min(2 * lastMs, longestRelistMs(periodMs));
}
