// The files in which the agent keeps the resources of pods from one start to the next. A write takes a moment, and is whole
// or does not happen: an agent that is killed before has written nothing.

import type { AllocationStore } from '../../agent/pods/options.ts';
import type { CheckpointTexts } from '../../agent/pods/resize/checkpoint.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Dice } from './dice.ts';
import type { Journal } from './journal.ts';

/** The longest that a write takes, ms. */
const WRITE_MS = 5;

export class SimCheckpoints {
  readonly #dice: Dice;
  readonly #journal: Journal;
  #texts: CheckpointTexts = { allocated: undefined, actuated: undefined };

  constructor(dice: Dice, journal: Journal) {
    this.#dice = dice;
    this.#journal = journal;
  }

  /** `clock`: the agent's own, whose timers end with it. */
  forAgent(clock: Pick<Clock, 'sleep'>): AllocationStore {
    return {
      initial: this.#texts,
      save: async (file, text) => {
        this.#journal.note(`checkpoint ${file}`);
        await clock.sleep(this.#dice.below(WRITE_MS));
        this.#texts = { ...this.#texts, [file]: text };
      },
    };
  }
}
