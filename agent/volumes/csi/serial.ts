// Serialises work by key: calls for one volume never overlap. An entry exists as long as its queue is not empty.

export class Serial {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `body` when everything before it under the same key has ended, however it ended. */
  run<T>(key: string, body: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = before === undefined ? body() : before.then(body, body);
    this.#last.set(key, mine);
    const done = (): void => {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    };
    mine.then(done, done);
    return mine;
  }

  /** Whether the queue is not empty. */
  busy(key: string): boolean {
    return this.#last.has(key);
  }
}
