// Things that are expensive to start, lent to one user at a time and used again: as many exist as were in use at the same
// time. Knows nothing about what it lends.

export class LeasePool<T> {
  readonly #start: () => Promise<T>;
  readonly #stop: (thing: T) => Promise<void>;
  readonly #free: T[] = [];
  readonly #lent = new Set<T>();
  readonly #ending: Promise<void>[] = [];
  readonly #problems: unknown[] = [];

  constructor(start: () => Promise<T>, stop: (thing: T) => Promise<void>) {
    this.#start = start;
    this.#stop = stop;
  }

  async take(): Promise<T> {
    const thing = this.#free.pop() ?? (await this.#start());
    this.#lent.add(thing);
    return thing;
  }

  /** Gives one back. What is not `clean` is stopped and never lent again. */
  give(thing: T, clean: boolean): void {
    if (!this.#lent.delete(thing)) return;
    if (clean) this.#free.push(thing);
    else this.#end(thing);
  }

  /** Stops all of them, in use or not. Returns what went wrong in stopping any, now or earlier. */
  async close(): Promise<readonly unknown[]> {
    for (const thing of [...this.#free.splice(0), ...this.#lent]) this.#end(thing);
    this.#lent.clear();
    await Promise.all(this.#ending);
    return this.#problems;
  }

  #end(thing: T): void {
    this.#ending.push(
      this.#stop(thing).catch((error: unknown) => {
        this.#problems.push(error);
      }),
    );
  }
}
