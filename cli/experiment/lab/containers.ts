// The containers of a runtime as an experiment observes them: containerd's own events tell of each start, exit and removal with
// its moment, and a list says whose containers they are. Another runtime has no such events: there lists alone are read,
// again and again, and what was created and removed between two of them is not seen.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import { CONTAINERD_FILTERS, decodeEnvelope } from '../../../agent/runtime/events/containerd-events.ts';
import type { RuntimeEvent } from '../../../agent/runtime/events/runtime-event.ts';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { resolvesWithin } from '../../../lib/abort.ts';
import { type Clock, type EpochMs, elapsedMs, epochMs, plusMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { repeat } from '../../../lib/retry.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import {
  type ContainerChange,
  ContainerLives,
  type ContainerState,
  type ContainerStates,
  containerOfCall,
} from './container-lives.ts';

const NANOSECONDS = 1e6;
/** An answer that takes longer is looked for again. */
const CALL_MS = 5_000;
const POD_NAME = 'io.kubernetes.pod.name';
const POD_NAMESPACE = 'io.kubernetes.pod.namespace';
const POD_UID = 'io.kubernetes.pod.uid';

/** Between two looks at a runtime without events, and two tries to reach one that is away. */
const LOOK_MS = 150;
/** By then the events about a container that is no longer listed have come, or do not come. */
const EVENT_MS = 5_000;

/** Whether the runtime is away, busy, or has just started: containerd answers before its CRI plugin has read what is there. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof RuntimeError)) return false;
  return (
    ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED'].includes(error.code) ||
    error.message.includes('server is not initialized yet')
  );
}

export interface FollowParts {
  readonly clock: Clock;
  /** What events show. */
  readonly onChanges: (changes: readonly ContainerChange[]) => void;
  /** An event was about a container that no list has had: what it shows comes with the next. */
  readonly onUnknown: () => void;
  /** To call `look` of the watch, with what comes of it. */
  readonly look: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** One connection to the runtime's events. */
interface Subscription {
  readonly over: AbortSignal;
  /** Whether a list was read since it began. */
  hasLooked: boolean;
}

export class ContainerWatch {
  readonly #cri: CriClient;
  readonly #lives = new ContainerLives();
  /** Ids with the state that was listed and what its status had: it is read again only when the state has changed. */
  #seen = new Map<string, { readonly listed: string; readonly state: ContainerState }>();
  #subscription: Subscription | undefined;
  /** Resolves with the next event. */
  #event = Promise.withResolvers<void>();

  /** `cri` is closed with it. */
  constructor(cri: CriClient) {
    this.#cri = cri;
  }

  /** Of the runtime at a unix socket, which need not be there yet. */
  static at(socket: string): ContainerWatch {
    return new ContainerWatch(createCriClient(`unix://${socket}`, `unix://${socket}`, new Tracer()));
  }

  /** Those that exist, by id. */
  get containers(): ContainerStates {
    return this.#lives.containers;
  }

  /** A call of the agent: what it shows of a container that went before a list had it. */
  named(span: Span): readonly ContainerChange[] {
    const container = containerOfCall(span);
    return container === undefined ? [] : this.#lives.named(container);
  }

  /** Until the signal aborts, through restarts of the runtime. */
  async follow(parts: FollowParts): Promise<void> {
    const { clock, look, signal } = parts;
    let hasEvents = true;
    const round = async (): Promise<undefined> => {
      if (hasEvents) hasEvents = await this.#subscribe(parts);
      else await look();
    };
    await repeat(round, { clock, everyMs: LOOK_MS, signal });
  }

