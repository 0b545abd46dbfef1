// How the agent hears of what happens in a simulated runtime: CRI's event stream and containerd's bus, each served or not
// as the kind of runtime has it. Events come in order and soon when all is well, else lost, doubled or late; streams break.

import type { CriStream, CriStreamEnd } from '../../../agent/runtime/cri-client.ts';
import type { Clock, EpochMs } from '../../../lib/clock.ts';
import type { Envelope__Output } from '../../../proto/gen/containerd/types/Envelope.ts';
import type { ContainerEventResponse__Output } from '../../../proto/gen/runtime/v1/ContainerEventResponse.ts';
import { loadProto } from '../../../proto/load.ts';
import type { Dice } from '../dice.ts';
import type { Journal } from '../journal.ts';
import type { Weather } from '../weather.ts';
import type { RuntimeKind } from './kinds.ts';

export type BusEvent =
  | { readonly topic: '/tasks/start'; readonly id: string }
  | { readonly topic: '/tasks/exit'; readonly id: string; readonly process: string; readonly exitCode: number }
  | { readonly topic: '/tasks/oom'; readonly id: string }
  | { readonly topic: '/containers/delete'; readonly id: string };

interface Subscriber<T> {
  readonly onEvent: (event: T) => void;
  /** What it wants to hear of. */
  readonly wants: (topic: string) => boolean;
  readonly end: (end: CriStreamEnd) => void;
}

/** One stream and who listens to it. */
class Stream<T> {
  readonly name: string;
  readonly subscribers = new Set<Subscriber<T>>();
  /** Subscribers that have gone and that the runtime has not noticed. */
  gone = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Every subscriber's stream ends. */
  break(message: string): void {
    const ended = [...this.subscribers];
    this.subscribers.clear();
    for (const { end } of ended) end({ unimplemented: false, message });
  }
}

/** A refusal, or the end of a connection to no listener, comes this late at most, in ms. */
const REFUSAL_MS = 40;

export interface RuntimeEventsParts {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly kind: RuntimeKind;
  readonly weather: Weather;
}

export class RuntimeEvents {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #journal: Journal;
  readonly #kind: RuntimeKind;
  readonly #weather: Weather;
  readonly #cri = new Stream<ContainerEventResponse__Output>('cri events');
  readonly #bus = new Stream<Envelope__Output>('bus');
  /** How many events of a hundred are lost, doubled or late. */
  trouble = 0;
  /** Chooses events that are lost on purpose: `topic` is "CONTAINER_STOPPED_EVENT" or "/tasks/exit"; `id` whom it is about. */
  lose: ((topic: string, id: string) => boolean) | undefined;
  /** There is no answer. */
  isDown: () => boolean = () => false;

  constructor({ clock, dice, journal, kind, weather }: RuntimeEventsParts) {
    this.#clock = clock;
    this.#dice = dice;
    this.#journal = journal;
    this.#kind = kind;
    this.#weather = weather;
  }

  /** Every stream breaks. */
  break(message: string): void {
    this.#weather.bad();
    this.#cri.break(message);
    this.#bus.break(message);
  }

  followCri(onEvent: (event: ContainerEventResponse__Output) => void): CriStream {
    return this.#follow(this.#cri, this.#kind.criEvents, { onEvent, wants: () => true });
  }

  followBus(filters: readonly string[], onEvent: (envelope: Envelope__Output) => void): CriStream {
    const topics = new Set(filters.map((filter) => /^namespace=="k8s\.io",topic=="([^"]+)"$/.exec(filter)?.[1]));
    return this.#follow(this.#bus, this.#kind.bus, { onEvent, wants: (topic) => topics.has(topic) });
  }

