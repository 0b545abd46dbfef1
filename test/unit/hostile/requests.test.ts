// The campaign "requests" as far as it is quick, and always the same; `npm run test:hostile -- requests` is the whole of it.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';
import type { Figures } from '../../hostile/campaign.ts';

const PROGRAM = join(import.meta.dirname, 'requests-program.ts');
const ROUNDS = 1500;
const SEED = 7;
const MIB = 1024 * 1024;

test('hostile requests of every kind crash nothing, change nothing elsewhere and leave nothing behind', async () => {
  const stdout = await execOk(process.execPath, [PROGRAM, String(ROUNDS), String(SEED)], { maxOutputBytes: 16 * MIB });
  const { figures, lines }: { figures: Figures; lines: string[] } = JSON.parse(stdout);
  expect(figures, lines.join('\n')).toMatchObject({ tried: ROUNDS, crashed: 0, lost: 0 });
  // Not everything is refused: what is plausible reaches the store.
  expect(figures.refused).toBeGreaterThan(ROUNDS / 4);
  expect(figures.refused).toBeLessThan(ROUNDS * 0.9);
});
