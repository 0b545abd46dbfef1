// Records events (core/v1 Event) without ever making its caller wait or fail: a bounded queue, one sender. What is
// sent is decided by the correlator. Never throws; what could not be recorded is reported to `onDropped`.

import { AsyncLocalStorage } from 'node:async_hooks';
import { sleepUnlessAborted } from '../lib/abort.ts';
import { type Clock, type EpochMs, earlier, elapsedMs, type MonotonicMs, plusMs, type Timer } from '../lib/clock.ts';
import { cutWithMark } from '../lib/cut.ts';
import { rfc3339 } from '../lib/rfc3339.ts';
import type { TraceContext, Tracer } from '../lib/trace.ts';
import type { ApiClient } from './api.ts';
import { isAlreadyExists, isNotFound, isTransient } from './errors.ts';
import { EventCorrelator, type OutgoingEvent } from './event-correlator.ts';
import { resourcePath } from './paths.ts';

/** What an event is about. Without `kind` it is a Pod's. */
export interface EventSubject {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion?: string;
  };
  readonly fieldPath?: string;
}

export interface RecorderOptions {
  readonly client: Pick<ApiClient, 'create' | 'patch'>;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** "kubelet", "default-scheduler". */
  readonly component: string;
  /** The node's name, for events that a node reports. */
  readonly host?: string;
  /**
   * Events are sent once none has been recorded for this long (ms), so that recording does not slow down the work that is
   * recorded. Where that never comes, each is sent when it has waited ten times as long. Default 0.
   */
  readonly delayMs?: number;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
  readonly onDropped?: (what: string, error: unknown) => void;
}

/** Events waiting to be sent; more are dropped, as client-go's broadcaster does. */
const QUEUE_LIMIT = 1000;
/** client-go's figures for an API server that does not answer. */
const MAX_TRIES = 12;
const RETRY_MS = 10_000;

/**
 * A message is no longer than this, in bytes: the output of a probe (10 KiB) and the words around it, the longest text that
 * the kubelet puts into an event.
 */
const MAX_MESSAGE_BYTES = 12 * 1024;

/** Longest wait for quiet, in units of `delayMs`. */
const MAX_WAITS = 10;
/** With more events than this in the queue there is no more waiting: none is dropped because others wait for quiet. */
const WAITING_LIMIT = QUEUE_LIMIT / 2;
/** The delay of a node's or control plane's components: long enough for a pod to start before its events are sent. */
export const EVENT_DELAY_MS = 500;

interface Queued {
  readonly event: OutgoingEvent;
  readonly at: EpochMs;
  readonly queuedAt: MonotonicMs;
  readonly context: TraceContext;
}

