// Blocks of host ids for pods with hostUsers: false (KEP-127): 65536 ids each, no two pods the same. A pod's block is
// written beside its other files, so that it survives a restart and is freed by the pod's removal; the file is the
// kubelet's, which does not start where it finds one that it cannot read.

import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import type { IdRange } from './config/namespaces.ts';
import { podDirectory } from './config/paths.ts';

const BLOCK = 65_536;
/** The first block belongs to the host itself; 16-bit block numbers above it. */
const LAST_BLOCK = 65_535;

function isMapping(value: unknown): value is { readonly hostId: number; readonly length: number } {
  if (typeof value !== 'object' || value === null) return false;
  return 'hostId' in value && Number.isInteger(value.hostId) && 'length' in value && Number.isInteger(value.length);
}

/** `{"uidMappings":[{"hostId":…,"containerId":0,"length":65536}],"gidMappings":[the same]}`. */
function printBlock({ hostId, length }: IdRange): string {
  const mappings = [{ hostId, containerId: 0, length }];
  return JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
}

/** Undefined for a file that names no block. */
function parse(text: string): IdRange | undefined {
  // As agents wrote it before: "<host id> <length>".
  const former = /^(\d+) (\d+)$/.exec(text.trim());
  if (former !== null) return { hostId: Number(former[1]), length: Number(former[2]) };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  const mappings =
    typeof value === 'object' && value !== null && 'uidMappings' in value ? value.uidMappings : undefined;
  const first: unknown = Array.isArray(mappings) ? mappings[0] : undefined;
  return isMapping(first) ? { hostId: first.hostId, length: first.length } : undefined;
}

function read(rootDir: string, uid: string): IdRange | undefined {
  try {
    return parse(readFileSync(join(podDirectory(rootDir, uid), 'userns'), 'utf8'));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** The lowest block that none of `taken` overlaps; undefined when there is none left. */
export function freeBlock(taken: readonly IdRange[]): IdRange | undefined {
  const used = new Set(taken.map((range) => Math.floor(range.hostId / BLOCK)));
  for (let block = 1; block <= LAST_BLOCK; block++) {
    if (!used.has(block)) return { hostId: block * BLOCK, length: BLOCK };
  }
  return undefined;
}

/** The pod's block, allotted on first use. Synchronous, so that two pods cannot be given the same. */
export function userNamespace(rootDir: string, uid: string): IdRange {
  const known = read(rootDir, uid);
  if (known !== undefined) return known;
  const pods = join(rootDir, 'pods');
  mkdirSync(podDirectory(rootDir, uid), { recursive: true, mode: 0o750 });
  const taken = readdirSync(pods).flatMap((other) => read(rootDir, other) ?? []);
  const block = freeBlock(taken);
  if (block === undefined) throw new RangeError('every block of user namespace ids on this node is in use');
  const path = join(podDirectory(rootDir, uid), 'userns');
  writeFileSync(`${path}.tmp`, printBlock(block));
  renameSync(`${path}.tmp`, path);
  return block;
}
