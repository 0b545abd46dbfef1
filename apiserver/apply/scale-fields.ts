// Managed fields of the scale subresource: those of an object that own its replicas, as a Scale shows them, and back again
// after a write through the scale. Pure.

import { type Entry, entryKey, readEntries, storedEntries, writeEntries } from './entries.ts';
import { difference, type FieldSet, has, setOf } from './field-set.ts';

const SCALE_VERSION = 'autoscaling/v1';
const REPLICAS = ['f:spec', 'f:replicas'];

/** Where each served version of the object has its replicas: apiVersion → path elements. */
export type ReplicasPaths = ReadonlyMap<string, readonly string[]>;

type ManagedFields = Record<string, unknown>[] | undefined;

/** The entries of a Scale. */
export function scaleEntries(fields: ManagedFields, paths: ReplicasPaths): ManagedFields {
  const result = new Map<string, Entry>();
  for (const [key, entry] of storedEntries(fields) ?? []) {
    const path = paths.get(entry.apiVersion);
    if (path === undefined || !has(entry.fields, path)) continue;
    result.set(key, { ...entry, apiVersion: SCALE_VERSION, fields: setOf(REPLICAS) });
  }
  return writeEntries(result);
}

/** The object's entries after a write has made `scale` of `scaleEntries(fields, paths)`; `apiVersion` is the request's. */
export function objectEntries(
  fields: ManagedFields,
  scale: ManagedFields,
  paths: ReplicasPaths,
  apiVersion: string,
): ManagedFields {
  const left = new Map<string, Entry>();
  for (const entry of readEntries(scale)?.values() ?? []) left.set(writerOf(entry), entry);
  const result = new Map<string, Entry>();
  for (const [key, entry] of storedEntries(fields) ?? []) {
    const path = paths.get(entry.apiVersion);
    if (path === undefined) continue;
    if (!has(entry.fields, path) || left.delete(writerOf(entry))) result.set(key, entry);
    else result.set(key, { ...entry, fields: difference(entry.fields, setOf(path)) });
  }
  const replicas: FieldSet = setOf(paths.get(apiVersion) ?? REPLICAS);
  for (const entry of left.values()) {
    if (!has(entry.fields, REPLICAS)) continue;
    const mine = { ...entry, apiVersion, fields: replicas };
    result.set(entryKey(mine), mine);
  }
  return writeEntries(result);
}

/** What an object's entry and a Scale's have in common when they are one writer's: everything but the version. */
function writerOf({ manager, operation, subresource }: Entry): string {
  return JSON.stringify([manager, operation, subresource]);
}
