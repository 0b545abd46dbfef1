// What is in a snapshot, and whether it is whole: for a person who is about to rely on it. Changes nothing.

import { createHash } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { UserError } from '../../lib/errors.ts';
import { fileVersion, lostObject, readImmutable } from './file.ts';
import { brokenPages, getMeta, SCHEMA_VERSION, scalar } from './schema.ts';
import { isSqliteError } from './sqlite-errors.ts';

/** With the names of `etcdutl snapshot status`. */
export interface SnapshotStatus {
  /** The first 8 digits of the file's SHA-256. */
  readonly hash: string;
  readonly revision: number;
  readonly totalKey: number;
  /** Bytes of the file. */
  readonly totalSize: number;
}

/** Reads all of the file. Rejects with UserError when it is no snapshot, or damaged. */
export async function snapshotStatus(file: string): Promise<SnapshotStatus> {
  if (!existsSync(file)) throw new UserError(`there is no snapshot ${file}`);
  if (fileVersion(file) !== SCHEMA_VERSION)
    throw new UserError(`${file} is a store of an earlier nodelet, no snapshot`);
  const { why, ...counts } = contentOf(file);
  if (why !== undefined) throw new UserError(`the snapshot ${file} is damaged: ${why}`);
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return { hash: hash.digest('hex').slice(0, 8), ...counts, totalSize: statSync(file).size };
}

function contentOf(file: string): { revision: number; totalKey: number; why: string | undefined } {
  try {
    return readImmutable(file, (db) => ({
      revision: Math.max(scalar(db, 'SELECT max(revision) FROM versions'), getMeta(db, 'compacted')),
      totalKey: scalar(db, 'SELECT count(*) FROM objects'),
      why: brokenPages(db) ?? lostObject(db),
    }));
  } catch (error) {
    if (isSqliteError(error)) return { revision: 0, totalKey: 0, why: error.message };
    throw error;
  }
}
