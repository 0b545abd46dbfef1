// The rule about look-ups of outside names in plain objects finds them, and nothing else.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { unsafeLookups } from '../../../scripts/lint-lookups.ts';
import { LintProject } from '../../../scripts/lint-project.ts';

const FIXTURE = `
const TABLE: Readonly<Record<string, number>> = { known: 1 };
const FIXED: Readonly<Record<'a' | 'b', number>> = { a: 1, b: 2 };
export function unsafe(name: string, labels: { [key: string]: string } | undefined, out: Record<string, string>) {
  const read = TABLE[name];
  const optional = labels?.[name];
  const built = TABLE['x.'.concat(name)];
  out[name] = 'written';
  const present = name in out;
  for (const key of Object.keys(out)) out[key] += read;
  return [read, optional, built, present];
}
export function generic<K extends string>(table: Record<K, number>, key: K) {
  return table[key];
}
export function safe(kind: 'a' | 'b', list: string[], index: number, map: Map<string, number>, out: Record<string, string>) {
  delete out[kind];
  return [FIXED[kind], list[index], list[list.length - 1], map.get(kind), TABLE['known'], 'known' in TABLE];
}
`;

describe('look-ups by outside names', () => {
  it('are refused in plain objects, and only there', async () => {
    const root = join(await mkdtemp(join(tmpdir(), 'nodelet-lookups-')), '/');
    try {
      const options = { compilerOptions: { strict: true, target: 'es2024', lib: ['es2024'], types: [] } };
      await writeFile(`${root}tsconfig.json`, JSON.stringify({ ...options, files: ['fixture.ts'] }));
      await writeFile(`${root}fixture.ts`, FIXTURE);
      using project = new LintProject(root);
      const found = unsafeLookups(project, () => true);
      expect(found.map(({ text }) => text).toSorted()).toEqual(
        [
          'TABLE[name]',
          'labels?.[name]',
          "TABLE['x.'.concat(name)]",
          'out[name]',
          'name in out',
          'out[key]',
          'table[key]',
        ].toSorted(),
      );
      expect(found.find(({ text }) => text === 'TABLE[name]')).toMatchObject({ file: 'fixture.ts', line: 5 });
    } finally {
      await rm(root, { recursive: true });
    }
  });
});
