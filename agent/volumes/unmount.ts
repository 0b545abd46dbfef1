// Takes down what is mounted below a directory of a pod, from the mount table alone, so that it works after any crash.
// Removes nothing.

import { errorMessage } from '../../lib/errors.ts';
import { mountsUnder } from '../../lib/mountinfo.ts';
import { resolvePath } from '../../lib/resolve-path.ts';
import type { MountEntry, Mounter } from '../ports/mounter.ts';

/** Unmounts in rounds: in one round everything that has no other mount above it, side by side. */
export function unmountRound(entries: readonly MountEntry[]): readonly string[] {
  const paths = [...new Set(entries.map(({ path }) => path))];
  return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`)));
}

/** Unmounts everything below `directory`. Rejects when something is busy. */
export async function unmountBelow(directory: string, mounter: Mounter): Promise<void> {
  // The kernel's table has no links in it.
  const resolved = resolvePath(directory);
  let left = mountsUnder(await mounter.list(resolved), resolved);
  while (left.length > 0) {
    const results = await Promise.allSettled(unmountRound(left).map((path) => mounter.unmount(path)));
    const failures = results.flatMap((r) => (r.status === 'rejected' ? [errorMessage(r.reason)] : []));
    if (failures.length > 0) throw new Error(failures.join('; '));
    const after = mountsUnder(await mounter.list(resolved), resolved);
    // Each round must remove a mount, or another process mounts as fast as we unmount.
    if (after.length >= left.length) throw new Error(`${after[0]?.path ?? resolved} is still mounted`);
    left = after;
  }
}
