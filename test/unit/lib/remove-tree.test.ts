// What needs no root of the one recursive removal; mounts and races are in test/e2e/removal.

import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeTree } from '../../../lib/remove-tree.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'nodelet-remove-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const at = (...parts: string[]): string => join(base, ...parts);

describe('removeTree', () => {
  test('files, empty and full directories, links and the top go', async () => {
    mkdirSync(at('tree', 'a', 'b', 'c'), { recursive: true });
    mkdirSync(at('tree', 'empty'));
    writeFileSync(at('tree', 'a', 'file'), 'x');
    writeFileSync(at('tree', 'a', 'b', 'file'), 'x');
    symlinkSync('nowhere', at('tree', 'dangling'));
    await removeTree(at('tree'));
    expect(readdirSync(base)).toEqual([]);
  });

  test('links are removed and not followed, wherever they are', async () => {
    mkdirSync(at('outside', 'sub'), { recursive: true });
    writeFileSync(at('outside', 'kept'), 'x');
    mkdirSync(at('tree', 'a'), { recursive: true });
    symlinkSync(at('outside'), at('tree', 'a', 'link'));
    symlinkSync(at('outside', 'kept'), at('tree', 'file-link'));
    symlinkSync(at('outside'), at('top-link'));
    await removeTree(at('tree'));
    await removeTree(at('top-link'));
    expect(readdirSync(base)).toEqual(['outside']);
    expect(readdirSync(at('outside'))).toEqual(['kept', 'sub']);
  });

  test('nothing there is success, also where the directory above is missing', async () => {
    await removeTree(at('none'));
    await removeTree(at('none', 'none'));
  });

  test('a file goes', async () => {
    writeFileSync(at('file'), 'x');
    await removeTree(at('file'));
    expect(existsSync(at('file'))).toBe(false);
  });

  test('names that are not UTF-8, and names with newline, backslash and " (deleted)"', async () => {
    const names = ['line\nbreak', 'back\\slash', 'octal\\040', 'x (deleted)', 'ümlaut', '…'].map((name) =>
      Buffer.from(name),
    );
    names.push(Buffer.from([0x66, 0xff, 0xfe, 0x80]), Buffer.from([0xc3, 0x28]));
    mkdirSync(at('tree'));
    for (const name of names) {
      const directory = Buffer.concat([Buffer.from(`${at('tree')}/d`), name]);
      mkdirSync(directory);
      for (const inner of names) writeFileSync(Buffer.concat([directory, Buffer.from('/'), inner]), 'x');
      writeFileSync(Buffer.concat([Buffer.from(`${at('tree')}/f`), name]), 'x');
    }
    await removeTree(at('tree'));
    expect(readdirSync(base)).toEqual([]);
  });

  test.for(['', '.', '..', '/', '//', 'relative', '/tmp/x/.', '/tmp/x/..'])('%j is refused', async (path) => {
    await expect(removeTree(path)).rejects.toThrow(RangeError);
  });

  test('a tree 5,000 deep, its paths too long for the kernel, takes few descriptors', async () => {
    makeDeep(at('tree'), 5000);
    const before = openDescriptors();
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, openDescriptors());
    });
    await removeTree(at('tree'));
    clearInterval(timer);
    expect(readdirSync(base)).toEqual([]);
    expect(most).toBeGreaterThan(0);
    expect(most - before).toBeLessThan(40);
    expect(openDescriptors()).toBeLessThanOrEqual(before);
  });

  test('more full directories than are remembered, and more files than are read at a time', async () => {
    for (let index = 0; index < 2500; index++) {
      mkdirSync(at('tree', `directory-${index}`), { recursive: true });
      writeFileSync(at('tree', `directory-${index}`, 'file'), '');
      writeFileSync(at('tree', `file-${index}`), '');
    }
    let turns = 0;
    const timer = setInterval(() => turns++);
    await removeTree(at('tree'));
    clearInterval(timer);
    expect(readdirSync(base)).toEqual([]);
    // Others have their turns meanwhile.
    expect(turns).toBeGreaterThan(5);
  });

  test('two at the same tree at once both succeed', async () => {
    for (let index = 0; index < 600; index++) {
      mkdirSync(at('tree', `${index % 7}`, `${index}`), { recursive: true });
      writeFileSync(at('tree', `${index % 7}`, `${index}`, 'file'), '');
    }
    await Promise.all([removeTree(at('tree')), removeTree(at('tree'))]);
    expect(readdirSync(base)).toEqual([]);
  });

  test('a failure names the path and keeps the errno', async () => {
    writeFileSync(at('file'), 'x');
    await expect(removeTree(at('file', 'below'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

function makeDeep(path: string, depth: number): void {
  mkdirSync(path);
  let fd = openSync(path, 'r');
  for (let level = 0; level < depth; level++) {
    mkdirSync(`/proc/self/fd/${fd}/a-directory`);
    const next = openSync(`/proc/self/fd/${fd}/a-directory`, 'r');
    closeSync(fd);
    fd = next;
  }
  closeSync(fd);
}
