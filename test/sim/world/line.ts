// The line between the agent and one of the things it calls: answers come late, not at all, or twice; what was refused
// may have been done. The far side says only what a call does; this says what becomes of the call.

import type { Clock, Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Dice } from './dice.ts';
import type { Journal } from './journal.ts';

/**
 * `refused`: nothing is done. `lost`: it is done, and the answer says that it failed. `late`: the caller gives up before
 * it is done. `never`: the caller gives up, and it is not done. `twice`: it is done a second time right after.
 */
type Fate = 'done' | 'refused' | 'lost' | 'late' | 'never' | 'twice';

/** What the caller sees when the line itself fails it. */
export type LineFailure = 'refused' | 'unavailable' | 'deadline';

export interface LineOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly error: (call: string, failure: LineFailure) => Error;
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

interface Call<T> {
  readonly name: string;
  readonly deadlineMs: number;
  readonly fate: Fate;
  /** What the far side does when its time has come. */
  readonly effect: () => T | Promise<T>;
  readonly claim: Claim | undefined;
}

/** One call on its way. */
class Flight<T> {
  readonly answer: Promise<T>;
  readonly #call: Call<T>;
  readonly #options: LineOptions;
  /** The far side has begun, or never will. */
  readonly #onBegun: (flight: Flight<T>) => void;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  #answered = false;
  #begun = false;
  #taken: { readonly failure: unknown } | undefined;
  #deadline: Timer | undefined;

  constructor(call: Call<T>, options: LineOptions, onBegun: (flight: Flight<T>) => void) {
    this.#call = call;
    this.#options = options;
    this.#onBegun = onBegun;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  depart(): void {
    const { fate, claim, deadlineMs } = this.#call;
    const { clock, dice, usualMs } = this.#options;
    if (fate === 'late' || fate === 'never') this.#waitFor(deadlineMs);
    if (fate === 'never') {
      this.#onBegun(this);
      return;
    }
    if (fate !== 'refused') {
      try {
        claim?.take();
      } catch (failure) {
        this.#taken = { failure };
      }
    }
    clock.after(fate === 'late' ? deadlineMs + dice.below(30_000) : dice.below(usualMs + 1), () => this.#begin());
  }

  /** The far side dies. What it had not begun is mostly never done, and else done just now; nobody is told. */
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
    this.#onBegun(this);
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
      if (fate === 'lost') this.#fail('unavailable');
      if (!(outcome instanceof Promise)) {
        this.#answerWith(() => this.#resolve(outcome));
        return;
      }
      this.#waitFor(deadlineMs);
      outcome.then(
        (value) => this.#answerWith(() => this.#resolve(value)),
        (failure: unknown) => this.#answerWith(() => this.#reject(failure)),
      );
    } catch (failure) {
      this.#answerWith(() => this.#reject(failure));
    }
  }

  /** The far side takes the same call for another; what it says to that reaches nobody. */
  #again(): void {
    const { effect, claim, name } = this.#call;
    const said = (failure: unknown): void => this.#options.journal.note(`${name} again: ${errorMessage(failure)}`);
    try {
      claim?.take();
      const outcome = effect();
      if (outcome instanceof Promise) outcome.catch(said);
    } catch (failure) {
      said(failure);
    }
  }

  #waitFor(ms: number): void {
    if (!this.#answered && Number.isFinite(ms))
      this.#deadline ??= this.#options.clock.after(ms, () => this.#fail('deadline'));
  }

  #fail(failure: LineFailure): void {
    this.#answerWith(() => this.#reject(this.#options.error(this.#call.name, failure)));
  }

  #answerWith(answer: () => void): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#deadline?.cancel();
    answer();
  }
}

export class Line {
  readonly #options: LineOptions;
  /** Calls that the far side has not begun with. */
  readonly #flights = new Set<{ cut(): void }>();
  /** How many calls of a hundred go wrong. */
  trouble = 0;
  /** Nobody answers. */
  down = false;

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

  #fate(deadlineMs: number): Fate {
    const fate = this.#anyFate();
    if (Number.isFinite(deadlineMs)) return fate;
    // Who has no deadline never gives up: what does not arrive ends with its connection, what is late is only slow.
    return fate === 'never' ? 'refused' : fate === 'late' ? 'done' : fate;
  }

  #anyFate(): Fate {
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

  /** Carries one call; `effect` is what the far side does when its time has come. A deadline may be infinite. */
  perform<T>(
    call: string,
    subject: string,
    deadlineMs: number,
    effect: () => T | Promise<T>,
    claim?: Claim,
  ): Promise<T> {
    const { journal, error, name } = this.#options;
    if (this.down) {
      journal.note(`${name} ${call} ${subject}: down`);
      return Promise.reject(error(call, 'unavailable'));
    }
    const fate = this.#fate(deadlineMs);
    journal.note(`${name} ${call} ${subject}${fate === 'done' ? '' : `: ${fate}`}`);
    const flight = new Flight<T>({ name: call, deadlineMs, fate, effect, claim }, this.#options, (begun) =>
      this.#flights.delete(begun),
    );
    this.#flights.add(flight);
    flight.depart();
    return flight.answer;
  }
}
