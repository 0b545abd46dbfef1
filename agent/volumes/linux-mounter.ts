// The Mounter port on a real Linux: util-linux's mount and umount for changes, /proc/self/mountinfo for the truth. Each
// change is one span. Never decides what to mount.

import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { errorMessage } from '../../lib/errors.ts';
import { type Exec, exec } from '../../lib/exec.ts';
import { mountAt, parseMountInfo, parseMountsUnder } from '../../lib/mountinfo.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { Mounter } from '../ports/mounter.ts';

export interface LinuxMounterOptions {
  readonly tracer: Tracer;
  /** How programs are run; lib/exec by default. */
  readonly exec?: Exec;
  /** The mount table that is read; the agent's own by default. */
  readonly mountInfo?: string;
  /** "6.1.0-18-amd64": what the kernel can; this machine's by default. */
  readonly kernelRelease?: string;
}

/** A mount that hangs (a dead server) must not hold its pod for ever; the kubelet's own limit is 2 min and some. */
const TIMEOUT_MS = 120_000;

/** How long a program that has to give up on a dead server may take, ms. */
const FORCE_TIMEOUT_MS = 20_000;

/** Whether tmpfs of this kernel can be kept out of swap: what is in memory for secrecy must not reach a disk. Pure. */
export function knowsNoswap(kernelRelease: string): boolean {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(kernelRelease) ?? [];
  return Number(major) > 6 || (Number(major) === 6 && Number(minor) >= 4);
}

export function createLinuxMounter(options: LinuxMounterOptions): Mounter {
  const { tracer, exec: run = exec, mountInfo = '/proc/self/mountinfo' } = options;
  const tmpfsOptions = knowsNoswap(options.kernelRelease ?? release()) ? ['noswap'] : [];

  // Read at once: the kernel writes it into our buffer, nothing is waited for, and the thread pool takes 1 to 3 ms a call.
  const list: Mounter['list'] = async (below) => {
    const text = readFileSync(mountInfo, 'utf8');
    return below === undefined ? parseMountInfo(text) : parseMountsUnder(text, below);
  };

  /** Runs the program; returns its error output when it failed. */
  async function call(
    program: 'mount' | 'umount',
    args: readonly string[],
    timeoutMs = TIMEOUT_MS,
  ): Promise<string | undefined> {
    const result = await run(program, args, { timeoutMs });
    if (result.code === 0) return undefined;
    const status = result.timedOut
      ? `no end after ${timeoutMs / 1000}s`
      : `exit status ${result.code ?? result.signal}`;
    // The kubelet's message around the program's output.
    const [what, did] =
      program === 'mount' ? ['mount', 'Mounting command: mount\nMounting'] : ['unmount', 'Unmounting'];
    const output = (result.stderr || result.stdout).trim();
    return `${what} failed: ${status}\n${did} arguments: ${args.join(' ')}\nOutput: ${output}`;
  }

  return {
    list,
    async mount({ fsType, source, target, options: wanted = [] }) {
      const flags = fsType === 'tmpfs' ? [...wanted, ...tmpfsOptions] : wanted;
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
        if (failure !== undefined) throw new Error(failure);
      });
    },
    async formatIfEmpty(device, fsType) {
      await tracer.span('mount', `format ${fsType}`, { device }, async () => {
        const { formatIfEmpty } = await import('./format-device.ts');
        await formatIfEmpty(device, fsType, run);
      });
    },
    async unmount(target) {
      await tracer.span('mount', 'umount', { target }, async () => {
        const failure = await call('umount', ['-n', '-c', target]);
        if (failure === undefined) return;
        // umount fails alike for "busy" and "not mounted"; the mount table shows which.
        const entry = mountAt(await list(), target);
        if (entry === undefined) return;
        // A mount of a server that no longer answers stays busy unless the unmount is forced.
        const forced = entry.fsType.startsWith('nfs')
          ? await call('umount', ['-n', '-c', '-f', target], FORCE_TIMEOUT_MS)
          : failure;
        if (forced !== undefined) throw new Error(forced);
      });
    },
  };
}
