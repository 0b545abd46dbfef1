// What a command does once its output has no reader, as in `nodelet lab list | head`. That is no failure, and prints no
// stack. Commands that take a lab down (ending.ts), servers, and crictl have rules of their own.

import { errnoOf } from '../../lib/errors.ts';

/**
 * `ends`: the command only shows something, and ends at once, with 0. Otherwise it goes on without output: what it has begun to
 * change, it finishes. Any other error of the output is thrown.
 */
export type WithoutReader = 'ends' | 'goes on';

export function whenReaderGoes(
  what: WithoutReader,
  { stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>,
): void {
  const onError = (error: Error): void => {
    if (errnoOf(error) !== 'EPIPE') throw error;
    if (what === 'ends') process.exit(0);
  };
  stdout.on('error', onError);
  stderr.on('error', onError);
}