  /** Until the stream of events is over; resolves to false where the runtime has none. */
  async #subscribe({ onChanges, onUnknown, look, signal }: FollowParts): Promise<boolean> {
    const over = new AbortController();
    const stream = this.#cri.containerdEvents(CONTAINERD_FILTERS, (envelope) => {
      const event = decodeEnvelope(envelope);
      if (event === undefined) return;
      onChanges(this.#lives.event(event));
      this.#event.resolve();
      this.#event = Promise.withResolvers();
      if (this.#isNew(event)) onUnknown();
    });
    this.#subscription = { over: over.signal, hasLooked: false };
    const cancel = (): void => stream.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    const ended = stream.ended.finally(() => {
      this.#subscription = undefined;
      over.abort();
      signal.removeEventListener('abort', cancel);
    });
    // What was there before the first event.
    await look();
    return !(await ended).unimplemented;
  }

  #isNew({ id, kind }: RuntimeEvent): boolean {
    return kind !== 'removed' && kind !== 'oom' && !this.#lives.containers.has(id);
  }

  /** Undefined while the runtime does not answer. One look at a time. */
  async look(clock: Clock): Promise<readonly ContainerChange[] | undefined> {
    try {
      const { containers } = await this.#cri.call('ListContainers', {}, { deadlineMs: CALL_MS });
      const listedAt = clock.now();
      const seen = new Map<string, { readonly listed: string; readonly state: ContainerState }>();
      for (const { id, state: listed } of containers) {
        const known = this.#seen.get(id);
        const state = known?.listed === listed ? known.state : await this.#status(id);
        if (state !== undefined) seen.set(id, { listed, state });
      }
      this.#seen = seen;
      const states = new Map([...seen].map(([id, { state }]) => [id, state]));
      await this.#removed(states, clock);
      return this.#lives.listed(states, listedAt);
    } catch (error) {
      // The runtime was killed, or is busy: what has happened meanwhile is seen at the next look.
      if (isAway(error)) return undefined;
      throw error;
    }
  }

  /** Waits for the events about what is no longer listed: they have what a list cannot have any more. */
  async #removed(listed: ContainerStates, clock: Clock): Promise<void> {
    const subscription = this.#subscription;
    if (subscription === undefined) return;
    // Of what was gone before, no event comes.
    const { hasLooked, over } = subscription;
    subscription.hasLooked = true;
    if (!hasLooked) return;
    const giveUpAt = plusMs(clock.monotonic(), EVENT_MS);
    while (this.#lives.isMissing(listed) && !over.aborted) {
      const leftMs = elapsedMs(clock.monotonic(), giveUpAt);
      if (leftMs <= 0 || !(await resolvesWithin(clock, leftMs, this.#event.promise, over))) return;
    }
  }

  async #status(id: string): Promise<ContainerState | undefined> {
    try {
      const { status } = await this.#cri.call('ContainerStatus', { container_id: id }, { deadlineMs: CALL_MS });
      if (status === null) return undefined;
      const { labels, metadata } = status;
      const at = (nanoseconds: string): EpochMs => epochMs(Number(nanoseconds) / NANOSECONDS);
      return {
        id,
        pod: `${getOwn(labels, POD_NAMESPACE) ?? ''}/${getOwn(labels, POD_NAME) ?? ''}`,
        podUid: getOwn(labels, POD_UID) ?? '',
        container: metadata?.name ?? '',
        attempt: metadata?.attempt ?? 0,
        createdAt: at(status.created_at),
        startedAt: at(status.started_at),
        finishedAt: at(status.finished_at),
        exitCode: status.exit_code,
        reason: status.reason,
      };
    } catch (error) {
      // Removed since the list was made.
      if (error instanceof RuntimeError && error.code === 'NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** The pid of a running container's first process; undefined when there is none. */
  async pid(pod: string, container: string): Promise<number | undefined> {
    const found = [...this.#lives.containers.values()].find(
      (each) => each.pod === pod && each.container === container && each.startedAt > 0 && each.finishedAt === 0,
    );
    if (found === undefined) return undefined;
    const { info } = await this.#cri.call(
      'ContainerStatus',
      { container_id: found.id, verbose: true },
      { deadlineMs: CALL_MS },
    );
    const details: unknown = JSON.parse(getOwn(info, 'info') ?? '{}');
    const pid = typeof details === 'object' && details !== null && 'pid' in details ? details.pid : undefined;
    return typeof pid === 'number' && pid > 0 ? pid : undefined;
  }

  async version(): Promise<string> {
    const { runtime_name, runtime_version } = await this.#cri.call('Version', {}, { deadlineMs: CALL_MS });
    return `${runtime_name} ${runtime_version}`;
  }

  close(): void {
    this.#cri.close();
  }
}
