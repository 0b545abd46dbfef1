// A process that exchanges two names without end, each time in one step, as fast as the kernel can.

import { type ChildProcess, spawn } from 'node:child_process';

/** renameat2(2) with RENAME_EXCHANGE. */
const RENAMEAT2: Readonly<Partial<Record<string, number>>> = { x64: 316, arm64: 276 };
const EXCHANGE =
  'my ($n, $a, $b) = @ARGV; $| = 1; print "begun\n"; for (;;) { syscall($n + 0, -100, $a, -100, $b, 2) }';

/** Resolves when it has begun; to be killed by the caller. */
export async function exchangeForever(one: string, other: string): Promise<ChildProcess> {
  const number = RENAMEAT2[process.arch];
  if (number === undefined) throw new Error(`renameat2 has no number here for ${process.arch}`);
  const child = spawn('perl', ['-e', EXCHANGE, String(number), one, other], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}
