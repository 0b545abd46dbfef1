// The scheduling queue: pods to be scheduled now (active, in the order of the queue sort), pods that failed a moment ago
// (back-off), pods that fit nowhere (unschedulable, until an event may help or five minutes have passed), and pods that may not
// be scheduled yet (gated). As in kube-scheduler 1.34 a pod's back-off is cut short when nothing else is active, except after
// an error.

import type { Pod } from '../../../client/types.ts';
import { type Clock, elapsedMs, type MonotonicMs, plusMs, type Timer } from '../../../lib/clock.ts';
import { type PodInfo, podInfo } from '../cache/pod-info.ts';
import { type ClusterEvent, eventLabel, podChanges } from '../events.ts';
import type { Sortable } from '../framework/plugin.ts';
import type { QueueName } from '../metrics.ts';
import { Heap } from './heap.ts';

export interface QueuedPod extends Sortable {
  readonly info: PodInfo;
  readonly order: number;
  /** When it could first be tried. */
  readonly enteredAt: MonotonicMs | undefined;
  /** Scheduling cycles so far. */
  readonly attempts: number;
  /** Cycles that ended with no node, since the last error; and errors in a row. */
  readonly unschedulable: number;
  readonly errors: number;
  /** When the last attempt ended. */
  readonly failedAt: MonotonicMs;
  /** Plugins that rejected it then: their hints decide what brings it back. None: every event does. */
  readonly plugins: ReadonlySet<string>;
}

export interface QueueOptions {
  readonly clock: Clock;
  compare(a: Sortable, b: Sortable): number;
  /** Whether the pod may become active: PreEnqueue. */
  mayEnter(pod: PodInfo): boolean;
  /** Whether the event may make a pod schedulable that these plugins rejected. */
  worthRetrying(event: ClusterEvent, pod: QueuedPod): boolean;
  /** A pod has come to a queue, because of an event that has kube-scheduler's name. */
  readonly onIncoming?: (queue: QueueName, event: string) => void;
  /** ms */
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
}

/** kube-scheduler's names of what brings pods to a queue and is no event of the cluster. */
const ATTEMPT_FAILED = 'ScheduleAttemptFailure';
const BACKOFF_COMPLETE = 'BackoffComplete';
const POPPED_FROM_BACKOFF = 'PopFromBackoffQ';
const FORCED = 'ForceActivate';
const TIMEOUT = 'UnschedulableTimeout';
const NEW_POD = 'UnschedulablePodAdd';

/** A pod that fits nowhere is tried again after this long even without any event, ms. */
export const FLUSH_MS = 300_000;

/** How long a pod waits after a failed attempt, in ms: doubled with each one. */
export function backoffMs(failures: number, initialMs: number, maxMs: number): number {
  return failures === 0 ? 0 : Math.min(maxMs, initialMs * 2 ** Math.min(failures - 1, 40));
}

const keyOf = ({ info }: QueuedPod): string => info.uid;

