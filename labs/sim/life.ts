// One life of an agent process. When it is over, as by kill -9, none of its calls goes out, no answer comes in, and none
// of its timers fires; what it did stays done.

import { type Clock, sleepWith, type Timer } from '../../lib/clock.ts';

export class Life {
  over = false;

  /** The clock as this process sees it. */
  clock(inner: Clock): Clock {
    const after = (ms: number, fn: () => void): Timer => {
      if (this.over) return { cancel: () => undefined };
      return inner.after(ms, () => {
        if (!this.over) fn();
      });
    };
    return {
      now: () => inner.now(),
      monotonic: () => inner.monotonic(),
      after,
      sleep: (ms, signal) => sleepWith({ after }, ms, signal),
    };
  }

  /** A port as this process sees it. */
  port<T extends object>(target: T): T {
    const wrapped = new Map<PropertyKey, unknown>();
    return new Proxy(target, {
      get: (object, key) => {
        const known = wrapped.get(key);
        if (known !== undefined) return known;
        const member: unknown = Reflect.get(object, key, object);
        if (typeof member !== 'function') return member;
        const call = (...args: unknown[]): unknown => this.#call(() => Reflect.apply(member, object, args));
        wrapped.set(key, call);
        return call;
      },
    });
  }

  #call(call: () => unknown): unknown {
    if (this.over) return new Promise(() => undefined);
    const answer = call();
    if (!(answer instanceof Promise)) return answer;
    return new Promise((resolve, reject) => {
      answer.then(
        (value) => {
          if (!this.over) resolve(value);
        },
        (error: unknown) => {
          if (!this.over) reject(error);
        },
      );
    });
  }
}
