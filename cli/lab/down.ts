// `nodelet down`: removes a lab from the machine, in any state; idempotent.

import { type Clock, systemClock } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { UserError } from '../../lib/errors.ts';
import { cleanLab, provenByItself } from './clean.ts';
import { lockRoot, rootHolder } from './lock.ts';
import { rootIdentity } from './marker.ts';
import { classifyRoot } from './ownership.ts';
import { rootFacts } from './root.ts';
import { assertNotProtected, labAt } from './take-root.ts';

/** A running `nodelet up` gets this long to stop its lab in order, on a busy machine, too. */
const UP_GRACE_MS = 120_000;

export interface DownOptions {
  readonly root?: string;
  /** Keep certificates, objects and images for the next `up`. */
  readonly keep?: boolean;
  readonly say: (line: string) => void;
  readonly clock?: Clock;
}

/** Resolves with the exit code. Rejects with UserError: not root, no lab's root, or something that will not go. */
export async function runDown(options: DownOptions): Promise<number> {
  if (process.getuid?.() !== 0) throw new UserError('must be root to take a lab down');
  const { say, clock = systemClock } = options;
  const paths = await labAt(options.root);
  await assertNotProtected(paths.root);
  const identity = await rootIdentity(paths.root);
  const holder = await rootHolder(paths, identity);
  if (holder !== undefined) {
    say(`stopping the lab that process ${holder.pid} runs`);
    await endProcess(holder, clock, UP_GRACE_MS);
  }
  // No lab may start there during the removal.
  const lock = await lockRoot(paths, identity);
  try {
    if (classifyRoot(await rootFacts(paths), paths.stateFile).kind === 'unproven') {
      for (const leftover of await provenByItself(paths)) say(`removing what is recognised as the lab’s: ${leftover}`);
    }
    const problems = await cleanLab({ paths, clock, keep: options.keep === true });
    if (problems.length > 0) throw new UserError(`not everything could be cleaned: ${problems.join('; ')}`);
  } finally {
    await lock.release();
  }
  say(`nothing of the lab under ${paths.root} is left${options.keep === true ? ' but its data' : ''}`);
  return 0;
}