  #follow<T>(stream: Stream<T>, served: boolean, wish: Omit<Subscriber<T>, 'end'>): CriStream {
    const { promise: ended, resolve: end } = Promise.withResolvers<CriStreamEnd>();
    const subscriber = { ...wish, end };
    const refuse = (unimplemented: boolean, message: string): void =>
      void this.#clock.after(this.#dice.below(REFUSAL_MS), () => end({ unimplemented, message }));
    if (this.isDown()) refuse(false, 'connection refused');
    else if (!served) refuse(true, `unknown service or method for ${stream.name}`);
    else stream.subscribers.add(subscriber);
    return {
      ended,
      cancel: () => {
        if (stream.subscribers.delete(subscriber)) stream.gone++;
        end({ unimplemented: false, message: 'cancelled' });
      },
    };
  }

  /** An event on CRI's stream; `read` makes the message of what is known when it is sent. */
  emitCri(what: string, read: () => ContainerEventResponse__Output): void {
    const usualMs = this.#dice.pick([1, 5, 30]);
    this.#emit(this.#cri, what, read(), what, usualMs);
  }

  emitBus(event: BusEvent): void {
    this.#emit(this.#bus, event.topic, envelope(event, this.#clock.now()), `${event.topic} ${event.id}`, 5);
  }

  #emit<T>(stream: Stream<T>, topic: string, event: T, what: string, usualMs: number): void {
    if (this.isDown() || stream.subscribers.size === 0) return;
    const [name = topic, id = ''] = what.split(' ');
    if (this.lose?.(name, id) === true) {
      this.#journal.note(`${stream.name} ${what}: lost on purpose`);
      return;
    }
    if (this.#kind.losesEvents && stream === this.#lossy && stream.gone > 0) {
      // A client that has gone is noticed when an event cannot be sent to it; that event is lost for all.
      stream.gone--;
      this.#weather.bad();
      this.#journal.note(`${stream.name} ${what}: sent to one that has gone`);
      return;
    }
    const clock = this.#clock;
    const dice = this.#dice;
    const send = (): void => {
      for (const { wants, onEvent } of stream.subscribers) if (wants(topic)) onEvent(event);
    };
    if (this.trouble === 0 || dice.below(100) >= this.trouble) {
      clock.after(dice.below(usualMs), send);
      return;
    }
    const fate = dice.weighted({ lost: 2, twice: 1, late: 1 });
    this.#journal.note(`${stream.name} ${what}: ${fate}`);
    this.#weather.bad(20_000);
    if (fate === 'lost') return;
    clock.after(fate === 'late' ? dice.below(20_000) : 1, send);
    if (fate === 'twice') clock.after(dice.below(2_000), send);
  }

  /** The one that loses what it sends to subscribers that have gone. */
  get #lossy(): unknown {
    return this.#cri;
  }
}

function timestamp(ms: number): { seconds: string; nanos: number } {
  return { seconds: String(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/** As containerd's bus has it: an envelope around the event's own bytes. */
function envelope(event: BusEvent, now: EpochMs): Envelope__Output {
  const { TaskStart, TaskExit, TaskOOM, ContainerDelete } = loadProto('containerd-tasks').containerd.events;
  const { id } = event;
  const wrap = (name: string, value: Buffer): Envelope__Output => ({
    timestamp: timestamp(now),
    namespace: 'k8s.io',
    topic: event.topic,
    event: { type_url: `containerd.events.${name}`, value },
  });
  switch (event.topic) {
    case '/tasks/start':
      return wrap('TaskStart', TaskStart.serialize({ container_id: id, pid: 1 }));
    case '/tasks/exit': {
      const { process, exitCode } = event;
      const exit = { container_id: id, id: process, pid: 1, exit_status: exitCode, exited_at: timestamp(now) };
      return wrap('TaskExit', TaskExit.serialize(exit));
    }
    case '/tasks/oom':
      return wrap('TaskOOM', TaskOOM.serialize({ container_id: id }));
    case '/containers/delete':
      return wrap('ContainerDelete', ContainerDelete.serialize({ id }));
  }
}
