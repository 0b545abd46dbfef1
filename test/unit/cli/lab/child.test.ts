// Programs of a lab end when the process that has started them is gone, however it went.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readPidFile } from '../../../../cli/lab/child.ts';
import { exists } from '../../../../cli/lab/root.ts';
import { isAlive, type ProcessId } from '../../../../lib/processes.ts';

const url = (file: string): string => JSON.stringify(new URL(`../../../../cli/${file}`, import.meta.url).href);
const NODE = fileURLToPath(new URL('../../../../node_modules/.bin/node', import.meta.url));

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-child-'));
});
afterEach(() => rm(directory, { recursive: true }));

it('a program with a lifeline stops in order when its supervisor is killed; one without goes on', async () => {
  const program = join(directory, 'program.ts');
  await writeFile(
    program,
    `import { stopSignal } from ${url('commands/signals.ts')};
     import { writeFileSync } from 'node:fs';
     // As the agent does when its code was not compiled yet.
     if (process.env.STARTED_OVER === undefined) {
       process.execve?.(process.execPath, [process.execPath, ...process.argv.slice(1)], { ...process.env, STARTED_OVER: '1' });
     }
     const timer = setInterval(() => undefined, 1000);
     stopSignal().addEventListener('abort', () => {
       writeFileSync(process.argv[2] + '.stopped', String(process.env.NODELET_LIFELINE));
       clearInterval(timer);
     });
     writeFileSync(process.argv[2] + '.ready', '');`,
  );
  const supervisor = join(directory, 'supervisor.ts');
  await writeFile(
    supervisor,
    `import { startChild } from ${url('lab/child.ts')};
     for (const [name, lifeline] of [['with', true], ['without', false]] as const) {
       const at = ${JSON.stringify(directory)} + '/' + name;
       await startChild({ command: process.execPath, args: [${JSON.stringify(program)}, at], logFile: at + '.log', pidFile: at + '.json', lifeline });
     }
     setInterval(() => undefined, 1000);`,
  );
  const child = spawn(NODE, [supervisor], { stdio: 'inherit' });
  const started = async (name: string): Promise<ProcessId> => {
    const found = async () => {
      return (await exists(join(directory, `${name}.ready`)))
        ? readPidFile(join(directory, `${name}.json`))
        : undefined;
    };
    await expect.poll(found).toBeDefined();
    return (await found()) ?? { pid: 0, startTime: 0 };
  };
  const [guarded, unguarded] = [await started('with'), await started('without')];
  try {
    expect([await isAlive(guarded), await isAlive(unguarded)]).toEqual([true, true]);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await expect.poll(() => isAlive(guarded)).toBe(false);
    expect(await isAlive(unguarded)).toBe(true);

    // Its own children would not know what to do with the variable.
    expect(await readFile(join(directory, 'with.stopped'), 'utf8')).toBe('undefined');
  } finally {
    if (await isAlive(unguarded)) process.kill(unguarded.pid, 'SIGKILL');
  }
});
