// The demo: starts labs one after the other, does with each what it is for, takes everything down again and compares the machine
// before and after. Each claim is a check; one that does not hold fails the demo.

import { whenAborted } from '../../lib/abort.ts';
import { elapsedMs, systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { Checks } from './checks.ts';
import type { DemoLab, Show } from './lab.ts';

export interface DemoPart {
  /** What is started: "containerd, API server, control plane, agent". */
  readonly title: string;
  /** Sets up and starts the lab; prints its own steps. */
  readonly startLab: () => Promise<DemoLab>;
  readonly show: Show;
}

export interface DemoOptions {
  readonly say: (line: string) => void;
  readonly parts: readonly DemoPart[];
  /** What differs on the machine from before the first lab, one line each. */
  readonly leftBehind: () => Promise<readonly string[]>;
  /** Ctrl-C: what runs is taken down, and the demo fails. */
  readonly signal: AbortSignal;
}

async function interrupted(signal: AbortSignal): Promise<never> {
  await whenAborted(signal);
  throw new Error('interrupted');
}

/** Resolves with the exit code: 0 only if every check passed. Never rejects for a check that does not. */
export async function runDemo(options: DemoOptions): Promise<number> {
  const { say } = options;
  const started = systemClock.monotonic();
  const checks = new Checks(say);
  for (const part of options.parts) {
    // A part that failed says enough; the next one would hide it.
    if (checks.failed === 0) await runPart(part, checks, options);
  }
  say('== the machine, before and after');
  const left = await options.leftBehind();
  checks.check(
    left.length === 0,
    'processes, mounts, network namespaces, links, firewall rules, cgroups and directories are as before',
    left.join('\n'),
  );
  const seconds = (elapsedMs(started, systemClock.monotonic()) / 1000).toFixed(1);
  say(
    `== ${checks.failed === 0 ? 'done' : 'FAILED'}: ${checks.passed} passed, ${checks.failed} failed, in ${seconds} s`,
  );
  return checks.failed === 0 ? 0 : 1;
}

async function runPart(part: DemoPart, checks: Checks, { say, signal }: DemoOptions): Promise<void> {
  say(`== starting a lab: ${part.title}`);
  const lab = await part.startLab();
  try {
    await Promise.race([part.show(lab, checks, say), interrupted(signal)]);
  } catch (error) {
    checks.check(false, `the demo stopped: ${errorMessage(error)}`);
  }
  say('== taking everything down');
  for (const problem of await lab.stop()) checks.check(false, problem);
}
