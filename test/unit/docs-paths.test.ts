// The pages that say where things are name files and folders that exist.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const ROOMS =
  /^(agent|apiserver|cli|client|cni|controlplane|csi|dns|dockershim|labs|lib|netpol|proto|proxy|scripts|test)\//;

/** Paths in backticks; a bare file name beside a path, as in a table's cell, is in the folder of the path before it. */
function namedPaths(text: string): string[] {
  const found: string[] = [];
  for (const line of text.split('\n')) {
    let folder: string | undefined;
    for (const [, quoted = ''] of line.matchAll(/`([^`\s]+)`/g)) {
      if (ROOMS.test(quoted) && !/[<>*()#]/.test(quoted)) {
        found.push(quoted);
        folder = dirname(quoted);
      } else if (folder !== undefined && /^[a-z0-9-]+(\/[a-z0-9-]+)?\.ts$/.test(quoted))
        found.push(join(folder, quoted));
    }
  }
  return found;
}

test.each(['docs/design.md', 'docs/glossary.md'])('every file that %s names exists', (page) => {
  const paths = namedPaths(readFileSync(page, 'utf8'));
  expect(paths.length).toBeGreaterThan(30);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

test('the map names every folder of the tree, and every room in it', () => {
  const folders = readdirSync('.', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && ROOMS.test(`${entry.name}/`))
    .map(({ name }) => name);
  const rooms = folders
    .filter((folder) => folder !== 'test')
    .flatMap((folder) =>
      readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isDirectory() && entry.name !== 'gen')
        .map(({ name }) => `${folder}/${name}`),
    );
  const map = readFileSync('docs/design.md', 'utf8');
  const missing = [...folders.filter((folder) => folder !== 'test').map((folder) => `${folder}/`), ...rooms].filter(
    (path) => !new RegExp(`\\b${path}(?![\\w-])`).test(map),
  );
  expect(missing).toEqual([]);
});

test('the glossary has a section for each room of the agent and each component', () => {
  const sections = [...readFileSync('docs/glossary.md', 'utf8').matchAll(/^## (\S+)$/gm)].map(([, room]) => room);
  const rooms = [
    'admission',
    'api',
    'credentials',
    'eviction',
    'network',
    'node',
    'pods',
    'probes',
    'runtime',
    'server',
  ];
  const agent = [...rooms, 'shutdown', 'sources', 'volumes'].map((room) => `agent/${room}`);
  expect(sections).toEqual(
    expect.arrayContaining([...agent, 'apiserver', 'client', 'cni', 'controlplane', 'csi', 'lib']),
  );
});

test('every exported identifier that the glossary names is in its file', () => {
  const rows = readFileSync('docs/glossary.md', 'utf8').matchAll(/^\|[^|]*\|([^|]*)\|([^|]*)\|$/gm);
  const missing: string[] = [];
  for (const [, names = '', cell = ''] of rows) {
    const text = namedPaths(cell)
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n');
    if (text === '') continue;
    for (const [, name = ''] of names.matchAll(/`([^`]+)`/g))
      for (const part of name.split('.')) if (!text.includes(part)) missing.push(`${name} in ${cell.trim()}`);
  }
  expect(missing).toEqual([]);
});

test('a path is found in a table, with the file beside it', () => {
  expect(namedPaths('| `word` | `lib/clock.ts`, `nothing.ts` | `pods/<uid>/x` |')).toEqual([
    'lib/clock.ts',
    'lib/nothing.ts',
  ]);
});
