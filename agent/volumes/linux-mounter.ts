// The Mounter port on a real Linux: util-linux's mount and umount for changes, /proc/self/mountinfo for the truth. Each
// change is one span. Never decides what to mount.

import { readFile } from 'node:fs/promises';
import { errorMessage } from '../../lib/errors.ts';
import { type Exec, exec } from '../../lib/exec.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { Mounter } from '../ports/mounter.ts';
import { mountAt, parseMountInfo } from './mountinfo.ts';

export interface LinuxMounterOptions {
  readonly tracer: Tracer;
  /** How programs are run; lib/exec by default. */
  readonly exec?: Exec;
  /** Whose mount table counts; the agent's own by default. */
  readonly mountInfo?: string;
}

/** A mount that hangs (a dead server) must not hold its pod for ever; the kubelet's own limit is 2 min and some. */
const TIMEOUT_MS = 120_000;

export function createLinuxMounter(options: LinuxMounterOptions): Mounter {
  const { tracer, exec: run = exec, mountInfo = '/proc/self/mountinfo' } = options;

  const list: Mounter['list'] = async () => parseMountInfo(await readFile(mountInfo, 'utf8'));

  /** Runs the program; gives what it said when it failed. */
  async function call(program: string, args: readonly string[]): Promise<string | undefined> {
    const result = await run(program, args, { timeoutMs: TIMEOUT_MS });
    if (result.code === 0) return undefined;
    const status = result.timedOut
      ? `no end after ${TIMEOUT_MS / 1000}s`
      : `exit status ${result.code ?? result.signal}`;
    return `${status}, command: ${[program, ...args].join(' ')}, output: ${(result.stderr || result.stdout).trim()}`;
  }

  return {
    list,
    async mount({ fsType, source, target, options: flags = [] }) {
      // -n: no /run/mount/utab. -c: paths are ours and taken literally; /proc/<pid>/fd/<n> must not be resolved.
      const args = ['-n', '-c'];
      if (fsType !== undefined) args.push('-t', fsType);
      if (flags.length > 0) args.push('-o', flags.join(','));
      args.push(source, target);
      const name = `mount ${fsType ?? flags.find((flag) => /bind/.test(flag)) ?? ''}`.trim();
      await tracer.span('mount', name, { source, target, options: flags }, async () => {
        let failure: string | undefined;
        try {
          failure = await call('mount', args);
        } catch (error) {
          throw new Error(`mount failed: cannot run mount: ${errorMessage(error)}`, { cause: error });
        }
        if (failure !== undefined) throw new Error(`mount failed: ${failure}`);
      });
    },
    async unmount(target) {
      await tracer.span('mount', 'umount', { target }, async () => {
        const failure = await call('umount', ['-n', '-c', target]);
        if (failure === undefined) return;
        // umount fails alike for "busy" and "not mounted"; the mount table tells which.
        if (mountAt(await list(), target) === undefined) return;
        throw new Error(`unmount failed: ${failure}`);
      });
    },
  };
}
