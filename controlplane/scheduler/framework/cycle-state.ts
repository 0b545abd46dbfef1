// What plugins keep for one pod in one scheduling cycle. A key belongs to one plugin and has a type. Preemption works on
// copies, in which pods come and go.

export class CycleState {
  readonly #copiers = new Map<object, (copy: CycleState) => void>();
  /** Plugins whose PreFilter found nothing to filter by. */
  readonly skippedFilters = new Set<string>();
  /** Plugins whose PreScore found nothing to score by. */
  readonly skippedScores = new Set<string>();

  /** Called by StateKey: how the value gets into a copy. */
  onCopy(key: object, copier: (copy: CycleState) => void): void {
    this.#copiers.set(key, copier);
  }

  clone(): CycleState {
    const copy = new CycleState();
    for (const name of this.skippedFilters) copy.skippedFilters.add(name);
    for (const name of this.skippedScores) copy.skippedScores.add(name);
    for (const copier of this.#copiers.values()) copier(copy);
    return copy;
  }
}

export class StateKey<T> {
  readonly #values = new WeakMap<CycleState, T>();
  readonly #clone: (value: T) => T;

  /** `clone` is for values that change when a pod is added or removed; others are shared. */
  constructor(clone: (value: T) => T = (value) => value) {
    this.#clone = clone;
  }

  read(state: CycleState): T | undefined {
    return this.#values.get(state);
  }

  write(state: CycleState, value: T): void {
    this.#values.set(state, value);
    state.onCopy(this, (copy) => this.write(copy, this.#clone(value)));
  }
}
