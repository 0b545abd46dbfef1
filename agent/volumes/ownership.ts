// fsGroup ownership: whether the files of a volume have to be changed, by fsGroupChangePolicy. How they are changed is in
// lib/change-group.ts.

import { lstatSync } from 'node:fs';
import { changeGroup, groupMode } from '../../lib/change-group.ts';
import type { Tracer } from '../../lib/trace.ts';

/** Whether the files of a volume with this root have to be changed; pure. */
export function needsChange(
  root: { readonly gid: number; readonly mode: number },
  gid: number,
  policy: string | undefined,
): boolean {
  if (policy !== 'OnRootMismatch') return true;
  return root.gid !== gid || groupMode(root.mode, true) !== (root.mode & 0o7777);
}

export interface GroupChange {
  readonly gid: number;
  /** fsGroupChangePolicy */
  readonly policy?: string | undefined;
  /** Of volumes that may have many files: the walk is a span, which has the number of files done so far. */
  readonly tracer?: Tracer;
}

/**
 * Sets the group of everything below and including `path` to `gid`, readable and writable. The root comes last: that it
 * is right means that all is, for OnRootMismatch after a crash.
 */
export async function applyFsGroup(path: string, { gid, policy, tracer }: GroupChange): Promise<void> {
  if (!needsChange(lstatSync(path), gid, policy)) return;
  if (tracer === undefined) return await changeGroup(path, gid);
  await tracer.span('volume', 'applyFSGroup', { path, gid, files: 0 }, (span) =>
    changeGroup(path, gid, (files) => span.set({ files })),
  );
}
