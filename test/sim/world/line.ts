// The line between the agent and one of the things it calls: answers come late, not at all, or twice; what was refused
// may have been done. The far side says only what a call does; this says what becomes of the call.

import type { Clock } from '../../../lib/clock.ts';
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

interface Flight {
  /** Ends the call for its caller; what is being done may still be. */
  readonly abandon: () => void;
}

export class Line {
  readonly #options: LineOptions;
  readonly #flights = new Set<Flight>();
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

  /** The far side goes away: what is under way fails. What was asked and not begun is mostly never done. */
  cut(): void {
    this.down = true;
    for (const flight of [...this.#flights]) flight.abandon();
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

  /**
   * Carries one call; `effect` is what the far side does when its time has come. `claim` is what it takes for itself the
   * moment the call arrives, such as a name; it throws when that is taken, and `drop` gives it back when nothing is done.
   */
  perform<T>(
    call: string,
    subject: string,
    deadlineMs: number,
    effect: () => T | Promise<T>,
    claim?: { readonly take: () => void; readonly drop: () => void },
  ): Promise<T> {
    const { clock, dice, journal, error, usualMs, name } = this.#options;
    if (this.down) {
      journal.note(`${name} ${call} ${subject}: down`);
      return Promise.reject(error(call, 'unavailable'));
    }
    const fate = this.#fate();
    journal.note(`${name} ${call} ${subject}${fate === 'done' ? '' : `: ${fate}`}`);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let over = false;
    let begun = false;
    let dropped = false;
    let taken: unknown;
    if (fate !== 'refused' && fate !== 'never') {
      try {
        claim?.take();
      } catch (failure) {
        taken = failure;
      }
    }
    const finish = (settle: () => void): void => {
      if (over) return;
      over = true;
      this.#flights.delete(flight);
      deadline?.cancel();
      settle();
    };
    const flight: Flight = {
      abandon: () => {
        dropped = dice.chance(0.7);
        if (dropped && !begun && taken === undefined) claim?.drop();
        finish(() => reject(error(call, 'unavailable')));
      },
    };
    this.#flights.add(flight);
    const abandoned = fate === 'late' || fate === 'never';
    const delay = abandoned ? deadlineMs + dice.below(30_000) : dice.below(usualMs + 1);
    const giveUp = (): void => finish(() => reject(error(call, 'deadline')));
    let deadline = abandoned ? clock.after(deadlineMs, giveUp) : undefined;
    const begin = (): void => {
      if (dropped) return;
      begun = true;
      if (fate === 'refused' || taken !== undefined) {
        finish(() => reject(taken ?? error(call, 'refused')));
        return;
      }
      let outcome: T | Promise<T>;
      try {
        outcome = effect();
        if (fate === 'twice') this.#again(call, effect, claim?.take);
      } catch (failure) {
        finish(() => reject(failure));
        return;
      }
      if (fate === 'lost') finish(() => reject(error(call, 'unavailable')));
      if (outcome instanceof Promise) {
        if (!over) deadline ??= clock.after(deadlineMs, giveUp);
        outcome.then(
          (value) => finish(() => resolve(value)),
          (failure: unknown) => finish(() => reject(failure)),
        );
        return;
      }
      const value = outcome;
      finish(() => resolve(value));
    };
    if (fate !== 'never') clock.after(delay, begin);
    return promise;
  }

  /** The far side takes the same call for another; what it says to that reaches nobody. */
  #again<T>(call: string, effect: () => T | Promise<T>, take: (() => void) | undefined): void {
    const { journal, name } = this.#options;
    const said = (failure: unknown): void => journal.note(`${name} ${call} again: ${errorMessage(failure)}`);
    try {
      take?.();
      const outcome = effect();
      if (outcome instanceof Promise) outcome.catch(said);
    } catch (failure) {
      said(failure);
    }
  }
}
