// The recursive removal on trees with mounts in them, on this machine's kernel. Needs root, and no lab. What changes under
// the removal while it runs is the campaign test/hostile/campaigns/trees.ts.

import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';
import { MountPointError, removeTree } from '../../../lib/remove-tree.ts';
import { bindMount, bytes, unmount } from '../../hostile/trees/byte-paths.ts';

let base: string;
let mounted: Buffer[];
const at = (...parts: string[]): string => join(base, ...parts);

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-trees-')));
  mounted = [];
  // A user's data, on the same file system.
  mkdirSync(at('data', 'deeper'), { recursive: true });
  writeFileSync(at('data', 'file'), 'kept');
  writeFileSync(at('data', 'deeper', 'file'), 'kept');
  mkdirSync(at('tree', 'a', 'b'), { recursive: true });
  writeFileSync(at('tree', 'a', 'sibling'), 'x');
});
afterEach(async () => {
  for (const target of mounted.reverse()) await unmount(target);
  await removeTree(base);
});

async function bind(source: string | Buffer, target: string | Buffer, readOnly = false): Promise<void> {
  await bindMount(bytes(source), bytes(target), readOnly);
  mounted.push(bytes(target));
}

const dataIsKept = (): void => {
  expect(readdirSync(at('data')).sort()).toEqual(['deeper', 'file']);
  expect(readFileSync(at('data', 'deeper', 'file'), 'utf8')).toBe('kept');
};

/** The removal is refused with that mount named, whether the table is read first or not; then it is done. */
async function refused(path: string): Promise<void> {
  await expect(removeTree(at('tree'))).rejects.toThrow(MountPointError);
  await expect(removeTree(at('tree'))).rejects.toMatchObject({ code: 'EBUSY', path });
  // Nothing at all is removed.
  expect(existsSync(at('tree', 'a', 'sibling'))).toBe(true);
  await expect(removeTree(at('tree'), { withoutTable: true })).rejects.toMatchObject({ code: 'EBUSY', path });
  dataIsKept();
  for (const target of mounted.splice(0).reverse()) await unmount(target);
  await removeTree(at('tree'));
  expect(existsSync(at('tree'))).toBe(false);
  dataIsKept();
}

describe('a mount of the same file system is refused by its path, and what is behind it stays', () => {
  test('a directory', async () => {
    await bind(at('data'), at('tree', 'a', 'b'));
    await refused(at('tree', 'a', 'b'));
  });

  test('a read-only one', async () => {
    await bind(at('data'), at('tree', 'a', 'b'), true);
    await refused(at('tree', 'a', 'b'));
  });

  test('one within another', async () => {
    mkdirSync(at('data', 'inner'));
    await bind(at('data'), at('tree', 'a', 'b'));
    await bind(at('data', 'deeper'), at('tree', 'a', 'b', 'inner'));
    await expect(removeTree(at('tree'))).rejects.toMatchObject({ path: at('tree', 'a', 'b') });
    await expect(removeTree(at('tree', 'a', 'b', 'inner'))).rejects.toMatchObject({
      path: at('tree', 'a', 'b', 'inner'),
    });
    for (const target of mounted.splice(0).reverse()) await unmount(target);
    await removeTree(at('data', 'inner'));
    await removeTree(at('tree'));
    dataIsKept();
  });

  test('a part of the tree itself', async () => {
    mkdirSync(at('tree', 'c'));
    await bind(at('tree', 'a'), at('tree', 'c'));
    await refused(at('tree', 'c'));
  });

  test('the top', async () => {
    await bind(at('data'), at('tree'));
    await expect(removeTree(at('tree'))).rejects.toMatchObject({ path: at('tree') });
    await expect(removeTree(at('tree'), { withoutTable: true })).rejects.toMatchObject({ path: at('tree') });
    dataIsKept();
  });

  test('a file', async () => {
    await bind(at('data', 'file'), at('tree', 'a', 'sibling'));
    await refused(at('tree', 'a', 'sibling'));
    expect(readFileSync(at('data', 'file'), 'utf8')).toBe('kept');
  });

  test('the top that is a file', async () => {
    writeFileSync(at('top'), '');
    await bind(at('data', 'file'), at('top'));
    await expect(removeTree(at('top'))).rejects.toMatchObject({ path: at('top') });
    dataIsKept();
  });

  test('the tree is reached through a link', async () => {
    symlinkSync(base, at('link'));
    await bind(at('data'), at('tree', 'a', 'b'));
    await expect(removeTree(at('link', 'tree'))).rejects.toThrow(MountPointError);
    expect(existsSync(at('tree', 'a', 'sibling'))).toBe(true);
    dataIsKept();
  });

  test('another file system', async () => {
    await execOk('mount', ['-t', 'tmpfs', 'nodelet-test', at('tree', 'a', 'b')]);
    mounted.push(bytes(at('tree', 'a', 'b')));
    await refused(at('tree', 'a', 'b'));
  });

  test.for([
    ['newline', Buffer.from('line\nbreak\n')],
    ['backslash and digits', Buffer.from('back\\040slash')],
    ['" (deleted)"', Buffer.from('x (deleted)')],
    ['"//deleted" of the kernel, as far as a name can', Buffer.from('deleted')],
    ['not UTF-8', Buffer.from([0x78, 0xff, 0xc3, 0x28])],
  ] as const)('a name with %s', async ([, name]) => {
    const target = bytes(at('tree', 'a'), '/', name);
    mkdirSync(target);
    await bind(at('data'), target);
    await refused(target.toString());
  });
});

test('the way to the tree may be a mount, and have any name', async () => {
  const directory = bytes(base, '/mount\npoint (deleted)');
  mkdirSync(directory);
  await bind(at('tree'), directory);
  await removeTree(`${directory}/a`);
  expect(readdirSync(at('tree'))).toEqual([]);
});

test('a file system that shows no types of its entries', async () => {
  const image = at('image');
  await execOk('truncate', ['-s', '8M', image]);
  await execOk('mkfs.ext4', ['-q', '-O', '^filetype', image]);
  await execOk('mount', ['-o', 'loop', image, at('tree', 'a', 'b')]);
  mounted.push(bytes(at('tree', 'a', 'b')));
  const names = [Buffer.from('plain'), Buffer.from('ümlaut'), Buffer.from([0x79, 0xff, 0xfe])];
  const top = at('tree', 'a', 'b', 'top');
  mkdirSync(top);
  for (const name of names) {
    const directory = bytes(top, '/d', name);
    mkdirSync(directory);
    closeSync(openSync(bytes(top, '/f', name), 'w'));
    for (const inner of names) closeSync(openSync(bytes(directory, '/', inner), 'w'));
  }
  await removeTree(top);
  expect(existsSync(top)).toBe(false);
});
