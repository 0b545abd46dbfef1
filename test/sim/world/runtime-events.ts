// How the agent hears of what happens in the simulated runtime: events in order and at once when all is well, else lost,
// doubled or late.

import type { ContainerId, PodLifecycleEvent, PodUID } from '../../../agent/ports/runtime.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Dice } from './dice.ts';
import type { Journal } from './journal.ts';

export class RuntimeEvents {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #journal: Journal;
  readonly #listeners = new Set<(event: PodLifecycleEvent) => void>();
  /** How many events of a hundred are lost, doubled or late. */
  trouble = 0;

  constructor(clock: Clock, dice: Dice, journal: Journal) {
    this.#clock = clock;
    this.#dice = dice;
    this.#journal = journal;
  }

  watch(listener: (event: PodLifecycleEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(podUID: PodUID, type: PodLifecycleEvent['type'], id?: string): void {
    const clock = this.#clock;
    const dice = this.#dice;
    const about = id === undefined ? {} : { containerId: id as ContainerId };
    const event: PodLifecycleEvent = { podUID, type, ...about, at: clock.now() };
    const tell = (): void => {
      for (const listener of this.#listeners) listener(event);
    };
    if (this.trouble === 0 || dice.below(100) >= this.trouble) {
      clock.after(dice.below(5), tell);
      return;
    }
    const fate = dice.weighted({ lost: 2, twice: 1, late: 1 });
    this.#journal.note(`event ${type} ${id}: ${fate}`);
    if (fate === 'lost') return;
    clock.after(fate === 'late' ? dice.below(20_000) : 1, tell);
    if (fate === 'twice') clock.after(dice.below(2_000), tell);
  }
}
