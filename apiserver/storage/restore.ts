// Puts a snapshot in the place of a store that is stopped. The store that was there is moved to the snapshots, whatever
// state it is in; revisions go on from beyond every one that was ever given out, so that clients list again.

import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { EpochMs } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { assertNotInUse, fileVersion, openStoreFile, presentRevision } from './file.ts';
import { getMeta, scalar, setMeta } from './schema.ts';
import { keptFile, newestSnapshot, snapshotDirectory, snapshotRevision } from './snapshots.ts';

/** As with `etcdutl snapshot restore --bump-revision`: more than the number of writes since any snapshot. */
const REVISION_BUMP = 1_000_000_000;

/**
 * Replaces the store at `path` by a copy of `file`, a snapshot or a store's file. `now` (epoch ms) names what is moved
 * away. Returns a message for the user. Throws UserError; the store is then as it was.
 */
export function restoreStore(path: string, file: string, now: EpochMs): string {
  const incoming = `${path}-restored`;
  try {
    if (!existsSync(file)) throw new UserError('there is no such file');
    fileVersion(file);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (existsSync(path)) assertNotInUse(path);
    rmSync(incoming, { force: true });
    copyFileSync(file, incoming);
    chmodSync(incoming, 0o600);
    const { db } = openStoreFile(incoming);
    try {
      const revision = Math.max(scalar(db, 'SELECT max(revision) FROM versions'), getMeta(db, 'compacted'));
      setMeta(db, 'compacted', Math.max(revision, highestKnown(path)) + REVISION_BUMP);
    } finally {
      db.close();
    }
    const kept = putAside(path, now);
    renameSync(incoming, path);
    const where = kept === undefined ? '' : `; what was there is ${kept}`;
    return `the API server's store was restored from ${file}${where}`;
  } catch (error) {
    rmSync(incoming, { force: true });
    throw new UserError(`cannot restore the API server's store ${path} from ${file}: ${errorMessage(error)}`);
  }
}

/** The newest revision that can be read anywhere. */
function highestKnown(path: string): number {
  const newest = newestSnapshot(path);
  return Math.max(newest === undefined ? 0 : snapshotRevision(newest), existsSync(path) ? presentRevision(path) : 0);
}

function putAside(path: string, now: EpochMs): string | undefined {
  if (!existsSync(path)) return undefined;
  mkdirSync(snapshotDirectory(path), { recursive: true, mode: 0o700 });
  const kept = keptFile(path, 'replaced', now);
  // The log first: alone it changes nothing, and without it the file is an older state of itself.
  if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${kept}-wal`);
  renameSync(path, kept);
  return kept;
}
