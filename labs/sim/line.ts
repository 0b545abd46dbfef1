// The line between the agent and one of the things it calls: answers come late, not at all, or twice; what was refused
// may have been done. The far side says only what a call does; this says what becomes of the call.

import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Dice } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Weather } from './weather.ts';

/**
 * `refused`: nothing is done. `lost`: it is done, and the answer says that it failed. `late`: the caller gives up before
 * it is done. `never`: the caller gives up, and it is not done. `twice`: it is done a second time right after.
 */
type Fate = 'done' | 'refused' | 'lost' | 'late' | 'never' | 'twice';

/** What the caller sees when the line itself fails it. */
export type LineFailure = 'refused' | 'unavailable' | 'deadline' | 'cancelled';

/** What becomes of one call, on purpose. `refused` needs no error of its own where the line's is meant. */
export type Injection =
  | { readonly kind: 'refused'; readonly error: Error }
  | { readonly kind: 'lost' | 'never' | 'twice' }
  | { readonly kind: 'delayed'; readonly ms: number };

export interface LineOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Pick<Journal, 'note'>;
  readonly error: (call: string, failure: LineFailure) => Error;
  readonly weather: Pick<Weather, 'bad'>;
  /** How long calls take at most, in ms, when nothing is wrong. */
  readonly usualMs: number;
  /** The far side drops what its caller has given up. */
  readonly dropsAbandoned?: boolean;
}

/** What a call takes for itself on the far side the moment it arrives, such as a name. */
export interface Claim {
  /** Throws when it is taken. */
  take(): void;
  /** Gives it back, when nothing is done. */
  drop(): void;
}

/** What is particular about one call. */
export interface CallOptions {
  readonly claim?: Claim;
  /** Instead of the line's own figure. */
  readonly usualMs?: number;
  /** How long it takes, whatever is usual. */
  readonly exactMs?: number;
  /** The caller gives up; the far side goes on. */
  readonly signal?: AbortSignal;
}

interface Call<T> extends CallOptions {
  readonly name: string;
  /** Undefined: the caller waits for as long as the connection lasts. */
  readonly deadlineMs: number | undefined;
  readonly fate: Fate;
  /** What the far side does when its time has come. */
  readonly effect: () => T | Promise<T>;
}

/** How late a late call begins, ms. */
const LATE_MS = 30_000;

/** One call on its way. */
class Flight<T> {
  readonly answer: Promise<T>;
  readonly #call: Call<T>;
  readonly #options: LineOptions;
  /** It is answered, and the far side has begun or never will. */
  readonly #onOver: (flight: Flight<T>) => void;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  #answered = false;
  #begun = false;
  #taken: { readonly failure: unknown } | undefined;
  #deadline: Timer | undefined;

