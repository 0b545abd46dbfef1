// `nodelet down`: takes a lab off the machine from any state, as often as one likes.

import { type Clock, systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { endProcess } from './child.ts';
import { cleanLab } from './clean.ts';
import { lockHolder } from './lock.ts';
import { labPaths } from './paths.ts';

/** A running `nodelet up` gets this long to stop its lab in order. */
const UP_GRACE_MS = 40_000;

export interface DownOptions {
  readonly root?: string;
  /** Keep certificates, objects and images for the next `up`. */
  readonly keep?: boolean;
  readonly say: (line: string) => void;
  readonly clock?: Clock;
}

/** Resolves with the exit code. Rejects with UserError: not root, or something that will not go. */
export async function runDown(options: DownOptions): Promise<number> {
  if (process.getuid?.() !== 0) throw new UserError('must be root to take a lab down');
  const clock = options.clock ?? systemClock;
  const paths = labPaths(options.root);
  const holder = await lockHolder(paths.lockFile);
  if (holder !== undefined) {
    options.say(`stopping the lab that process ${holder.pid} runs`);
    await endProcess(holder, clock, UP_GRACE_MS);
  }
  const problems = await cleanLab({ paths, clock, keep: options.keep === true });
  if (problems.length > 0) throw new UserError(`not everything could be cleaned: ${problems.join('; ')}`);
  options.say(`nothing of the lab under ${paths.root} is left${options.keep === true ? ' but its data' : ''}`);
  return 0;
}
