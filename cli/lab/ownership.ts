// What a lab may remove under its root: decided from the marker and from what exists there, without any I/O. An object is
// removed when it is on the marker's list and is still what the lab made; the rest is left and named.

import { basename, relative } from 'node:path';
import { isWithin } from '../../lib/mountinfo.ts';
import {
  type DirectoryIdentity,
  type LabMarker,
  MARKER_NAME,
  type MarkerReading,
  type RootIdentity,
  sameRoot,
} from './marker.ts';

export interface ExistingFile {
  readonly kind: 'directory' | 'file' | 'other';
  /** Of a directory. */
  readonly identity?: DirectoryIdentity;
  /** Of a directory: nothing is in it. */
  readonly empty?: boolean;
}

export interface RootFacts {
  /** Absolute and resolved. */
  readonly root: string;
  /** Undefined when there is no such directory. */
  readonly identity: RootIdentity | undefined;
  readonly marker: MarkerReading;
  /** What exists under the names that a lab uses, and under those on the marker's list. By path; absent: nothing. */
  readonly existing: ReadonlyMap<string, ExistingFile>;
  /** Every mount point of the machine. */
  readonly mounts: readonly string[];
}

export type Ownership =
  /** No marker, and nothing under a name that a lab uses. */
  | { readonly kind: 'nothing' }
  /** The directory has content that no valid marker proves to be a lab's. `why` ends the sentence "<root> …". */
  | { readonly kind: 'unproven'; readonly why: string; readonly existing: readonly string[]; readonly advice?: string }
  | { readonly kind: 'proven'; readonly marker: LabMarker };

/** `stateFile` is what labs wrote before there were markers. Pure. */
export function classifyRoot(facts: RootFacts, stateFile: string): Ownership {
  const { root, marker, identity } = facts;
  const existing = [...facts.existing.keys()].map((path) => relative(root, path));
  switch (marker.kind) {
    case 'none': {
      if (existing.length === 0) return { kind: 'nothing' };
      const why = `holds ${existing.join(', ')}, and no marker of a lab (${MARKER_NAME}) proves that a lab made them`;
      const advice =
        'if a lab of an older nodelet did, take it down with that version, or check them and remove them by hand';
      return { kind: 'unproven', why, existing, ...(facts.existing.has(stateFile) ? { advice } : {}) };
    }
    case 'damaged': {
      const why = `has a damaged marker (${MARKER_NAME}: ${marker.why})`;
      return {
        kind: 'unproven',
        why,
        existing,
        advice: 'check the directory and remove by hand what was the lab’s',
      };
    }
    case 'valid': {
      const written = marker.marker;
      if (written.root === root && identity !== undefined && sameRoot(written.identity, identity)) {
        return { kind: 'proven', marker: written };
      }
      const why = `has the marker of another lab’s root (${MARKER_NAME} was written for ${written.root})`;
      const advice = `move it back to ${written.root}, or check the directory and remove it by hand`;
      return { kind: 'unproven', why, existing, ...(written.root === root ? {} : { advice }) };
    }
  }
}

/** Whether a mount point below the root is the lab's: in one of its areas, or a listed directory bound onto itself. Pure. */
export function isLabMount(marker: LabMarker, facts: Pick<RootFacts, 'existing'>, mount: string): boolean {
  return marker.made.some(({ kind, path, identity }) => {
    if (kind === 'mounts') return inArea(mount, path);
    return kind === 'directory' && path === mount && sameDirectory(identity, facts.existing.get(path));
  });
}

export interface RemovalPlan {
  /** Removed with everything in them, in this order. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
  /** On the list, and not there any more. */
  readonly gone: readonly string[];
  /** What stays though it is on the list, one sentence each. */
  readonly left: readonly string[];
}

/** `keep` returns whether a listed path stays for the next start. Pure. */
export function planRemoval(marker: LabMarker, facts: RootFacts, keep: (path: string) => boolean): RemovalPlan {
  const listed = marker.made.filter((entry) => entry.kind === 'directory' || entry.kind === 'file');
  const foreign = facts.mounts.filter(
    (mount) => listed.some((entry) => isWithin(mount, entry.path)) && !isLabMount(marker, facts, mount),
  );
  const [directories, files, gone]: [string[], string[], string[]] = [[], [], []];
  const left = foreign.map((mount) => `something is mounted on ${mount}, not by the lab: it stays, and what it is in`);
  for (const { kind, path, identity } of listed) {
    if (keep(path) || foreign.some((mount) => isWithin(mount, path))) continue;
    const there = facts.existing.get(path);
    if (there === undefined) gone.push(path);
    else if (kind === 'file' && there.kind === 'file') files.push(path);
    else if (kind === 'file') left.push(`${path} is not the file that the lab made`);
    else if (sameDirectory(identity, there) || (identity === undefined && there.empty === true)) directories.push(path);
    else left.push(`${path} is not the directory that the lab made`);
  }
  return { directories, files, gone, left };
}

function sameDirectory(made: DirectoryIdentity | undefined, there: ExistingFile | undefined): boolean {
  if (made === undefined || there?.kind !== 'directory') return false;
  return there.identity?.inode === made.inode && there.identity.born === made.born;
}

/** Whether a path is at or below an area, in which `*` matches one name. Pure. */
export function inArea(path: string, area: string): boolean {
  const [names, pattern] = [path.split('/'), area.split('/')];
  return pattern.length <= names.length && pattern.every((part, index) => part === '*' || part === names[index]);
}

/** Whether `name` is a half-written successor of a file of the lab's, which a killed process leaves (lib/atomic.ts). Pure. */
export function isTemporaryOf(name: string, file: string): boolean {
  const base = basename(file);
  return name.startsWith(`${base}.tmp-`) && /^\d+-(\d+|new|new\.tmp-\d+-\d+)$/.test(name.slice(base.length + 5));
}

/** "<root> <why>; <advice>: nothing of it is touched". Pure. */
export function unprovenMessage(root: string, ownership: Extract<Ownership, { readonly kind: 'unproven' }>): string {
  const { why, existing, advice } = ownership;
  const holds = existing.length === 0 || why.startsWith('holds ') ? '' : `, and holds ${existing.join(', ')}`;
  return `${root} ${why}${holds}: nothing in it is touched${advice === undefined ? '' : `; ${advice}`}`;
}
