// A write as a sequence of steps: it runs in one turn of the event loop unless something has to be waited for (a webhook),
// so that one description serves both the server's own writes and those of clients. Code that needs what is not at hand (an object
// that a webhook has to convert) stops there, and runs again once it is.

import { Pending } from '../kinds/resource.ts';

/** Yields what is to be waited for; returns the result. */
export type Steps<T> = Generator<() => Promise<void>, T, void>;

/** Runs the steps in this turn. Throws TypeError when one of them has to wait. */
export function atOnce<T>(steps: Steps<T>): T {
  const next = steps.next();
  if (next.done !== true) throw new TypeError('this write would have to wait');
  return next.value;
}

/** Runs the steps, waiting where they wait; what is waited for may throw into them. */
export async function waiting<T>(steps: Steps<T>): Promise<T> {
  let next = steps.next();
  while (next.done !== true) {
    try {
      await next.value();
    } catch (error) {
      next = steps.throw(error);
      continue;
    }
    next = steps.next();
  }
  return next.value;
}

/** The result of `read`, which changes nothing, once everything that it needs is at hand. */
export async function whenConverted<T>(read: () => T): Promise<T> {
  for (;;) {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      await error.ready();
    }
  }
}

/** The same inside a write. */
export function* converting<T>(read: () => T): Steps<T> {
  for (;;) {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      yield error.ready;
    }
  }
}
