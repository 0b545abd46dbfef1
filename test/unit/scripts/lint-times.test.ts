// No moment is a plain number, and the two clocks are not mixed: holds for all of nodelet's code, and the rule finds both.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LintProject } from '../../../scripts/lint-project.ts';
import { looseTimes } from '../../../scripts/lint-times.ts';

const CLOCK = `
declare const epoch: unique symbol;
declare const monotonic: unique symbol;
export type EpochMs = number & { readonly [epoch]: true };
export type MonotonicMs = number & { readonly [monotonic]: true };
`;

const FIXTURE = `
import type { EpochMs, MonotonicMs } from './clock.ts';
interface Entry {
  readonly startedAt: number;
  readonly until?: number;
  readonly wakeAt: EpochMs;
  readonly leftMs: number;
}
class Keeper {
  #retryAt = 0;
  deadline: number | undefined;
  readonly now: () => number = () => this.#retryAt;
  readonly clock: () => EpochMs = () => 0 as EpochMs;
}
export function wait(now: number, at: MonotonicMs, entry: Entry, keeper: Keeper) {
  const later = entry.wakeAt < at;
  const between = at - entry.wakeAt;
  const since = entry.wakeAt + 5;
  const place = 'text'.indexOf('x');
  const same = keeper.clock() - entry.wakeAt;
  return [now, later, between, since, place, same];
}
`;

it('a moment that is a plain number is found, and so are two clocks in one expression', async () => {
  const root = join(await mkdtemp(join(tmpdir(), 'nodelet-times-')), '/');
  try {
    const options = { compilerOptions: { strict: true, target: 'es2024', lib: ['es2024'], types: [], noEmit: true } };
    const compilerOptions = { ...options.compilerOptions, allowImportingTsExtensions: true, module: 'esnext' };
    await writeFile(`${root}tsconfig.json`, JSON.stringify({ compilerOptions, files: ['fixture.ts'] }));
    await writeFile(`${root}clock.ts`, CLOCK);
    await writeFile(`${root}fixture.ts`, FIXTURE);
    using project = new LintProject(root);
    const found = looseTimes(project, () => true).map(({ text }) => text);
    expect(found).toEqual([
      'readonly startedAt: number;',
      'readonly until?: number;',
      '#retryAt = 0;',
      'deadline: number | undefined;',
      'readonly now: () => number = () => this.#retryAt;',
      'now: number',
      'since = entry.wakeAt + 5',
      'entry.wakeAt < at',
      'at - entry.wakeAt',
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});
