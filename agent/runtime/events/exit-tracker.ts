// Tracks an exit from the event until CRI shows it. The event comes from the kernel and
// comes first; the runtime is then still deleting the task, and may not even have recorded its start.
// It passes what it reads to the cache and keeps only exits in progress.

import { resolvesWithin } from '../../../lib/abort.ts';
import type { Clock } from '../../../lib/clock.ts';
import { poll } from '../../../lib/retry.ts';
import type { RuntimeRecord } from '../cache/records.ts';
import type { RuntimeCache } from '../cache/runtime-cache.ts';
import type { StatusReader } from '../status-reader.ts';
import { terminationMessage } from '../termination-message.ts';
import type { RuntimeEvent } from './runtime-event.ts';

/**
 * How long an announced exit may take to show in CRI's state, ms: on a machine that has far too much to do, containerd
 * takes seconds. After that it is left to the relist.
 */
const CONFIRM_LIMIT_MS = 10_000;
/**
 * The poll intervals: while a caller waits, and when only details may be added. A runtime that takes
 * long is polled less and less: the delay is a third of the wait at most.
 */
const CONFIRM_FIRST_MS = 1;
const CONFIRM_ANNOUNCED_MS = 16;
const CONFIRM_LONGEST_MS = 100;
/** A stop of ours is answered when the runtime has finished with the exit: that long, ms, its response is waited for instead. */
const CONFIRM_STOP_MS = 2_000;

/** Whether CRI itself shows that it has exited, or no longer lists it. */
function isShown(record: RuntimeRecord | undefined): boolean {
  if (record === undefined) return true;
  if (record.kind === 'sandbox') return record.snapshot.state === 'notReady';
  // A container may die before the runtime has written down that it began.
  return record.statusState === 'exited' || record.statusState === 'unknown';
}

export class ExitTracker {
  readonly #cache: RuntimeCache;
  readonly #statuses: StatusReader;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  /** Ids whose exit is being followed: two streams may announce the same one. */
  readonly #tracked = new Set<string>();
  /** Exited containers that the runtime does not show as exited yet. */
  readonly #unsettled = new Map<string, PromiseWithResolvers<void>>();
  /** Calls of StopContainer that are under way. They never reject here. */
  readonly #stops = new Map<string, Promise<void>>();

  /** Nothing is followed any further once `signal` is aborted. */
  constructor(cache: RuntimeCache, statuses: StatusReader, clock: Clock, signal: AbortSignal) {
    this.#cache = cache;
    this.#statuses = statuses;
    this.#clock = clock;
    this.#signal = signal;
  }

  /**
   * Waits until the runtime has finished with the exits of a container, or of all of a sandbox's pod. Until then it
   * answers a stop or a removal with an error from a shim that is just going away.
   */
  async settled(id: string): Promise<void> {
    const record = this.#cache.get(id);
    const concerned =
      record?.kind === 'sandbox' ? this.#cache.containersOf(record.pod.uid).map((container) => container.id) : [id];
    await Promise.all(concerned.map((container) => this.#unsettled.get(container)?.promise));
  }

  /** Notes a call of StopContainer until it ends; resolves and rejects as it does. */
  async stopping<T>(id: string, call: Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stops.set(id, promise);
    try {
      return await call;
    } finally {
      if (this.#stops.get(id) === promise) this.#stops.delete(id);
      resolve();
    }
  }

  /** Resolves when CRI shows the exit, or when it has not for too long. Rejects with RuntimeError. */
  async track(event: RuntimeEvent): Promise<void> {
    if (this.#tracked.has(event.id)) return;
    this.#tracked.add(event.id);
    try {
      if (this.#announce(event)) return await this.#confirm(event);
      this.#cache.apply({ kind: 'event', event: 'exited', id: event.id, at: event.at });
      // The worker that started it may read in between what was missing.
      let announced = false;
      await this.#until(CONFIRM_FIRST_MS, async () => {
        if (await this.#isShown(event.id)) return true;
        announced = this.#announce(event);
        return announced;
      });
      if (announced) await this.#confirm(event);
    } finally {
      this.#tracked.delete(event.id);
    }
  }

  /**
   * Passes the event's exit to the cache, so that the next observation shows it. False when it cannot be
   * reported in full: the container's status was not read since its start, or its message is in a log still being written.
   */
  #announce({ id, at, exitCode }: RuntimeEvent): boolean {
    const status = this.#cache.container(id)?.status;
    if (status === undefined || exitCode === undefined) return false;
    const message = terminationMessage({ ...status, exit_code: exitCode }, { logIsComplete: false });
    if (message === undefined) return false;
    // First, since the worker may act on what is announced before this returns.
    this.#unsettled.set(id, Promise.withResolvers());
    this.#cache.apply({ kind: 'event', event: 'exited', id, at, exit: { exitCode, message } });
    return true;
  }

  async #confirm({ id }: RuntimeEvent): Promise<void> {
    try {
      const stop = this.#stops.get(id);
      // The runtime needs a while for what it has to do after the event; looked for at once, it would never be done.
      if (stop === undefined) await this.#clock.sleep(CONFIRM_ANNOUNCED_MS, this.#signal);
      else await resolvesWithin(this.#clock, CONFIRM_STOP_MS, stop, this.#signal);
      await this.#until(CONFIRM_ANNOUNCED_MS, () => this.#isShown(id));
    } finally {
      this.#unsettled.get(id)?.resolve();
      this.#unsettled.delete(id);
    }
  }

  async #isShown(id: string): Promise<boolean> {
    const known = this.#cache.get(id);
    if (known?.kind === 'container' && known.statusState === 'exited') return true;
    if (known?.kind === 'sandbox') await this.#statuses.sandbox(id);
    else await this.#statuses.container(id);
    return isShown(this.#cache.get(id));
  }

  /** Polls until `shown`, with growing intervals, for at most the limit. */
  async #until(firstMs: number, shown: () => Promise<boolean>): Promise<void> {
    const pauses = { firstMs, everyMs: CONFIRM_LONGEST_MS, factor: 1.5, limitMs: CONFIRM_LIMIT_MS };
    await poll(shown, { clock: this.#clock, signal: this.#signal, ...pauses });
  }
}
