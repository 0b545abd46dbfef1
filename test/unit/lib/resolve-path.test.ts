import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UserError } from '../../../lib/errors.ts';
import { resolvePath } from '../../../lib/resolve-path.ts';

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-resolve-')));
  mkdirSync(join(base, 'real', 'inner'), { recursive: true });
  symlinkSync('real', join(base, 'link'));
  symlinkSync(join(base, 'nowhere'), join(base, 'dangling'));
});
afterEach(() => rmSync(base, { recursive: true }));

test.for([
  ['real/inner', 'real/inner'],
  ['link', 'real'],
  ['link/inner', 'real/inner'],
  ['link/none/deeper', 'real/none/deeper'],
  ['none', 'none'],
  ['real/../link/', 'real'],
] as const)('%s is %s', ([path, expected]) => {
  expect(resolvePath(`${base}/${path}`)).toBe(join(base, expected));
});

test('a link that leads nowhere is refused by name, also above the last name', () => {
  for (const path of ['dangling', 'dangling/x']) {
    expect(() => resolvePath(join(base, path))).toThrow(UserError);
    expect(() => resolvePath(join(base, path))).toThrow(join(base, 'dangling'));
  }
});

test('the root directory', () => expect(resolvePath('/')).toBe('/'));