  constructor(call: Call<T>, options: LineOptions, onOver: (flight: Flight<T>) => void) {
    this.#call = call;
    this.#options = options;
    this.#onOver = onOver;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  readonly #onAbort = (): void => this.#fail('cancelled');

  depart(): void {
    const { fate, claim, deadlineMs, signal, exactMs, usualMs = this.#options.usualMs } = this.#call;
    const { clock, dice } = this.#options;
    // A signal may outlive thousands of calls: the listener goes with the answer.
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (fate === 'late' || fate === 'never') this.#waitFor(deadlineMs);
    if (fate === 'never') {
      this.#begun = true;
      // Without a deadline the caller does not give up: the connection breaks.
      if (deadlineMs === undefined) clock.after(dice.below(LATE_MS), () => this.#fail('unavailable'));
      return;
    }
    if (fate !== 'refused') {
      try {
        claim?.take();
      } catch (failure) {
        this.#taken = { failure };
      }
    }
    const afterMs = fate === 'late' ? (deadlineMs ?? 0) + dice.below(LATE_MS) : (exactMs ?? dice.below(usualMs + 1));
    clock.after(afterMs, () => this.#begin());
  }

  /** The far side dies. What it had not begun is mostly never done, and else done just now; there is no response. */
  cut(): void {
    const { fate, claim } = this.#call;
    this.#fail('unavailable');
    if (this.#begun) return;
    if (fate === 'refused' || this.#taken !== undefined || this.#options.dice.chance(0.3)) {
      this.#begin();
      return;
    }
    this.#begun = true;
    claim?.drop();
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    if (this.#answered) this.#onOver(this);
    const { fate, effect, deadlineMs } = this.#call;
    const taken = this.#taken;
    if (taken !== undefined || fate === 'refused') {
      if (taken === undefined) this.#fail('refused');
      else this.#answerWith(() => this.#reject(taken.failure));
      return;
    }
    try {
      const outcome = effect();
      if (fate === 'twice') this.#again();
      if (!(outcome instanceof Promise)) {
        this.#succeed(outcome);
        return;
      }
      this.#waitFor(deadlineMs);
      outcome.then(
        (value) => this.#succeed(value),
        (failure: unknown) => this.#answerWith(() => this.#reject(failure)),
      );
    } catch (failure) {
      this.#answerWith(() => this.#reject(failure));
    }
  }

  /** The far side takes the same call for another; its response to that is lost. */
  #again(): void {
    const { effect, claim, name } = this.#call;
    const noted = (failure: unknown): void => this.#options.journal.note(`${name} again: ${errorMessage(failure)}`);
    try {
      claim?.take();
      const outcome = effect();
      if (outcome instanceof Promise) outcome.catch(noted);
    } catch (failure) {
      noted(failure);
    }
  }

  #waitFor(ms: number | undefined): void {
    if (!this.#answered && ms !== undefined)
      this.#deadline ??= this.#options.clock.after(ms, () => this.#fail('deadline'));
  }

  #fail(failure: LineFailure): void {
    this.#answerWith(() => this.#reject(this.#options.error(this.#call.name, failure)));
  }

  #succeed(value: T): void {
    if (this.#call.fate === 'lost') this.#fail('unavailable');
    else this.#answerWith(() => this.#resolve(value));
  }

  #answerWith(answer: () => void): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#call.signal?.removeEventListener('abort', this.#onAbort);
    this.#deadline?.cancel();
    if (this.#begun) this.#onOver(this);
    answer();
  }
}

export class Line {
  readonly #options: LineOptions;
  /** Calls that have no answer yet, or that the far side has not begun with. */
  readonly #flights = new Set<{ cut(): void }>();
  /** How many calls of a hundred go wrong. */
  trouble = 0;
  /** There is no answer. */
  down = false;
  /** Chooses calls that go wrong on purpose. */
  inject: ((call: string, subject: string) => Injection | undefined) | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** Nothing goes wrong any more. */
  mend(): void {
    this.trouble = 0;
    this.down = false;
  }

  /** The far side goes away: what is under way fails. */
  cut(): void {
    this.down = true;
    const flights = [...this.#flights];
    this.#flights.clear();
    for (const flight of flights) flight.cut();
  }

  /** Something about the far side that no call tells. */
  note(what: string): void {
    const { journal, name } = this.#options;
    journal.note(`${name} ${what}`);
  }

  #fate(): Fate {
    const { dice } = this.#options;
    if (this.trouble === 0 || dice.below(100) >= this.trouble) return 'done';
    return dice.weighted({
      refused: 4,
      lost: 3,
      late: this.#options.dropsAbandoned === true ? 0 : 1,
      never: 1,
      twice: 2,
    });
  }

  /** Carries one call; `effect` is what the far side does when its time has come. */
  perform<T>(
    call: string,
    subject: string,
    deadlineMs: number | undefined,
    effect: () => T | Promise<T>,
    options: CallOptions = {},
  ): Promise<T> {
    const { journal, error, name, weather } = this.#options;
    if (this.down) {
      weather.bad();
      journal.note(`${name} ${call} ${subject}: down`);
      return Promise.reject(error(call, 'unavailable'));
    }
    const injected = this.inject?.(call, subject);
    if (injected?.kind === 'refused') {
      journal.note(`${name} ${call} ${subject}: refused on purpose`);
      options.claim?.drop();
      return Promise.reject(injected.error);
    }
    const fate = injected === undefined || injected.kind === 'delayed' ? this.#fate() : injected.kind;
    // One that comes late does so after its deadline.
    if (fate !== 'done') weather.bad(fate === 'late' || fate === 'never' ? (deadlineMs ?? 0) + LATE_MS : 0);
    journal.note(`${name} ${call} ${subject}${fate === 'done' ? '' : `: ${fate}`}`);
    const delayMs = injected?.kind === 'delayed' ? injected.ms : undefined;
    const exact = delayMs === undefined ? {} : { exactMs: delayMs };
    const flight = new Flight<T>(
      { name: call, deadlineMs, fate, effect, ...options, ...exact },
      this.#options,
      (over) => this.#flights.delete(over),
    );
    this.#flights.add(flight);
    flight.depart();
    return flight.answer;
  }
}
