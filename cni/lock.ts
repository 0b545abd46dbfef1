// Who may run at the same time. The specification: operations on one container never overlap, those on different
// containers may, and GC runs while nothing else does. Waiting only; what runs is the caller's.

export class OperationLock {
  readonly #tails = new Map<string, Promise<void>>();
  #running = 0;
  /** Settles when the exclusive operation in line ends; undefined when there is none. */
  #gate: Promise<void> | undefined;
  #idle: (() => void) | undefined;

  /** Runs `body` after every earlier operation of `key`, beside those of other keys. */
  shared<T>(key: string, body: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const result = before.then(() => this.#admit(body));
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return result;
  }

  async #admit<T>(body: () => Promise<T>): Promise<T> {
    while (this.#gate !== undefined) await this.#gate;
    this.#running++;
    try {
      return await body();
    } finally {
      this.#running--;
      if (this.#running === 0) this.#idle?.();
    }
  }

  /** Waits for what runs, keeps everything else out, and runs `body` alone. */
  async exclusive<T>(body: () => Promise<T>): Promise<T> {
    while (this.#gate !== undefined) await this.#gate;
    const gate = Promise.withResolvers<void>();
    this.#gate = gate.promise;
    try {
      if (this.#running > 0) {
        const idle = Promise.withResolvers<void>();
        this.#idle = idle.resolve;
        await idle.promise;
        this.#idle = undefined;
      }
      return await body();
    } finally {
      this.#gate = undefined;
      gate.resolve();
    }
  }
}
