// Work in turn, by key: calls for one volume never overlap. An entry lives as long as somebody is in the queue.

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

  /** Whether somebody is in the queue. */
  busy(key: string): boolean {
    return this.#last.has(key);
  }
}
