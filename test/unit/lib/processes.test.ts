import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  descendants,
  isAlive,
  type ProcessEntry,
  parseStat,
  readProcess,
  signalProcess,
} from '../../../lib/processes.ts';

const entry = (pid: number, ppid: number): ProcessEntry => ({
  pid,
  ppid,
  startTime: 1,
  comm: 'x',
  state: 'S',
  argv: ['x'],
});

describe('/proc/PID/stat', () => {
  const rest = 'S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 100';
  it.each([
    ['1 (init) ', 'init'],
    ['1 (a b) ', 'a b'],
    ['1 (weird) (name)) ', 'weird) (name)'],
  ])('with the name in "%s" is read right', (head, comm) => {
    expect(parseStat(head + rest)).toEqual({ comm, state: 'S', ppid: 7, startTime: 987654 });
  });

  it('that is none is undefined', () => {
    expect(parseStat('nothing')).toBeUndefined();
    expect(parseStat('1 (x) S')).toBeUndefined();
  });
});

describe('a process', () => {
  it('is recognised by pid and start time together', async () => {
    const child = spawn('sleep', ['60']);
    try {
      const seen = await readProcess(child.pid ?? 0);
      expect(seen?.ppid).toBe(process.pid);
      const id = { pid: child.pid ?? 0, startTime: seen?.startTime ?? 0 };
      expect(await isAlive(id)).toBe(true);
      expect(await isAlive({ ...id, startTime: id.startTime - 1 })).toBe(false);
      expect(await signalProcess({ ...id, startTime: id.startTime - 1 }, 'SIGKILL')).toBe(false);
      expect(await signalProcess(id, 'SIGKILL')).toBe(true);
      await once(child, 'exit');
      expect(await isAlive(id)).toBe(false);
      expect(await signalProcess(id, 'SIGKILL')).toBe(false);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('descendants', () => {
  it('are the roots and everything below them, once', () => {
    const entries = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1), entry(6, 5)];
    expect([...descendants(entries, [2, 3])].toSorted()).toEqual([2, 3, 4]);
    expect([...descendants(entries, [])]).toEqual([]);
  });
});
