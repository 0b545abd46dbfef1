// The project `services` really needs no containerd: no file of it imports what starts one, however far away.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { SERVICES } from '../../support/services.ts';

/** What starts a containerd or a lab. */
const STARTERS = [
  'cli/lab/lab.ts',
  'cli/lab/containerd.ts',
  'test/e2e/support/lab.ts',
  'test/e2e/support/containerd.ts',
];

/** Files that a file imports to run, not for their types alone. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8');
  const found = text.matchAll(/(?:^|\n)(?:import|export) (?!type )(?:[^';]*? from )?'(\.{1,2}\/[^']+)'/g);
  return [...found].map((match) => normalize(join(dirname(file), match[1] ?? ''))).filter((path) => existsSync(path));
}

/** The way from a file to the first starter it reaches; undefined when it reaches none. */
function wayToStarter(file: string): readonly string[] | undefined {
  const from = new Map<string, string | undefined>([[file, undefined]]);
  for (const path of from.keys()) {
    if (STARTERS.includes(path)) {
      const way: string[] = [];
      for (let at: string | undefined = path; at !== undefined; at = from.get(at)) way.unshift(at);
      return way;
    }
    for (const next of importsOf(path)) if (!from.has(next)) from.set(next, path);
  }
  return undefined;
}

const files = globSync([...SERVICES]);

/** Each of "a/{b,c}.ts" by itself: "a/b.ts", "a/c.ts". */
function alternatives(pattern: string): readonly string[] {
  const [whole = '', names = ''] = /\{([^}]*)\}/.exec(pattern) ?? [];
  return whole === '' ? [pattern] : names.split(',').map((name) => pattern.replace(whole, name));
}

test.each(SERVICES.flatMap(alternatives))('%s is there', (pattern) => expect(globSync(pattern)).not.toEqual([]));

test.each(files)('%s starts no containerd', (file) => expect(wayToStarter(file)).toBeUndefined());

test('a file that starts a lab would be seen', () => {
  expect(wayToStarter('test/e2e/agent/life.test.ts')?.at(-1)).toBe('test/e2e/support/lab.ts');
  expect(wayToStarter('test/e2e/runtime/cgroups.test.ts')).toContain('test/e2e/runtime/harness.ts');
});
