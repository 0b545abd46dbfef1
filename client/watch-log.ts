// What a program logs of its list-watches: each failure with the time until the next attempt, and that there is an end of them.

import { errorMessage } from '../lib/errors.ts';

/** For a Reflector's options; `what` is the resource: "services". */
export function logWatch(what: string, log: (message: string) => void) {
  return {
    onFailure: (error: unknown, retryInMs: number): void =>
      log(`failed to list or watch ${what}: ${errorMessage(error)}; retrying in ${(retryInMs / 1000).toFixed(1)} s`),
    onRecovery: (): void => log(`watching ${what} again`),
  };
}
