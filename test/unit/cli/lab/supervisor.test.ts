import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Child, type ExitStatus, startChild } from '../../../../cli/lab/child.ts';
import { Launcher } from '../../../../cli/lab/launcher.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { finalLine, lastLine, Supervisor } from '../../../../cli/lab/supervisor.ts';
import { isAlive, signalProcess } from '../../../../lib/processes.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-supervisor-'));
});
afterEach(() => rm(directory, { recursive: true }));

const CRASH = `/srv/a.ts:3
  throw new TypeError('x');
  ^

TypeError: x is not a function
    at run (/srv/a.ts:3:9) {
  code: 'ERR_X'
}

Node.js v24.1.0
`;

describe('the line that says why a program ended', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['nothing', '', ''],
    ['the last line', 'one\ntwo\n\n', 'two'],
    ['pino’s message', '{"level":"info","msg":"it says \\"no\\""}\n', 'it says "no"'],
    ['what only looks like JSON', 'bad "msg":"\\x"\n', '\\x'],
    ['the error of a crash', CRASH, 'TypeError: x is not a function'],
    [
      'the sentence of a refusal after an earlier error',
      `Error: an old one\nnodelet: the store is damaged\n`,
      'nodelet: the store is damaged',
    ],
    [
      'the sentence of a refusal after an earlier crash',
      `${CRASH}nodelet: port 1 is taken\n`,
      'nodelet: port 1 is taken',
    ],
    ['an error with its stack', 'nodelet: Error: no\n    at x (y:1:2)\n', 'nodelet: Error: no'],
  ];
  for (const [what, text, line] of cases) it(`is ${what}`, () => expect(finalLine(text)).toBe(line));

  it('is of this run alone, in a log that all runs append to', async () => {
    const log = join(directory, 'x.log');
    expect(await lastLine(log, 0)).toBe('');
    await writeFile(log, 'Error: of the run before\n');
    const start = 'Error: of the run before\n'.length;
    expect(await lastLine(log, start)).toBe('');
    await appendFile(log, 'nodelet: of this one\n');
    expect(await lastLine(log, start)).toBe('nodelet: of this one');
    await writeFile(log, 'cut\n');
    expect(await lastLine(log, start)).toBe('cut');
  });

  it('is found in a large log without reading all of it', async () => {
    const log = join(directory, 'x.log');
    await writeFile(log, `${'x'.repeat(300_000)}\n`.repeat(3));
    await appendFile(log, 'nodelet: the end\n');
    expect(await lastLine(log, 0)).toBe('nodelet: the end');
  });
});

describe('a supervisor', () => {
  it('names the error of the run that ended, each time', async () => {
    const clock = new VirtualClock();
    const logFile = join(directory, 'x.log');
    await writeFile(logFile, 'Error: of another day\n');
    const lines: string[] = [];
    const ends: ((exit: ExitStatus) => void)[] = [];
    const start = (): Promise<Child> => {
      const { promise, resolve } = Promise.withResolvers<ExitStatus>();
      ends.push(resolve);
      return Promise.resolve({ id: { pid: 1, startTime: 1 }, exited: promise });
    };
    const say = (line: string): void => void lines.push(line);
    const options = { name: 'apiserver', clock, say, start, logFile, pidFile: join(directory, 'pid') };
    const supervisor = new Supervisor(options);
    await supervisor.start();
    await appendFile(logFile, 'Error: of the first run\nnodelet: the first\n');
    ends[0]?.({ code: 1, signal: null });
    await expect.poll(() => lines).toHaveLength(1);
    expect(lines[0]).toContain('last words: nodelet: the first;');
    await clock.advance(250);
    await expect.poll(() => ends.length).toBe(2);
    ends[1]?.({ code: null, signal: 'SIGKILL' });
    await expect.poll(() => lines).toHaveLength(2);
    expect(lines[1]).toBe('apiserver ended (SIGKILL); starting it again in 0.5 s');
    await supervisor.release();
  });

  it('leaves a process dead that was halted, until it is resumed', async () => {
    const clock = new VirtualClock();
    const [logFile, pidFile] = [join(directory, 'x.log'), join(directory, 'pid')];
    const lines: string[] = [];
    const start = (): Promise<Child> => startChild({ command: 'sleep', args: ['600'], logFile, pidFile });
    const say = (line: string): void => void lines.push(line);
    const supervisor = new Supervisor({ name: 'agent', clock, say, start, logFile, pidFile });
    const { id } = await supervisor.start();
    await supervisor.halt();
    expect(await isAlive(id)).toBe(false);
    await clock.advance(60_000);
    expect(supervisor.child).toBeUndefined();
    expect(lines).toEqual([]);
    await supervisor.resume();
    const again = supervisor.child?.id;
    expect(again !== undefined && again.pid !== id.pid && (await isAlive(again))).toBe(true);
    await supervisor.resume();
    expect(supervisor.child?.id).toEqual(again);
    // Killed otherwise it is started again, as before.
    if (again !== undefined) await signalProcess(again, 'SIGKILL');
    await expect.poll(() => lines.length).toBe(1);
    await supervisor.halt();
    await clock.advance(60_000);
    expect(supervisor.child).toBeUndefined();
    await supervisor.stop(1000);
  });

  it('ends a process whose first start is under way when it is stopped', async () => {
    const clock = new VirtualClock();
    const [logFile, pidFile] = [join(directory, 'x.log'), join(directory, 'pid')];
    const begun = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const start = async (): Promise<Child> => {
      begun.resolve();
      await goOn.promise;
      return await startChild({ command: 'sleep', args: ['600'], logFile, pidFile });
    };
    const supervisor = new Supervisor({ name: 'dns', clock, say: () => undefined, start, logFile, pidFile });
    const started = supervisor.start();
    await begun.promise;
    const stopped = supervisor.stop(1000);
    goOn.resolve();
    const { id } = await started;
    await stopped;
    expect(await isAlive(id)).toBe(false);
  });
});

describe('the processes of a lab', () => {
  it('are not started any more once everything is to stop', async () => {
    const launcher = new Launcher({
      paths: labPaths(directory),
      env: {},
      clock: new VirtualClock(),
      say: () => undefined,
      onHopeless: () => undefined,
    });
    await launcher.release();
    const start = (): Promise<Child> => Promise.reject(new Error('started'));
    await expect(launcher.launch('dns', start)).rejects.toThrow('dns is not started: everything stops');
  });
});