export class SchedulingQueue {
  readonly #options: QueueOptions;
  readonly #active: Heap<QueuedPod>;
  readonly #backoff: Heap<QueuedPod>;
  readonly #errorBackoff: Heap<QueuedPod>;
  readonly #unschedulable = new Map<string, QueuedPod>();
  readonly #gated = new Map<string, QueuedPod>();
  /** Pods in a scheduling or binding cycle → the events that happened since they were taken. */
  readonly #inFlight = new Map<string, ClusterEvent[]>();
  #orders = 0;
  #timer: { readonly dueAt: MonotonicMs; readonly timer: Timer } | undefined;
  #taker: ((pod: QueuedPod | undefined) => void) | undefined;
  #closed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    const byExpiry = (a: QueuedPod, b: QueuedPod): number => elapsedMs(this.#expiry(b), this.#expiry(a));
    this.#active = new Heap<QueuedPod>(keyOf, (a, b) => options.compare(a, b));
    this.#backoff = new Heap(keyOf, byExpiry);
    this.#errorBackoff = new Heap(keyOf, byExpiry);
  }

  /** How many pods wait where. */
  get sizes() {
    return {
      active: this.#active.size,
      backoff: this.#backoff.size + this.#errorBackoff.size,
      unschedulable: this.#unschedulable.size,
      gated: this.#gated.size,
    };
  }

  /** Those that have been tried and wait, with who rejected them. */
  get rejected(): readonly QueuedPod[] {
    return [...this.#unschedulable.values(), ...this.#backoff.items()];
  }

  /** A pod without a node, as it is now. */
  set(pod: Pod): void {
    const { uid } = pod.metadata;
    const known = this.#find(uid);
    if (known === undefined) {
      if (!this.#inFlight.has(uid)) this.#enter(this.#fresh(podInfo(pod)), NEW_POD);
      return;
    }
    const old = known.info.pod;
    const changed = podChanges(old, pod);
    const updated = { ...known, info: podInfo(pod) };
    const event: ClusterEvent = { resource: 'Self', action: 'update', object: pod, old, changed };
    if (this.#gated.delete(uid)) this.#enter(updated, eventLabel(event));
    else if (this.#unschedulable.delete(uid)) {
      if (changed.size > 0 && this.#options.worthRetrying(event, updated)) this.#requeue(updated, eventLabel(event));
      else this.#unschedulable.set(uid, updated);
    } else for (const heap of [this.#active, this.#backoff, this.#errorBackoff]) if (heap.get(uid)) heap.push(updated);
  }

  /** A pod in flight has changed: recorded for the case that it comes back. */
  changedInFlight(old: Pod, pod: Pod): void {
    const changed = podChanges(old, pod);
    if (changed.size === 0) return;
    this.#inFlight.get(pod.metadata.uid)?.push({ resource: 'Self', action: 'update', object: pod, old, changed });
  }

  isInFlight(uid: string): boolean {
    return this.#inFlight.has(uid);
  }

  /** Gone, or bound. */
  delete(uid: string): void {
    for (const heap of [this.#active, this.#backoff, this.#errorBackoff]) heap.remove(uid);
    this.#unschedulable.delete(uid);
    this.#gated.delete(uid);
  }

  /** Moves the pods that the event may have made schedulable. */
  onEvent(event: ClusterEvent): void {
    for (const events of this.#inFlight.values()) events.push(event);
    for (const pod of [...this.#unschedulable.values()]) {
      if (this.#options.worthRetrying(event, pod)) this.#requeue(pod, eventLabel(event));
    }
  }

  /** Tries a pod again at once, whatever rejected it. */
  activate(uid: string): void {
    const pod = this.#find(uid);
    if (pod === undefined || this.#active.get(uid) !== undefined) return;
    this.delete(uid);
    this.#enter(pod, FORCED);
  }

  /** What kept a pod from entering may have ended. */
  release(uid: string): void {
    const pod = this.#gated.get(uid);
    if (pod === undefined) return;
    this.#gated.delete(uid);
    this.#enter(pod, FORCED);
  }

  /** The next pod, in flight until `done` or `failed`; undefined once the queue is closed. At most one caller may wait. */
  take(): Promise<QueuedPod | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const pod = this.#next();
    if (pod !== undefined) return Promise.resolve(pod);
    return new Promise((resolve) => {
      this.#taker = resolve;
    });
  }

  /** The pod is bound, or gone. */
  done(uid: string): void {
    this.#inFlight.delete(uid);
  }

  /** The attempt has ended without a node; with `plugins` that rejected it, or with none after an error. */
  failed(pod: QueuedPod, plugins: ReadonlySet<string>): void {
    const { uid } = pod.info;
    const events = this.#inFlight.get(uid) ?? [];
    this.#inFlight.delete(uid);
    const error = plugins.size === 0;
    const failed: QueuedPod = {
      ...pod,
      plugins,
      order: this.#orders++,
      failedAt: this.#options.clock.monotonic(),
      unschedulable: error ? pod.unschedulable : pod.unschedulable + 1,
      errors: error ? pod.errors + 1 : 0,
    };
    if (error || events.some((event) => this.#options.worthRetrying(event, failed))) {
      this.#requeue(failed, ATTEMPT_FAILED);
    } else this.#park(failed);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.timer.cancel();
    this.#taker?.(undefined);
    this.#taker = undefined;
  }

  #fresh(info: PodInfo): QueuedPod {
    const failedAt = this.#options.clock.monotonic();
    const none = { attempts: 0, unschedulable: 0, errors: 0, plugins: new Set<string>() };
    return { info, order: this.#orders++, enteredAt: undefined, failedAt, ...none };
  }

  #find(uid: string): QueuedPod | undefined {
    return (
      this.#active.get(uid) ??
      this.#backoff.get(uid) ??
      this.#errorBackoff.get(uid) ??
      this.#unschedulable.get(uid) ??
      this.#gated.get(uid)
    );
  }

  #expiry({ failedAt, unschedulable, errors }: QueuedPod): MonotonicMs {
    const { initialBackoffMs, maxBackoffMs } = this.#options;
    return plusMs(failedAt, backoffMs(errors > 0 ? errors : unschedulable, initialBackoffMs, maxBackoffMs));
  }

  /** Into the active queue, if the plugins let it. */
  #enter(pod: QueuedPod, event: string): void {
    if (!this.#options.mayEnter(pod.info)) {
      this.#gate(pod, event);
      return;
    }
    this.#active.push({ ...pod, enteredAt: pod.enteredAt ?? this.#options.clock.monotonic() });
    this.#options.onIncoming?.('active', event);
    this.#wake();
  }

  #gate(pod: QueuedPod, event: string): void {
    this.#gated.set(pod.info.uid, pod);
    this.#options.onIncoming?.('unschedulable', event);
  }

  #requeue(pod: QueuedPod, event: string): void {
    this.#unschedulable.delete(pod.info.uid);
    if (this.#options.clock.monotonic() >= this.#expiry(pod)) this.#enter(pod, event);
    else if (!this.#options.mayEnter(pod.info)) this.#gate(pod, event);
    else {
      (pod.errors > 0 ? this.#errorBackoff : this.#backoff).push(pod);
      this.#options.onIncoming?.('backoff', event);
      this.#wake();
      this.#arm();
    }
  }

  #park(pod: QueuedPod): void {
    this.#unschedulable.set(pod.info.uid, pod);
    this.#options.onIncoming?.('unschedulable', ATTEMPT_FAILED);
    this.#arm();
  }

  #next(): QueuedPod | undefined {
    const now = this.#options.clock.monotonic();
    for (const heap of [this.#backoff, this.#errorBackoff]) {
      for (let pod = heap.peek(); pod !== undefined && this.#expiry(pod) <= now; pod = heap.peek()) {
        heap.pop();
        this.#active.push(pod);
        this.#options.onIncoming?.('active', BACKOFF_COMPLETE);
      }
    }
    const pod = this.#active.pop() ?? this.#fromBackoff();
    if (pod === undefined) return undefined;
    this.#inFlight.set(pod.info.uid, []);
    return { ...pod, attempts: pod.attempts + 1 };
  }

  /** Nothing else is active: its back-off need not end. */
  #fromBackoff(): QueuedPod | undefined {
    const pod = this.#backoff.pop();
    if (pod !== undefined) this.#options.onIncoming?.('active', POPPED_FROM_BACKOFF);
    return pod;
  }

  #wake(): void {
    if (this.#taker === undefined) return;
    const pod = this.#next();
    if (pod === undefined) return;
    const taker = this.#taker;
    this.#taker = undefined;
    taker(pod);
  }

  /** One timer: for the end of an error's back-off, or of the longest wait of an unschedulable pod. */
  #arm(): void {
    const [oldest] = this.#unschedulable.values();
    const error = this.#errorBackoff.peek();
    const times = [
      oldest === undefined ? [] : plusMs(oldest.failedAt, FLUSH_MS),
      error === undefined ? [] : this.#expiry(error),
    ];
    const dueAt = times.flat().toSorted((a, b) => elapsedMs(b, a))[0];
    if (dueAt === undefined || this.#closed) return;
    if (this.#timer !== undefined && this.#timer.dueAt <= dueAt) return;
    this.#timer?.timer.cancel();
    const now = this.#options.clock.monotonic();
    this.#timer = { dueAt, timer: this.#options.clock.after(Math.max(0, elapsedMs(now, dueAt)), () => this.#due()) };
  }

  #due(): void {
    this.#timer = undefined;
    const now = this.#options.clock.monotonic();
    for (const pod of [...this.#unschedulable.values()]) {
      if (elapsedMs(pod.failedAt, now) < FLUSH_MS) break;
      this.#requeue(pod, TIMEOUT);
    }
    this.#wake();
    this.#arm();
  }
}
