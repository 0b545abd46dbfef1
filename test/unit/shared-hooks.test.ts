// Files of one worker share their modules: a hook that a module registers while it is loaded belongs to the file that loads it first,
// and the others run without it. So hooks are in tests, or in functions that tests call.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** vitest runs it anew for each file. */
const SET_UP = 'test/support/patience.ts';
const HOOK = /^(?:before|after)(?:Each|All)\(/m;

function modules(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return modules(path);
    return path.endsWith('.ts') && !path.endsWith('.test.ts') ? [path] : [];
  });
}

test('no module that tests share registers a hook while it is loaded', () => {
  const all = modules('test');
  expect(all).toContain(SET_UP);
  expect(HOOK.test(readFileSync(SET_UP, 'utf8'))).toBe(true);
  expect(all.filter((path) => path !== SET_UP && HOOK.test(readFileSync(path, 'utf8')))).toEqual([]);
});
