// The demo with everything real: this machine, a lab started as `nodelet up` starts it, lines on stdout.

import { UserError } from '../../lib/errors.ts';
import { startLab } from '../lab/lab.ts';
import { compareWithMachine, lookAtMachine } from '../lab/machine.ts';
import { labPaths } from '../lab/paths.ts';
import { runDemo } from './run.ts';

export interface DemoFlags {
  readonly root: string;
  /** `machine` compares everything; `lab` only what bears this lab's names, where others use the machine meanwhile. */
  readonly compare: 'machine' | 'lab';
  readonly cgroupDriver?: 'cgroupfs' | 'systemd';
}

/** Resolves with the exit code. Rejects with UserError when it is not root or the lab cannot start. */
export async function demoOnThisMachine(flags: DemoFlags, signal: AbortSignal): Promise<number> {
  if (process.getuid?.() !== 0) throw new UserError('must be root: the demo runs a real pod on this machine');
  const started = performance.now();
  const say = (line: string): void => {
    const seconds = ((performance.now() - started) / 1000).toFixed(2);
    process.stdout.write(`${seconds.padStart(6)} s  ${line}\n`);
  };
  const paths = labPaths(flags.root);
  const own = [paths.root, paths.hash, paths.bridge, paths.networkName];
  const directories = [paths.root];
  const before = await lookAtMachine({ directories });
  const driver = flags.cgroupDriver === undefined ? {} : { cgroupDriver: flags.cgroupDriver };
  return runDemo({
    say,
    startLab: () => startLab({ root: flags.root, say: (line) => say(`  ${line}`), signal, ...driver }),
    leftBehind: () =>
      compareWithMachine(before, { directories, ...(flags.compare === 'lab' ? { mentioning: own } : {}) }),
    signal,
  });
}
