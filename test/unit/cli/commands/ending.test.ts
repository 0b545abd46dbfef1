// Every way in which `up` and `demo` are stopped, and the result of each.

import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { commandEnding, type EndingProcess } from '../../../../cli/commands/ending.ts';

type Writer = EventEmitter & { write: (text: string) => boolean };

function writer(lines: string[]): Writer {
  return Object.assign(new EventEmitter(), {
    write: (text: string) => {
      lines.push(text.trimEnd());
      return true;
    },
  });
}

const failure = (code: string): Error => Object.assign(new Error(`write ${code}`), { code });

function stand(endWhenFull = false, ignoreHangup = false) {
  const [lines, notes]: [string[], string[]] = [[], []];
  const [stdout, stderr] = [writer(lines), writer(notes)];
  const exits: number[] = [];
  const later: (() => void)[] = [];
  const rescued: string[] = [];
  const own = Object.assign(new EventEmitter(), { pid: 7, stdout, stderr, exit: (code: number) => exits.push(code) });
  const ending = commandEnding({
    endWhenFull,
    ignoreHangup,
    rescue: async () => rescued.push('rescued'),
    process: own as unknown as EndingProcess,
    after: (_, work) => void later.push(work),
  });
  return { ending, own, stdout, stderr, lines, notes, exits, later, rescued };
}

describe('a command with a lab to take down', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('stops at %s, and its code is its own', (name) => {
    const { ending, own, exits, notes } = stand();
    own.emit(name, name);
    expect(ending.signal.aborted).toBe(true);
    expect(ending.signal.reason).toMatchObject({ name: 'UserError', message: `stopped by ${name}` });
    expect([ending.exitCode(0), exits, notes]).toEqual([0, [], []]);
  });

  it('goes on taking everything down at another signal', () => {
    const { ending, own, exits, notes } = stand();
    own.emit('SIGINT', 'SIGINT');
    own.emit('SIGINT', 'SIGINT');
    own.emit('SIGHUP', 'SIGHUP');
    expect([ending.signal.reason.message, exits]).toEqual(['stopped by SIGINT', []]);
    expect(notes).toEqual(
      Array(2).fill('nodelet: taking everything down already (kill -9 7 leaves it to nodelet down)'),
    );
  });

  it.each(['EPIPE', 'EIO', 'ECONNRESET'])(
    'stops and fails when its reader is gone (%s), and writes no more',
    (code) => {
      const { ending, stdout, lines, notes } = stand();
      ending.say('one');
      stdout.emit('error', failure(code));
      stdout.emit('error', failure(code));
      ending.say('two');
      expect([ending.signal.aborted, ending.exitCode(0), lines]).toEqual([true, 1, ['one']]);
      expect(notes).toEqual([
        `nodelet: nothing can be written to the output any more (${code}): taking everything down`,
      ]);
    },
  );

  it.each([
    ['ENOSPC', true, true],
    ['ENOSPC', false, false],
    ['EDQUOT', false, false],
    ['EFBIG', true, true],
  ])('with its log on a full disk (%s), where that matters: %s, stops: %s', (code, matters, stops) => {
    const { ending, stdout, lines } = stand(matters);
    stdout.emit('error', failure(code));
    ending.say('later');
    expect([ending.signal.aborted, ending.exitCode(0)]).toEqual([stops, stops ? 1 : 0]);
    // There may be room again.
    expect(lines).toEqual(['later']);
  });

  it('that was started with nohup does not stop when its terminal goes', () => {
    const { ending, own } = stand(false, true);
    own.emit('SIGHUP', 'SIGHUP');
    expect(ending.signal.aborted).toBe(false);
    own.emit('SIGTERM', 'SIGTERM');
    expect(ending.signal.aborted).toBe(true);
  });

  it('takes a write that throws for one that fails', () => {
    const { ending, stdout } = stand(true);
    stdout.write = () => {
      throw failure('ENOSPC');
    };
    ending.say('one');
    expect(ending.signal.aborted).toBe(true);
  });

  it('stops at an exception that nothing has caught, and shows it', () => {
    const { ending, own, notes, rescued, exits } = stand();
    own.emit('uncaughtException', new TypeError('no such thing'));
    expect([ending.signal.aborted, ending.exitCode(0), rescued, exits]).toEqual([true, 1, [], []]);
    expect(notes[0]).toMatch(/TypeError: no such thing\n.*at /s);
    expect(notes[1]).toBe('nodelet: no such thing: taking everything down');
  });

  it('fails at one while it stops', () => {
    const { ending, own } = stand();
    own.emit('SIGTERM', 'SIGTERM');
    own.emit('uncaughtException', 'a string');
    expect([ending.signal.reason.message, ending.exitCode(0)]).toEqual(['stopped by SIGTERM', 1]);
  });

  it('that hangs after one has its lab taken down all the same', async () => {
    const { own, later, rescued, exits } = stand();
    own.emit('uncaughtException', new Error('x'));
    for (const work of later) work();
    await expect.poll(() => exits).toEqual([1]);
    expect(rescued).toEqual(['rescued']);
  });

  it('does not mind that its errors cannot be written', () => {
    const { ending, own, stderr } = stand();
    stderr.emit('error', failure('EPIPE'));
    stderr.write = () => {
      throw failure('EPIPE');
    };
    own.emit('uncaughtException', new Error('x'));
    expect(ending.signal.aborted).toBe(true);
  });
});
