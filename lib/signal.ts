// A typed signal. It is made before the part that emits it and the parts that subscribe, so that no part is assigned
// anything after its construction. Delivery is synchronous and in the order of subscription; a listener that throws stops
// the emitter, as a call would. It keeps no value and replays nothing.

/** The subscriber's view of a signal. */
export interface SignalSource<T> {
  /** Calls back on every emit from now on, until the returned function is called. */
  subscribe(listener: (value: T) => void): () => void;
}

export class Signal<T = void> implements SignalSource<T> {
  readonly #listeners = new Set<(value: T) => void>();

  subscribe(listener: (value: T) => void): () => void {
    // An entry of its own: the same function may be subscribed twice.
    const entry = (value: T): void => listener(value);
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  emit(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
}
