// Feeds the cache with what happens in the runtime, as it happens: by CRI's event stream where there is one, else by
// containerd's, else by a list every second; and by a slow list underneath in every case (the kubelet's relist). What
// the cache did not know by then wakes workers. Decides nothing, and keeps nothing of pods.
//
// CRI's stream alone is too slow for ends: containerd 1.7 and 2 put an exit on it only after they have torn the task
// down, some 80 ms after their own bus has announced it (medians from SIGKILL, side by side on a busy machine: 121
// against 25 ms with 1.7.35, 100 against 28 with 2.4.2); and 1.7 loses an event to a subscriber that has gone. So where
// the same socket serves containerd's bus too, exits are also taken from there. Whichever comes first counts.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../../lib/backoff.ts';
import { type Clock, elapsedMs, type MonotonicMs, type Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { repeat, retryUntilAborted } from '../../../lib/retry.ts';
import type { ContainerEventResponse__Output } from '../../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import type { PodLifecycleEvent } from '../../ports/runtime.ts';
import { RuntimeError } from '../../ports/runtime.ts';
import type { RuntimeCache } from '../cache/runtime-cache.ts';
import { nanosToMs } from '../convert.ts';
import type { CriClient, CriStream, CriStreamEnd } from '../cri-client.ts';
import type { Observer } from '../observe.ts';
import type { EventSource } from '../options.ts';
import type { StatusReader } from '../status-reader.ts';
import { CONTAINERD_END_FILTERS, CONTAINERD_FILTERS, decodeEnvelope } from './containerd-events.ts';
import { decodeContainerEvent } from './cri-events.ts';
import type { ExitTracker } from './exit-tracker.ts';
import { type LifecycleListeners, nextRelistMs, plegProblem } from './pleg.ts';
import type { RuntimeEvent } from './runtime-event.ts';

const POLL_MS = 1000;
/** A stream that is not served fails within a round trip; after this long it counts as open. ms. */
const SETTLE_MS = 50;
/** A list of all that is due at the same moment elsewhere has come by then. ms. */
const OTHERS_FIRST_MS = 500;
const RECONNECT: BackoffPolicy = { initialMs: 100, maxMs: 2000, factor: 2, resetMs: 30_000 };

export interface LifecycleOptions {
  readonly client: CriClient;
  readonly cache: RuntimeCache;
  readonly statuses: StatusReader;
  readonly observer: Observer;
  readonly exits: ExitTracker;
  readonly listeners: LifecycleListeners;
  readonly clock: Clock;
  /** Ends everything here, for good. */
  readonly signal: AbortSignal;
  /** Between lists while an event stream serves, where something happens; longer where nothing does (nextRelistMs). */
  readonly relistPeriodMs: number;
  readonly eventSource?: EventSource;
  readonly onTrouble?: (message: string) => void;
  readonly onRelist?: (durationMs: number) => void;
}

export class LifecycleEvents {
  readonly #options: LifecycleOptions;
  readonly #stop: AbortSignal;
  #source: EventSource | undefined;
  #relistTimer: Timer | undefined;
  /** How long after the last list the next one comes, ms. */
  #relistMs: number;
  /** The cache's activity at the last list: as much at the next one means that nothing happened. */
  #listedActivity: number | undefined;
  #relistFailed = false;
  /** Monotonic ms: when the first list was due. */
  #startedAt: MonotonicMs | undefined;
  #running: Promise<void> | undefined;
  readonly #settledWaiters = new Set<(source: EventSource | undefined) => void>();

  constructor(options: LifecycleOptions) {
    this.#options = options;
    this.#stop = options.signal;
    this.#relistMs = options.relistPeriodMs;
  }

  /** The first listener starts the stream; it then runs until the signal. */
  watch(listener: (event: PodLifecycleEvent) => void): () => void {
    const remove = this.#options.listeners.add(listener);
    this.#start();
    return remove;
  }

  /** The source in use, once one is; undefined when the runtime cannot be reached. */
  settled(): Promise<EventSource | undefined> {
    this.#start();
    if (this.#source !== undefined) return Promise.resolve(this.#source);
    return new Promise((resolve) => this.#settledWaiters.add(resolve));
  }

  /** Releases callers that wait for a source. Called after the signal. */
  close(): void {
    this.#relistTimer?.cancel();
    this.#settle(undefined);
  }

  /** Why this is not healthy, in the kubelet's words (pkg/kubelet/pleg, Healthy); undefined while it is. */
  problem(): string | undefined {
    return plegProblem(this.#startedAt, this.#options.cache.listedAt, this.#options.clock.monotonic());
  }

  #start(): void {
    this.#startedAt ??= this.#options.clock.monotonic();
    this.#running ??= this.#run().catch((error: unknown) => {
      if (!this.#stop.aborted) this.#trouble(`lifecycle events stopped: ${errorMessage(error)}`);
    });
  }

  #trouble(message: string): void {
    this.#options.onTrouble?.(message);
  }

  #settle(source: EventSource | undefined): void {
    this.#source = source;
    for (const waiter of this.#settledWaiters) waiter(source);
    this.#settledWaiters.clear();
  }

  /** Streams until it breaks, then selects the best source again: the runtime may have come back as another. */
  async #run(): Promise<void> {
    const { clock, eventSource } = this.#options;
    const signal = this.#stop;
    const sources: readonly EventSource[] = eventSource === undefined ? ['cri', 'containerd', 'poll'] : [eventSource];
    let backoff: BackoffEntry | undefined;
    const stream = async (): Promise<number | undefined> => {
      for (const source of sources) {
        const end = await this.#serve(source);
        if (signal.aborted) return undefined;
        if (end.unimplemented && sources.length > 1) continue;
        this.#trouble(`${source} event stream: ${end.message}`);
        break;
      }
      this.#settle(undefined);
      backoff = nextBackoff(RECONNECT, backoff, clock.monotonic());
      return backoff.delayMs;
    };
    await repeat(stream, { clock, everyMs: RECONNECT.initialMs, signal });
  }

  /** Opens a source, lists under it, and stays with it until it ends. */
  async #serve(source: EventSource): Promise<CriStreamEnd> {
    const stream = this.#open(source);
    const ended = stream === undefined ? new Promise<CriStreamEnd>(() => undefined) : stream.ended;
    const stopped = new Promise<CriStreamEnd>((resolve) => {
      this.#stop.addEventListener('abort', () => resolve({ unimplemented: false, message: 'closed' }), {
        once: true,
      });
    });
    // The stream first, the list second: whatever happens between them is in one or the other.
    const refused = await Promise.race([
      ended,
      stopped,
      this.#options.clock.sleep(stream === undefined ? 0 : SETTLE_MS).then(() => undefined),
    ]);
    if (refused !== undefined) {
      stream?.cancel();
      return refused;
    }
    const over = new AbortController();
    if (source === 'cri') void this.#takeEndsFromBus(over.signal);
    try {
      // Before the list, so that what is read from now on can be relied on.
      if (source !== 'poll') this.#options.cache.apply({ kind: 'stream', serving: true });
      const answers = await this.#relist();
      // On a slow machine a refusal may come later than SETTLE_MS, but not later than the answer to a later call.
      await this.#options.clock.sleep(0);
      const late = await Promise.race([ended, undefined]);
      if (late !== undefined) return late;
      this.#settle(answers ? source : undefined);
      if (!answers && stream !== undefined) return { unimplemented: false, message: 'the runtime does not answer' };
      this.#relistMs = this.#options.relistPeriodMs;
      this.#scheduleRelist(source);
      return await Promise.race([ended, stopped]);
    } finally {
      this.#options.cache.apply({ kind: 'stream', serving: false });
      this.#relistTimer?.cancel();
      over.abort(new Error('the stream ended'));
      stream?.cancel();
    }
  }

  /** Takes ends from containerd's bus as well, for as long as CRI's stream serves; a runtime may have no such bus. */
  async #takeEndsFromBus(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const stream = async (): Promise<void> => {
      const bus = this.#openBus(CONTAINERD_END_FILTERS);
      const cancel = (): void => bus.cancel();
      signal.addEventListener('abort', cancel, { once: true });
      const end = await bus.ended;
      signal.removeEventListener('abort', cancel);
      if (!end.unimplemented) throw new Error(end.message);
    };
    await retryUntilAborted(stream, { clock, policy: RECONNECT, signal });
  }

  #openBus(filters: readonly string[]): CriStream {
    return this.#options.client.containerdEvents(filters, (envelope) => {
      const decoded = decodeEnvelope(envelope);
      if (decoded !== undefined) this.#take(decoded);
    });
  }

  #open(source: EventSource): CriStream | undefined {
    if (source === 'cri') {
      return this.#options.client.containerEvents((event) => {
        this.#takeStatuses(event);
        const decoded = decodeContainerEvent(event);
        if (decoded !== undefined) this.#take(decoded);
      });
    }
    return source === 'containerd' ? this.#openBus(CONTAINERD_FILTERS) : undefined;
  }

  /** A CRI event brings the statuses of the pod's containers along: an exit among them need not be read again. */
  #takeStatuses({ pod_sandbox_status, containers_statuses }: ContainerEventResponse__Output): void {
    const { cache, statuses } = this.#options;
    for (const status of containers_statuses) {
      const record = cache.container(status.id);
      if (record === undefined || record.statusState === 'exited' || status.state !== 'CONTAINER_EXITED') continue;
      const { snapshot } = statuses.full(status, pod_sandbox_status?.id);
      const { id, finished_at } = status;
      cache.apply({ kind: 'event', event: 'exited', id, at: nanosToMs(finished_at), status: snapshot });
    }
  }

  #take(event: RuntimeEvent): void {
    this.#listSoon();
    this.#handle(event).catch((error: unknown) => {
      if (this.#stop.aborted) return;
      // The relist finds what could not be confirmed; a stopped runtime ends its stream.
      if (!(error instanceof RuntimeError)) throw error;
      this.#trouble(`event ${event.kind} of ${event.id}: ${error.message}`);
    });
  }

  async #handle(event: RuntimeEvent): Promise<void> {
    const { cache, exits } = this.#options;
    const { id, at, kind } = event;
    if (kind === 'removed') {
      cache.apply({ kind: 'event', event: kind, id, at });
      return;
    }
    // A start of an unknown id is a sandbox that we are creating, or another client's: left to the relist.
    if (cache.get(id) === undefined && kind !== 'started') await this.#lookUp(id);
    const record = cache.get(id);
    if (record === undefined) return;
    if (kind !== 'exited') {
      cache.apply({ kind: 'event', event: kind, id, at });
      return;
    }
    // What becomes of a sandbox that we are stopping is in the answer of the call.
    if (record.kind === 'sandbox' && record.pending !== undefined) return;
    const { state } = record.snapshot;
    // Known already, and announced or shown: an exit that comes twice is one exit.
    if (state !== 'exited' && state !== 'notReady') await exits.track(event);
  }

  /** An id that is not known: made by another agent, or before this one started. The cache learns it. */
  async #lookUp(id: string): Promise<void> {
    const { statuses } = this.#options;
    if ((await statuses.container(id)) === undefined) await statuses.sandbox(id);
  }

  #scheduleRelist(source: EventSource, afterMs = this.#relistMs): void {
    const { clock, cache, relistPeriodMs } = this.#options;
    this.#relistTimer?.cancel();
    this.#relistTimer = clock.after(source === 'poll' ? POLL_MS : afterMs, () => {
      const { listedAt } = cache;
      const age = source === 'poll' || listedAt === undefined ? undefined : elapsedMs(listedAt, clock.monotonic());
      // Others list everything, too (housekeeping does): their list is as good.
      if (age !== undefined && age < this.#relistMs) {
        this.#scheduleRelist(source, this.#relistMs - age + OTHERS_FIRST_MS);
        return;
      }
      const isQuiet = cache.activity === this.#listedActivity;
      void this.#relist().then((ok) => {
        if (this.#stop.aborted) return;
        if (source === 'poll') this.#settle(ok ? source : undefined);
        this.#relistMs = ok && isQuiet ? nextRelistMs(this.#relistMs, relistPeriodMs) : relistPeriodMs;
        this.#scheduleRelist(source);
      });
    });
  }

  /** Where something happens, an event may be lost: the list waits no longer than its shortest period. */
  #listSoon(): void {
    const { relistPeriodMs } = this.#options;
    if (this.#source === undefined || this.#source === 'poll' || this.#relistMs === relistPeriodMs) return;
    this.#relistMs = relistPeriodMs;
    this.#scheduleRelist(this.#source);
  }

  /** Lists everything; what the cache did not know by then is reported as it takes the list in. */
  async #relist(): Promise<boolean> {
    const { observer, cache, clock, onRelist } = this.#options;
    const began = clock.monotonic();
    try {
      await observer.list();
      this.#listedActivity = cache.activity;
      onRelist?.(elapsedMs(began, clock.monotonic()));
      this.#relistFailed = false;
      return true;
    } catch (error) {
      if (this.#stop.aborted) return false;
      if (!(error instanceof RuntimeError)) throw error;
      if (!this.#relistFailed) this.#trouble(`relist: ${error.message}`);
      this.#relistFailed = true;
      return false;
    }
  }
}
