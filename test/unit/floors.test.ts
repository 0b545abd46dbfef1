// The shape of the house, as the README tells it: a folder imports only from floors below it, and the rooms of the agent
// meet in agent/ports and agent/config alone.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';

/** From the ground up; what stands in one row must not know each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['lib'],
  ['proto'],
  ['client'],
  ['cni'],
  ['csi'],
  ['agent', 'apiserver', 'controlplane'],
  ['labs'],
  ['cli'],
];
const SHARED_ROOMS = new Set(['ports', 'config']);

interface Import {
  readonly from: string;
  readonly to: string;
}

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === 'gen' ? [] : sources(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

const imports: readonly Import[] = FLOORS.flat()
  .flatMap(sources)
  .flatMap((from) => {
    const text = readFileSync(from, 'utf8');
    const found = text.matchAll(/(?:from|import) '(\.{1,2}\/[^']+)'|import\('(\.{1,2}\/[^']+)'\)/g);
    return [...found].map((match) => ({ from, to: normalize(join(dirname(from), match[1] ?? match[2] ?? '')) }));
  });

const top = (path: string): string => path.split('/')[0] ?? '';
const floorOf = (path: string): number => FLOORS.findIndex((floor) => floor.includes(top(path)));
/** The folder inside agent/; undefined for the files that put the rooms together. */
function roomOf(path: string): string | undefined {
  const [house, room, file] = path.split('/');
  return house === 'agent' && file !== undefined ? room : undefined;
}

test('there is something to look at', () => {
  expect(imports.length).toBeGreaterThan(1000);
});

test('a folder imports only from floors below it', () => {
  const wrong = imports.filter(({ from, to }) => top(from) !== top(to) && floorOf(to) >= floorOf(from));
  expect(wrong).toEqual([]);
});

test('nothing that runs imports a test', () => {
  expect(imports.filter(({ to }) => floorOf(to) === -1)).toEqual([]);
});

test('the rooms of the agent meet in agent/ports and agent/config alone', () => {
  const wrong = imports.filter(({ from, to }) => {
    const [mine, other] = [roomOf(from), roomOf(to)];
    return mine !== undefined && other !== undefined && mine !== other && !SHARED_ROOMS.has(other);
  });
  expect(wrong).toEqual([]);
});
