// docs/controllers.md lists every controller that there is, and no other as one.

import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONTROLLERS } from '../../../controlplane/controllers.ts';

const PAGE = readFileSync('docs/controllers.md', 'utf8');
const ROWS = [...PAGE.matchAll(/^\| `([a-z-]+)` \| ([^|]*?) \|/gm)].map(([, name = '', here = '']) => ({ name, here }));

test('what is here has a row of its own name', () => {
  const present = ROWS.filter(({ here }) => here !== 'no' && here !== 'the server').map(({ name }) => name);
  expect(present.toSorted()).toEqual(CONTROLLERS.map(({ name }) => name).toSorted());
});

test('each name is there once, and each file exists', () => {
  expect(new Set(ROWS.map(({ name }) => name)).size).toBe(ROWS.length);
  const paths = [...PAGE.matchAll(/`((?:test|apiserver|client|controlplane)\/[^`\s]+)`/g)].map(([, path = '']) => path);
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});
