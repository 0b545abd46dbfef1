// Every rule of `nodelet explain` gives its verdict for something real in an end-to-end test: a rule that no such test names has a table only.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const TREE = fileURLToPath(new URL('../../../../', import.meta.url));
const RULES = join(TREE, 'cli/explain/rules');
const TESTS = join(TREE, 'test/e2e');

/** The files of a directory, and of those below it. */
function filesOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(directory, name), 'utf8'));
}

/** As `Rule` declares them. */
const NAMES = filesOf(RULES).flatMap((text) =>
  [...text.matchAll(/^export const \w+: Rule<\w+> = \{\n {2}name: '([\w-]+)'/gm)].map(([, name = '']) => name),
);
const PRODUCED = filesOf(TESTS).filter((text) => /explain/.test(text));

test('the rules are found', () => {
  expect(NAMES.length).toBeGreaterThan(50);
});

test.each(NAMES)('%s', (name) => {
  expect(PRODUCED.some((text) => text.includes(`'${name}'`))).toBe(true);
});
