// Limits how many pieces of work run at once; the others wait in FIFO order.

export class Gate {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** `limit`: how many may run at once, at least 1. */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs `work` when there is room for it. Resolves and rejects as it does. */
  async run<T>(work: () => Promise<T> | T): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes directly to the next waiter, so that no newcomer can take it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
