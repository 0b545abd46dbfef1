// Where a store's snapshots are and what they are called. Names and listings only; take-snapshot.ts writes them and
// restore.ts puts one back.

import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';

/** Beside the store's file. */
export function snapshotDirectory(storePath: string): string {
  return join(dirname(storePath), 'snapshots');
}

const REVISION_DIGITS = 16;
const padded = (revision: number): string => String(revision).padStart(REVISION_DIGITS, '0');

/** Revisions never go back, so the names sort by age. */
export function snapshotFile(storePath: string, revision: number): string {
  return join(snapshotDirectory(storePath), `store-${padded(revision)}.db`);
}

/** A file that was replaced and is kept until a person removes it; `why` is one word. */
export function keptFile(storePath: string, why: string, stamp: number): string {
  return join(snapshotDirectory(storePath), `${why}-${padded(stamp)}.db`);
}

/** Everything in the snapshot directory, absolute; kept files too. */
export function snapshotFiles(storePath: string): readonly string[] {
  const directory = snapshotDirectory(storePath);
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** The snapshots, oldest first. */
export function snapshots(storePath: string): readonly string[] {
  return snapshotFiles(storePath)
    .filter((file) => /\/store-\d+\.db$/.test(file))
    .sort();
}

export function newestSnapshot(storePath: string): string | undefined {
  return snapshots(storePath).at(-1);
}

/** The revision in a snapshot's name. */
export function snapshotRevision(file: string): number {
  return Number(/\/store-(\d+)\.db$/.exec(file)?.[1]);
}
