// How the pages of drills are read, and what counts as printed as shown.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { difference, drillsOf, lineMatches } from '../../support/drills.ts';

const page = (...lines: string[]): string => lines.join('\n');

test('a drill is a section, with its blocks in order and what each prints', () => {
  const text = page(
    '# Drills',
    '```text',
    'of the head',
    '```',
    '## C1: a pod',
    '```sh drill',
    'kubectl run web',
    'true',
    '```',
    'One sees:',
    '```text',
    'pod/web created',
    '```',
    '```yaml',
    'kind: Pod',
    '```',
    '```sh drill',
    'false',
    '```',
    '```text any order',
    'a',
    'b',
    '```',
    '## Not a drill',
    '## C11: drain',
    '```sh drill alone',
    'kubectl drain node-1',
    '```',
  );
  expect(drillsOf('docs/x.md', text)).toEqual([
    {
      page: 'docs/x.md',
      title: 'C1: a pod',
      slug: 'c1-a-pod',
      alone: false,
      steps: [
        { line: 6, script: 'kubectl run web\ntrue', shown: { lines: ['pod/web created'], anyOrder: false } },
        { line: 17, script: 'false', shown: { lines: ['a', 'b'], anyOrder: true } },
      ],
    },
    {
      page: 'docs/x.md',
      title: 'C11: drain',
      slug: 'c11-drain',
      alone: true,
      steps: [{ line: 26, script: 'kubectl drain node-1' }],
    },
  ]);
});

test.each([
  ['before a heading', page('```sh drill', 'true', '```'), 'x.md:1: a block of a drill before the first heading'],
  ['without an end', page('## A', '```sh drill', 'true'), 'x.md:2: the block does not end'],
  ['of an unknown sort', page('## A', '```sh drill last', 'true', '```'), 'x.md:2: "sh drill last" is neither'],
  [
    'alone, and not the first',
    page('## A', '```sh drill', '```', '```sh drill alone', '```'),
    'x.md:4: "sh drill alone" is',
  ],
  ['of output without commands', page('## A', '```text', '```'), 'x.md:2: no block of commands prints this'],
  ['of output twice', page('## A', '```sh drill', '```', '```text', '```', '```text', '```'), 'x.md:6: no block of'],
])('a block %s is refused', (_, text, message) => {
  expect(() => drillsOf('x.md', text)).toThrow(message);
});

test.each([
  ['pod/web created', 'pod/web created', true],
  ['pod/web created', 'pod/web created  ', true],
  ['NAME   READY', 'NAME      READY   ', true],
  ['  indented', 'indented', false],
  ['web-…  1/1  Running', 'web-7f5  1/1     Running', true],
  ['web-…  1/1  Running', 'web-7f5  0/1     Running', false],
  ['a.c', 'abc', false],
  ['(x) [y] {z} $1 ^ | \\ ? *', '(x) [y] {z} $1 ^ | \\ ? *', true],
  ['web', 'web2', false],
  ['…s', '5s', true],
])('"%s" shown, "%s" printed: %s', (shown, printed, same) => {
  expect(lineMatches(shown, printed)).toBe(same);
});

describe.each([
  ['in order', false],
  ['any order', true],
])('%s', (_, anyOrder) => {
  const compare = (shown: string[], printed: string): string | undefined =>
    difference({ lines: shown, anyOrder }, printed);

  test('all lines have to be there, and no others', () => {
    expect(compare(['a', 'b'], 'a\nb\n')).toBeUndefined();
    expect(compare([], '')).toBeUndefined();
    expect(compare(['a', 'b'], 'a\n')).toBeDefined();
    expect(compare(['a'], 'a\nb\n')).toBeDefined();
    expect(compare(['a', 'a'], 'a\n')).toBeDefined();
    expect(compare(['a'], '')).toBeDefined();
    expect(compare([], 'a\n')).toBeDefined();
  });

  test('the order counts unless the page says otherwise', () => {
    expect(compare(['a', 'b'], 'b\na\n') === undefined).toBe(anyOrder);
  });

  test('a line of … is any number of lines', () => {
    expect(compare(['…'], '')).toBeUndefined();
    expect(compare(['a', '…', 'd'], 'a\nb\nc\nd\n')).toBeUndefined();
    expect(compare(['a', '…', 'd'], 'a\nd\n')).toBeUndefined();
    expect(compare(['…', 'b', '…'], 'a\nb\nb\nc\n')).toBeUndefined();
    expect(compare(['a', '…', 'd'], 'a\nb\nc\n')).toBeDefined();
  });

  test('a pattern takes the line that no other one can be', () => {
    expect(compare(['web-…', 'web-1'], 'web-2\nweb-1\n')).toBeUndefined();
    if (anyOrder) expect(compare(['web-…', 'web-1'], 'web-1\nweb-2\n')).toBeUndefined();
  });
});

test('a difference names the line', () => {
  const shown = { lines: ['a', 'b…'], anyOrder: false };
  expect(difference(shown, 'a\nc\n')).toBe('where "b…" is shown, there is "c"');
  expect(difference(shown, 'a\n')).toBe('where "b…" is shown, there is nothing');
  expect(difference(shown, 'a\nb\nc\n')).toBe('after what is shown, there is "c"');
  expect(difference({ ...shown, anyOrder: true }, 'a\nc\n')).toBe('no line is "b…"');
  expect(difference({ ...shown, anyOrder: true }, 'a\nb\nc\n')).toBe('beside what is shown, there is "c"');
});

test('the pages are written so, and no two drills have one name', () => {
  const pages = readdirSync('docs').filter((name) => /^drills.*\.md$/.test(name));
  const drills = pages.flatMap((name) => drillsOf(`docs/${name}`, readFileSync(`docs/${name}`, 'utf8')));
  const slugs = drills.map(({ slug }) => slug);
  expect(slugs.length).toBeGreaterThan(0);
  expect(slugs).toEqual([...new Set(slugs)]);
});
