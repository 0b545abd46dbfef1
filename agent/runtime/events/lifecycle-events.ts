// Tells what happens to pods in the runtime, as it happens: by CRI's event stream where there is one, else by
// containerd's, else by a list every second; and by a slow list underneath in every case. An event is passed on only
// once an observation shows it, so that whoever is woken reads the truth at the first look. It wakes workers and
// does nothing else.
//
// CRI's stream alone is too slow for ends: containerd 1.7 and 2 put an exit on it only after they have torn the task
// down, some 80 ms after their own bus has told it (medians from SIGKILL, side by side on a busy machine: 121 against
// 25 ms with 1.7.35, 100 against 28 with 2.4.2); and 1.7 loses an event to a subscriber that has gone. So where the
// same socket serves containerd's bus too, ends are also taken from there. Whichever tells first is believed.

import { type BackoffEntry, type BackoffPolicy, nextBackoff } from '../../../lib/backoff.ts';
import type { Clock, Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { PodLifecycleEvent, PodUID } from '../../ports/runtime.ts';
import { RuntimeError } from '../../ports/runtime.ts';
import { containerId } from '../convert.ts';
import type { CriClient, CriStream, CriStreamEnd } from '../cri-client.ts';
import type { Observer } from '../observe.ts';
import type { EventSource } from '../options.ts';
import type { IdRegistry, KnownId } from '../registry.ts';
import { CONTAINERD_END_FILTERS, CONTAINERD_FILTERS, decodeEnvelope } from './containerd-events.ts';
import { decodeContainerEvent } from './cri-events.ts';
import { Ends } from './ends.ts';
import { diffRelist, type ListedState, listedStates, notedBefore, plegProblem } from './relist.ts';
import type { RuntimeEvent } from './runtime-event.ts';

const DEFAULT_RELIST_MS = 10_000;
const POLL_MS = 1000;
/** A stream that is not served says so within a round trip; after this long it counts as open. ms. */
const SETTLE_MS = 50;
const RECONNECT: BackoffPolicy = { initialMs: 100, maxMs: 2000, factor: 2, resetMs: 30_000 };

export interface LifecycleOptions {
  readonly client: CriClient;
  readonly observer: Observer;
  readonly registry: IdRegistry;
  readonly clock: Clock;
  readonly relistPeriodMs?: number;
  readonly eventSource?: EventSource;
  readonly onTrouble?: (message: string) => void;
}

export class LifecycleEvents {
  readonly #options: LifecycleOptions;
  readonly #listeners = new Set<(event: PodLifecycleEvent) => void>();
  readonly #stop = new AbortController();
  readonly #ends: Ends;
  /** What listeners have been told, or did themselves: the list to compare the next one with. */
  #told = new Map<string, ListedState>();
  #listed = false;
  #source: EventSource | undefined;
  #relistTimer: Timer | undefined;
  #relistFailed = false;
  /** Monotonic ms: when the first list was due, and when one last succeeded. */
  #startedAt: number | undefined;
  #relistedAt: number | undefined;
  #running: Promise<void> | undefined;
  readonly #settledWaiters = new Set<(source: EventSource | undefined) => void>();

  constructor(options: LifecycleOptions) {
    this.#options = options;
    const { observer, clock } = options;
    this.#ends = new Ends({
      observer,
      clock,
      signal: this.#stop.signal,
      onDead: (id, { pod, kind }) => this.#told.set(id, { podUID: pod.uid, kind, state: 'dead' }),
      emit: (id, known, type, at) => this.#emit(id, known, type, at),
    });
  }

  /** Waits until the runtime has finished with the ends of the pod's containers, all or one. */
  deathsSettled(podUID: PodUID, id?: string): Promise<void> {
    return this.#ends.settled((container) =>
      id === undefined ? this.#options.registry.get(container)?.pod.uid === podUID : container === id,
    );
  }

  /** The first listener starts the stream; it then runs until `close`. */
  watch(listener: (event: PodLifecycleEvent) => void): () => void {
    this.#listeners.add(listener);
    this.#start();
    return () => this.#listeners.delete(listener);
  }

  /** The source in use, once one is; undefined when the runtime cannot be reached. */
  settled(): Promise<EventSource | undefined> {
    this.#start();
    if (this.#source !== undefined) return Promise.resolve(this.#source);
    return new Promise((resolve) => this.#settledWaiters.add(resolve));
  }

  // What the adapter does itself needs no event: the worker that asked looks by itself.
  noteContainerRunning(id: string, podUID: PodUID): void {
    this.#told.set(id, { podUID, kind: 'container', state: 'running' });
  }
  noteSandboxRunning(id: string, podUID: PodUID): void {
    this.#told.set(id, { podUID, kind: 'sandbox', state: 'running' });
  }
  noteRemoved(id: string): void {
    this.#told.delete(id);
  }

  close(): void {
    this.#stop.abort(new Error('closed'));
    this.#relistTimer?.cancel();
    this.#listeners.clear();
    this.#settle(undefined);
  }

  /** Why this is not healthy, in the kubelet's words (pkg/kubelet/pleg, Healthy); undefined while it is. */
  problem(): string | undefined {
    return plegProblem(this.#startedAt, this.#relistedAt, this.#options.clock.monotonic());
  }

  #start(): void {
    this.#startedAt ??= this.#options.clock.monotonic();
    this.#running ??= this.#run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#trouble(`lifecycle events stopped: ${errorMessage(error)}`);
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

  /** Streams until it breaks, then looks again for the best source: the runtime may have come back as another. */
  async #run(): Promise<void> {
    const { clock, eventSource } = this.#options;
    const { signal } = this.#stop;
    const sources: readonly EventSource[] = eventSource === undefined ? ['cri', 'containerd', 'poll'] : [eventSource];
    let backoff: BackoffEntry | undefined;
    while (!signal.aborted) {
      for (const source of sources) {
        const end = await this.#serve(source);
        if (signal.aborted) return;
        if (end.unimplemented && sources.length > 1) continue;
        this.#trouble(`${source} event stream: ${end.message}`);
        break;
      }
      this.#settle(undefined);
      backoff = nextBackoff(RECONNECT, backoff, clock.now());
      await clock.sleep(backoff.delayMs, signal);
    }
  }

  /** Opens a source, lists under it, and stays with it until it ends. */
  async #serve(source: EventSource): Promise<CriStreamEnd> {
    const stream = this.#open(source);
    const ended = stream === undefined ? new Promise<CriStreamEnd>(() => undefined) : stream.ended;
    const stopped = new Promise<CriStreamEnd>((resolve) => {
      this.#stop.signal.addEventListener('abort', () => resolve({ unimplemented: false, message: 'closed' }), {
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
    if (source === 'cri') this.#alsoBus(over.signal).catch((error: unknown) => this.#unlessOver(over.signal, error));
    try {
      const answers = await this.#relist();
      // On a slow machine a refusal may come later than SETTLE_MS, but not later than the answer to what was asked after.
      await this.#options.clock.sleep(0);
      const late = await Promise.race([ended, undefined]);
      if (late !== undefined) return late;
      this.#settle(answers ? source : undefined);
      if (!answers && stream !== undefined) return { unimplemented: false, message: 'the runtime does not answer' };
      this.#scheduleRelist(source);
      return await Promise.race([ended, stopped]);
    } finally {
      this.#relistTimer?.cancel();
      over.abort(new Error('the stream ended'));
      stream?.cancel();
    }
  }

  #unlessOver(signal: AbortSignal, error: unknown): void {
    if (!signal.aborted) throw error;
  }

  /** Takes ends from containerd's bus as well, for as long as CRI's stream serves; a runtime may have no such bus. */
  async #alsoBus(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let backoff: BackoffEntry | undefined;
    while (!signal.aborted) {
      const stream = this.#openBus(CONTAINERD_END_FILTERS);
      const cancel = (): void => stream.cancel();
      signal.addEventListener('abort', cancel, { once: true });
      const end = await stream.ended;
      signal.removeEventListener('abort', cancel);
      if (end.unimplemented) return;
      backoff = nextBackoff(RECONNECT, backoff, clock.now());
      await clock.sleep(backoff.delayMs, signal);
    }
  }

  #openBus(filters: readonly string[]): CriStream {
    return this.#options.client.containerdEvents(filters, (envelope) => {
      const decoded = decodeEnvelope(envelope);
      if (decoded !== undefined) this.#take(decoded);
    });
  }

  #open(source: EventSource): CriStream | undefined {
    const { client, observer } = this.#options;
    if (source === 'cri') {
      return client.containerEvents((event) => {
        // The event brings the statuses along: an exit among them need not be asked for again.
        for (const container of event.containers_statuses)
          observer.prime(event.pod_sandbox_status?.id ?? '', container);
        const decoded = decodeContainerEvent(event);
        if (decoded !== undefined) this.#take(decoded);
      });
    }
    return source === 'containerd' ? this.#openBus(CONTAINERD_FILTERS) : undefined;
  }

  #take(event: RuntimeEvent): void {
    this.#handle(event).catch((error: unknown) => {
      if (this.#stop.signal.aborted) return;
      // The relist finds what could not be confirmed; a runtime that went away is told by its stream.
      if (!(error instanceof RuntimeError)) throw error;
      this.#trouble(`event ${event.kind} of ${event.id}: ${error.message}`);
    });
  }

  async #handle(event: RuntimeEvent): Promise<void> {
    const { registry, observer } = this.#options;
    const { id, at } = event;
    if (event.kind === 'removed') {
      const known = registry.get(id);
      observer.forget(id);
      registry.forget(id);
      const told = this.#told.delete(id);
      // Unknown, or removed by ourselves: nobody is surprised.
      if (known !== undefined && told) this.#emit(id, known, 'containerRemoved', at);
      return;
    }
    const before = this.#told.get(id)?.state;
    // What is dead never runs again: a start told after the end is an old story, and an end told twice is one end.
    if (before === 'dead' && event.kind !== 'oom') return;
    if (event.kind === 'started' && before === 'running') return;
    // A start that we do not know is a sandbox of ours still in the making, or a stranger's: the relist's business.
    const known = registry.get(id) ?? (event.kind === 'started' ? undefined : await this.#lookUp(id));
    if (known === undefined) return;
    if (event.kind === 'oom') {
      if (observer.noteOom(id)) this.#emit(id, known, 'podSync', at);
      return;
    }
    if (event.kind === 'started') {
      this.#told.set(id, { podUID: known.pod.uid, kind: known.kind, state: 'running' });
      this.#emit(id, known, 'containerStarted', at);
      return;
    }
    await this.#ends.follow(event, known);
  }

  #emit(id: string, known: KnownId, type: PodLifecycleEvent['type'], at: number): void {
    const podUID = known.pod.uid;
    this.#send(
      known.kind === 'sandbox' || type === 'podSync'
        ? { podUID, type: 'podSync', at }
        : { podUID, type, containerId: containerId(id), at },
    );
  }

  #send(event: PodLifecycleEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** An id that nobody told us of: made by someone else, or before we started. */
  async #lookUp(id: string): Promise<KnownId | undefined> {
    const { registry, observer } = this.#options;
    if (!(await observer.lookUpContainer(id))) await observer.readSandboxReady(id);
    return registry.get(id);
  }

  #scheduleRelist(source: EventSource): void {
    const { clock, relistPeriodMs } = this.#options;
    const period = source === 'poll' ? POLL_MS : (relistPeriodMs ?? DEFAULT_RELIST_MS);
    this.#relistTimer?.cancel();
    this.#relistTimer = clock.after(period, () => {
      void this.#relist().then((ok) => {
        if (this.#stop.signal.aborted) return;
        if (source === 'poll') this.#settle(ok ? source : undefined);
        this.#scheduleRelist(source);
      });
    });
  }

  /** Lists, and tells what changed since. The very first list is news about nobody. */
  async #relist(): Promise<boolean> {
    const { observer, clock } = this.#options;
    const before = new Map(this.#told);
    try {
      const noted = notedBefore(before, (id) => observer.cached(id)?.state);
      const after = listedStates(await observer.list());
      const events = this.#listed ? diffRelist(noted, after, clock.now()) : [];
      // What was noted while the list was under way is newer than the list.
      for (const [id, state] of this.#told) if (before.get(id) !== state) after.set(id, state);
      for (const id of before.keys()) if (!this.#told.has(id)) after.delete(id);
      this.#told = after;
      this.#listed = true;
      this.#relistedAt = clock.monotonic();
      this.#relistFailed = false;
      for (const event of events) this.#send(event);
      return true;
    } catch (error) {
      if (this.#stop.signal.aborted) return false;
      if (!(error instanceof RuntimeError)) throw error;
      if (!this.#relistFailed) this.#trouble(`relist: ${error.message}`);
      this.#relistFailed = true;
      return false;
    }
  }
}
