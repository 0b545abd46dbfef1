// How a demo ends whose output cannot be written any more: with nothing of its lab left, as any other end.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { labPaths } from '../../../cli/lab/paths.ts';
import { labProcesses } from '../../../cli/lab/processes.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { fullLog } from '../support/full-log.ts';
import { labNames, SETTLE_MS } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

describe('a demo', () => {
  let directory: string;
  let root: string;
  let before: MachineSnapshot;
  let child: ChildProcess | undefined;
  let closed: Promise<unknown>;
  let errors = '';

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-ends-'));
    root = join(directory, 'demo');
    before = await snapshotMachine({ directories: [root] });
    errors = '';
  });

  afterEach(async () => {
    if (child?.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await exec(NODELET, ['down', '--root', root]);
    await rm(directory, { recursive: true, force: true });
  });

  const demo = (stdout: 'pipe' | number): ChildProcess => {
    child = spawn(NODELET, ['demo', '--root', root, '--compare', 'lab'], { stdio: ['ignore', stdout, 'pipe'] });
    child.stderr?.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    // Not `exit`: what it wrote last may not have been read by then.
    closed = once(child, 'close');
    return child;
  };
  const nothingIsLeft = async (): Promise<void> => {
    expect(await labProcesses(root)).toEqual([]);
    const words = labNames(labPaths(root));
    expect(await compareWithMachine(before, { directories: [root], mentioning: words, settleMs: SETTLE_MS })).toEqual(
      [],
    );
  };

  it('whose reader goes while its lab starts takes everything down, as in "nodelet demo | head"', async () => {
    const { stdout, exitCode } = demo('pipe');
    expect(exitCode).toBeNull();
    let output = '';
    let programs: readonly string[] = [];
    for await (const chunk of stdout ?? []) {
      output += String(chunk);
      if (!output.includes('containerd serves')) continue;
      programs = (await labProcesses(root)).map((entry) => entry.comm);
      // Leaving the loop closes the pipe.
      break;
    }
    expect(programs).toContain('containerd');
    await closed;
    expect([child?.exitCode, errors]).toEqual([1, expect.stringContaining('(EPIPE): taking everything down')]);
    await nothingIsLeft();
  });

  it('that writes to a disk which fills up meanwhile takes everything down', async () => {
    const log = await fullLog(join(directory, 'log'), 300);
    try {
      const file = openSync(log, 'a');
      demo(file);
      closeSync(file);
      await closed;
      expect(await readFile(log, 'utf8')).toContain('== starting a lab');
    } finally {
      await execOk('umount', [join(directory, 'log')]);
    }
    expect([child?.exitCode, errors]).toEqual([1, expect.stringContaining('(ENOSPC): taking everything down')]);
    await nothingIsLeft();
  });
});
