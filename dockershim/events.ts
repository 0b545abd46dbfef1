// CRI's container events from Docker's event stream. When that breaks (dockerd restarts), the streams of CRI's clients end
// too, so that they list again: an event that was missed is never made up for here.

import type { Readable } from 'node:stream';
import type { BackoffPolicy } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { retryUntilAborted } from '../lib/retry.ts';
import type { ContainerEventType } from '../proto/gen/runtime/v1/ContainerEventType.ts';
import type { Containers } from './containers.ts';
import type { Engine } from './engine.ts';
import { CriError, toCriError } from './errors.ts';
import { KIND_LABEL, SANDBOX_LABEL } from './records.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { EventSubscriber } from './server.ts';

const RECONNECT: BackoffPolicy = { initialMs: 100, maxMs: 2_000, factor: 2, resetMs: 30_000 };

export interface DockerEvent {
  readonly type: ContainerEventType;
  readonly id: string;
  readonly sandboxId: string;
  /** ns. */
  readonly at: string;
}

const TYPES: ReadonlyMap<string, ContainerEventType> = new Map([
  ['create', 'CONTAINER_CREATED_EVENT'],
  ['start', 'CONTAINER_STARTED_EVENT'],
  ['die', 'CONTAINER_STOPPED_EVENT'],
  ['destroy', 'CONTAINER_DELETED_EVENT'],
]);

/** One line of Docker's stream; undefined for events that CRI has none for. Pure. */
export function decodeEvent(line: string): DockerEvent | undefined {
  const event = JSON.parse(line) as {
    readonly Action?: string;
    readonly timeNano?: number;
    readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
  };
  const type = TYPES.get(event.Action ?? '');
  const { ID: id, Attributes: attributes = {} } = event.Actor ?? {};
  if (type === undefined || id === undefined || attributes[KIND_LABEL] === undefined) return undefined;
  // A number of JSON has not all digits of nanoseconds: the text has.
  const at = /"timeNano":(\d+)/.exec(line)?.[1] ?? '0';
  return { type, id, sandboxId: attributes[SANDBOX_LABEL] ?? id, at };
}

export interface EventsParts {
  readonly engine: Engine;
  readonly sandboxes: Sandboxes;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Log;
  /** Called at once, before clients hear of it: other events may have to wait for their turn. */
  readonly onEnd: (sandboxId: string, id: string) => void;
  /** Docker's stream is open. */
  readonly onConnect: () => Promise<void>;
}

export class Events {
  readonly #parts: EventsParts;
  readonly #subscribers = new Set<EventSubscriber>();
  /** Undefined while Docker's stream is open. */
  #down: CriError | undefined = new CriError('UNAVAILABLE', 'Docker has not answered yet');
  /** In the order of Docker's events. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: EventsParts) {
    this.#parts = parts;
  }

  /** Why Docker cannot be reached; undefined while it can. */
  get problem(): string | undefined {
    return this.#down?.message;
  }

  subscribe(subscriber: EventSubscriber): () => void {
    if (this.#down !== undefined) {
      subscriber.end(this.#down);
      return () => undefined;
    }
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  /** Follows Docker's stream until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    let reported = '';
    const follow = async (): Promise<void> => {
      await this.#follow(signal, () => {
        reported = '';
      });
      throw new CriError('UNAVAILABLE', 'Docker ended its event stream');
    };
    const onFailure = (error: unknown): void => {
      const message = errorMessage(error);
      this.#end(toCriError(error));
      if (message !== reported) log('warn', 'the connection to Docker is lost', { error: message });
      reported = message;
    };
    await retryUntilAborted(follow, { clock, policy: RECONNECT, signal, onFailure });
    this.#end(new CriError('UNAVAILABLE', 'the shim stops'));
  }

  async #follow(signal: AbortSignal, onOpen: () => void): Promise<void> {
    const { engine, onConnect, log } = this.#parts;
    const filters = { type: ['container'], label: [KIND_LABEL], event: [...TYPES.keys()] };
    const stream = (await engine.call('SystemEvents', {}, (docker) =>
      docker.getEvents({ filters, abortSignal: signal } as Parameters<typeof docker.getEvents>[0]),
    )) as Readable;
    try {
      await onConnect();
      this.#down = undefined;
      onOpen();
      log('info', 'connected to Docker');
      let rest = '';
      for await (const chunk of stream) {
        const lines = `${rest}${Buffer.from(chunk).toString('utf8')}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) this.#take(line);
      }
    } catch (error) {
      throw toCriError(error);
    } finally {
      stream.destroy();
    }
  }

  #take(line: string): void {
    const event = line.trim() === '' ? undefined : decodeEvent(line);
    if (event?.type === 'CONTAINER_STOPPED_EVENT') this.#parts.onEnd(event.sandboxId, event.id);
    if (event === undefined || this.#subscribers.size === 0) return;
    this.#last = this.#last
      .then(() => this.#send(event))
      .catch((error: unknown) => {
        // Clients that have lost an event have to list again.
        this.#endSubscribers(toCriError(error));
      });
  }

  async #send({ type, id, sandboxId, at }: DockerEvent): Promise<void> {
    const { sandboxes, containers } = this.#parts;
    const sandbox = await sandboxes.find(sandboxId);
    const message = {
      container_id: id,
      container_event_type: type,
      created_at: at,
      pod_sandbox_status: sandbox === undefined ? null : sandboxes.statusOf(sandbox),
      containers_statuses: [...(await containers.statusesOf(sandboxId))],
    };
    for (const { send } of this.#subscribers) send(message);
  }

  #end(error: CriError): void {
    this.#down = error;
    this.#endSubscribers(error);
  }

  #endSubscribers(error: CriError): void {
    const subscribers = [...this.#subscribers];
    this.#subscribers.clear();
    for (const { end } of subscribers) end(error);
  }
}
