// Trees that are made to mislead a removal: names of any bytes, links, directories within directories, and a user's
// data beside them, with a checksum. For the campaign "trees".

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import type { Random } from '../random.ts';
import { bytes } from './byte-paths.ts';

const NAMES: readonly [Buffer, ...Buffer[]] = [
  bytes('plain'),
  bytes('line\nbreak'),
  bytes('line\n'),
  bytes('back\\slash'),
  bytes('octal\\040'),
  bytes(' leading and trailing '),
  bytes('x (deleted)'),
  bytes('ümlaut…'),
  bytes(Buffer.from([0x66, 0xff, 0xfe, 0x80])),
  bytes(Buffer.from([0xc3, 0x28])),
  bytes('-rf'),
  bytes('...'),
  bytes('tab\there'),
  bytes('n'.repeat(255)),
];

export interface Tree {
  /** Every directory, those above first. */
  readonly directories: readonly Buffer[];
  readonly files: readonly Buffer[];
}

/** A tree of some dozen entries at `top`, which does not exist yet; some of its links lead to `outside`. */
export function makeTree(top: Buffer, outside: Buffer, random: Random): Tree {
  mkdirSync(top);
  const directories = [top];
  const files: Buffer[] = [];
  const entries = 5 + random.below(40);
  for (let index = 0; index < entries; index++) {
    const above = directories[random.below(directories.length)] ?? top;
    const path = bytes(above, '/', random.pick(NAMES));
    // Within the kernel's limit of a path; and a name that is there already stays what it is.
    if (path.length > 3000 || lstatSync(path, { throwIfNoEntry: false }) !== undefined) continue;
    const kind = random.below(10);
    if (kind < 5) {
      mkdirSync(path);
      directories.push(path);
    } else if (kind < 8) {
      writeFileSync(path, 'x');
      files.push(path);
    } else symlinkSync(kind === 8 ? outside : bytes('nowhere'), path);
  }
  return { directories, files };
}

/** A user's data at `path`. */
export function makeData(path: Buffer): void {
  mkdirSync(bytes(path, '/deeper/still'), { recursive: true });
  for (const name of ['one', 'two', 'deeper/three', 'deeper/still/four']) writeFileSync(bytes(path, '/', name), name);
}

/** Of every name and all content below. */
export function checksum(path: Buffer): string {
  const hash = createHash('sha256');
  const visit = (at: Buffer): void => {
    for (const name of readdirSync(at, 'buffer').toSorted(Buffer.compare)) {
      const inner = bytes(at, '/', name);
      const stat = lstatSync(inner);
      hash.update(name).update(`\0${stat.mode}\0`);
      if (stat.isDirectory()) visit(inner);
      else hash.update(stat.isSymbolicLink() ? readlinkSync(inner) : readFileSync(inner));
    }
  };
  visit(path);
  return hash.digest('hex');
}
