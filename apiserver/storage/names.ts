// Which objects of a resource there are, and were: what is now, with the names that changed later put back to what they pointed to.
// Reads names and revisions alone, in one turn of the event loop and without a write between; store.ts reads their values.

import type { DatabaseSync } from 'node:sqlite';
import { CompactedError, type Name } from './object-store.ts';
import { asNumber, asText, scalar } from './schema.ts';

export interface NamedRevision extends Name {
  /** 0 for one that is not there. */
  readonly revision: number;
}

/** Of a resource: of one namespace, and after `after`, where these are set. */
export interface Range {
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly after?: Name | undefined;
}

/** The store as it is. */
export interface Present {
  readonly db: DatabaseSync;
  readonly revision: number;
  readonly compacted: number;
}

/** By namespace and name, lazily. Throws CompactedError when history no longer reaches back that far. */
export function* namesAt({ db, ...present }: Present, revision: number, range: Range): Iterable<NamedRevision> {
  if (revision < present.compacted) throw new CompactedError(revision, present.compacted);
  const where = conditions(range);
  const changed = revision === present.revision ? [] : changedSince(db, revision, where);
  let next = 0;
  const sql = `SELECT namespace, name, revision FROM objects WHERE ${where.sql} ORDER BY namespace, name`;
  for (const row of db.prepare(sql).iterate(...where.values)) {
    const now = { namespace: asText(row['namespace']), name: asText(row['name']), revision: asNumber(row['revision']) };
    let order = -1;
    for (let one = changed[next]; one !== undefined; one = changed[++next]) {
      order = compareNames(one, now);
      if (order > 0) break;
      if (one.revision !== 0) yield one;
      if (order === 0) {
        next++;
        break;
      }
    }
    if (order !== 0) yield now;
  }
  for (const one of changed.slice(next)) if (one.revision !== 0) yield one;
}

/** The number of names that `namesAt` returns; `isPresent` finds one as it is now. Throws CompactedError. */
export function countAt(
  { db, ...present }: Present,
  revision: number,
  range: Range,
  isPresent: (name: Name) => boolean,
): number {
  if (revision < present.compacted) throw new CompactedError(revision, present.compacted);
  const where = conditions(range);
  let count = scalar(db, `SELECT count(*) FROM objects WHERE ${where.sql}`, ...where.values);
  for (const one of revision === present.revision ? [] : changedSince(db, revision, where)) {
    if (one.revision !== 0) count++;
    if (isPresent(one)) count--;
  }
  return count;
}

/** Names that a write after `revision` touched, in order, with the revision they had then. */
function changedSince(db: DatabaseSync, revision: number, where: Conditions): NamedRevision[] {
  const first = new Map<string, NamedRevision>();
  const sql = `SELECT namespace, name, previous FROM versions WHERE revision > ? AND ${where.sql} ORDER BY revision`;
  for (const row of db.prepare(sql).iterate(revision, ...where.values)) {
    const [namespace, name] = [asText(row['namespace']), asText(row['name'])];
    const key = `${namespace}/${name}`;
    if (!first.has(key)) first.set(key, { namespace, name, revision: asNumber(row['previous']) });
  }
  return [...first.values()].sort(compareNames);
}

interface Conditions {
  readonly sql: string;
  readonly values: readonly string[];
}

/** For a WHERE; `prefix` names the table. Pure. */
export function conditions({ resource, namespace, after }: Range, prefix = ''): Conditions {
  const sql = [`${prefix}resource = ?`];
  const values = [resource];
  if (namespace !== undefined) {
    sql.push(`${prefix}namespace = ?`);
    values.push(namespace);
  }
  if (after !== undefined) {
    sql.push(`(${prefix}namespace, ${prefix}name) > (?, ?)`);
    values.push(after.namespace, after.name);
  }
  return { sql: sql.join(' AND '), values };
}

/** By code unit, as SQLite's BINARY collation does for what names may hold. */
function compareNames(a: Name, b: Name): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name === b.name ? 0 : a.name < b.name ? -1 : 1;
}
