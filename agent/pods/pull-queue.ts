// Runs image pulls: a limited number at a time, and one for all callers with the same image and credentials. A pull is
// cancelled once no caller waits for it any more. It knows nothing of images, events or back-off.

interface Shared<T> {
  readonly promise: Promise<T>;
  readonly abort: AbortController;
  waiters: number;
}

/** T is the result of a pull. */
export class PullQueue<T> {
  readonly #limit: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #shared = new Map<string, Shared<T>>();

  /** `limit`: pulls at a time; Infinity is no limit. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Joins the pull under `key` or starts it with `run`. Rejects with the signal's reason when that aborts first. */
  async pull(key: string, run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const shared = this.#shared.get(key) ?? this.#start(key, run);
    shared.waiters++;
    const leave = (): void => {
      if (--shared.waiters === 0) {
        if (this.#shared.get(key) === shared) this.#shared.delete(key);
        shared.abort.abort(new Error('no caller waits for this pull any more'));
      }
    };
    return new Promise<T>((resolve, reject) => {
      const onAbort = (): void => {
        leave();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      const settled = (): void => signal.removeEventListener('abort', onAbort);
      shared.promise.then(
        (value) => {
          settled();
          resolve(value);
        },
        (error) => {
          settled();
          reject(error);
        },
      );
    });
  }

  #start(key: string, run: (signal: AbortSignal) => Promise<T>): Shared<T> {
    const abort = new AbortController();
    const promise = this.#inTurn(run, abort.signal).finally(() => {
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
    });
    const shared: Shared<T> = { promise, abort, waiters: 0 };
    this.#shared.set(key, shared);
    return shared;
  }

  async #inTurn(run: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      signal.throwIfAborted();
      return await run(signal);
    } finally {
      // The place passes to the next waiter, so that no newcomer takes it.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