export class Recorder {
  readonly #options: RecorderOptions;
  readonly #correlator = new EventCorrelator();
  readonly #random: () => number;
  readonly #queue: Queued[] = [];
  readonly #closed = new AbortController();
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** When the newest event was recorded. */
  #newestAt: MonotonicMs;
  /** Nothing waits for quiet any more. */
  #flushing = 0;
  /** Runs the sender in the context of the constructor, not of whichever pod's event happened to start it. */
  readonly #apart = AsyncLocalStorage.snapshot();
  /** Makes names differ that were given in the same microsecond. */
  #sequence = 0n;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#newestAt = options.clock.monotonic();
  }

  event(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    if (this.#closed.signal.aborted) return;
    const now = this.#options.clock.now();
    const event = this.#makeEvent(subject, type, reason, message, now);
    if (this.#queue.length >= QUEUE_LIMIT) {
      this.#dropped(event, new Error(`${QUEUE_LIMIT} events are waiting already`));
      return;
    }
    this.#newestAt = this.#options.clock.monotonic();
    this.#queue.push({ event, at: now, queuedAt: this.#newestAt, context: this.#options.tracer.context() });
    this.#schedule();
  }

  /** Sends what is due, now or when the oldest event may become so. One timer, not one for each event. */
  #schedule(): void {
    if (this.#sending !== undefined) return;
    const waitMs = this.#waitMs();
    if (waitMs === undefined) return;
    if (waitMs <= 0) {
      this.#timer?.cancel();
      this.#timer = undefined;
      this.#sending = this.#apart(() => this.#sendDue()).finally(() => {
        this.#sending = undefined;
        this.#schedule();
      });
      return;
    }
    this.#timer ??= this.#apart(() =>
      this.#options.clock.after(waitMs, () => {
        this.#timer = undefined;
        this.#schedule();
      }),
    );
  }

  /** How long the oldest event has to wait still, ms; undefined when there is none. */
  #waitMs(): number | undefined {
    const { clock, delayMs = 0 } = this.#options;
    const [oldest] = this.#queue;
    if (oldest === undefined) return undefined;
    if (this.#flushing > 0 || this.#queue.length > WAITING_LIMIT) return 0;
    const dueAt = earlier(plusMs(this.#newestAt, delayMs), plusMs(oldest.queuedAt, delayMs * MAX_WAITS));
    return elapsedMs(clock.monotonic(), dueAt);
  }

  /** Sends what waits. Resolves when everything recorded so far is sent or given up. */
  async flush(): Promise<void> {
    this.#flushing++;
    try {
      this.#schedule();
      while (this.#sending !== undefined) await this.#sending;
    } finally {
      this.#flushing--;
    }
  }

  /** Drops what is not sent yet; nothing is recorded from now on. */
  close(): void {
    this.#closed.abort(new Error('the event recorder is closed'));
    this.#queue.length = 0;
    this.#timer?.cancel();
  }

  #makeEvent(
    subject: EventSubject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    now: EpochMs,
  ): OutgoingEvent {
    const { component, host } = this.#options;
    const { name, namespace, uid, resourceVersion } = subject.metadata;
    const timestamp = rfc3339(now);
    const inNamespace = namespace !== undefined && namespace !== '';
    const nanoseconds = BigInt(now) * 1_000_000n + (this.#sequence++ % 1_000_000n);
    return {
      apiVersion: 'v1',
      kind: 'Event',
      // Events about cluster-scoped objects live in "default".
      metadata: { name: `${name}.${nanoseconds.toString(16)}`, namespace: inNamespace ? namespace : 'default' },
      involvedObject: {
        kind: subject.kind ?? 'Pod',
        apiVersion: subject.apiVersion ?? 'v1',
        name,
        uid,
        ...(inNamespace ? { namespace } : {}),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(subject.fieldPath === undefined ? {} : { fieldPath: subject.fieldPath }),
      },
      reason,
      message: cutWithMark(message, MAX_MESSAGE_BYTES),
      type,
      source: { component, ...(host === undefined ? {} : { host }) },
      reportingComponent: component,
      reportingInstance: host ?? '',
      count: 1,
      firstTimestamp: timestamp,
      lastTimestamp: timestamp,
    };
  }

  async #sendDue(): Promise<void> {
    for (let waitMs = this.#waitMs(); waitMs !== undefined && waitMs <= 0; waitMs = this.#waitMs()) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      const { event, at, context } = next;
      await this.#options.tracer.within(context, () => this.#send(event, at));
    }
  }

  async #send(event: OutgoingEvent, at: EpochMs): Promise<void> {
    const correlation = this.#correlator.correlate(event, at);
    if (correlation.kind === 'drop') return;
    // Not `retry`: a close ends the pause, and one last try comes after it.
    for (let tries = 1; ; tries++) {
      try {
        if (correlation.kind === 'patch') await this.#patch(correlation.event, correlation.patch);
        else await this.#create(correlation.event);
        return;
      } catch (error) {
        if (!isTransient(error) || tries >= MAX_TRIES || this.#closed.signal.aborted) {
          this.#dropped(event, error);
          return;
        }
        // The first wait is shortened at random, so that a cluster's recorders do not come back together.
        const waitMs = tries === 1 ? RETRY_MS * this.#random() : RETRY_MS;
        await sleepUnlessAborted(this.#options.clock, waitMs, this.#closed.signal);
      }
    }
  }

  async #create(event: OutgoingEvent): Promise<void> {
    const { namespace } = event.metadata;
    try {
      await this.#options.client.create(resourcePath('v1', 'events', { namespace }), event);
    } catch (error) {
      // An earlier try got through although its answer did not.
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #patch(event: OutgoingEvent, patch: object): Promise<void> {
    const { name, namespace } = event.metadata;
    try {
      await this.#options.client.patch(resourcePath('v1', 'events', { namespace, name }), patch, 'strategic');
    } catch (error) {
      // The server deletes events after their TTL; the count continues in a new one.
      if (!isNotFound(error)) throw error;
      await this.#create(event);
    }
  }

  #dropped(event: OutgoingEvent, error: unknown): void {
    const { kind, namespace, name } = event.involvedObject;
    const about = namespace === undefined ? name : `${namespace}/${name}`;
    this.#options.onDropped?.(`${event.reason} about ${kind} ${about}: ${event.message}`, error);
  }
}
