import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { notifyServiceManager, serviceManager } from '../../../../agent/node/watchdog.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import { listenForNotifications } from '../../../support/notify-socket.ts';
import { settle, VirtualClock } from '../../../support/virtual-clock.ts';

const NOTIFY = { NOTIFY_SOCKET: '/run/systemd/notify' };

describe('the messages that systemd expects', () => {
  test.for([
    ['nothing listens', {}, undefined],
    ['nothing listens, whatever else is set', { WATCHDOG_USEC: '30000000' }, undefined],
    ['an empty name is none', { NOTIFY_SOCKET: '' }, undefined],
    ['readiness alone', NOTIFY, { watchdogMs: undefined }],
    ['a watchdog of 30 s is fed every 15', { ...NOTIFY, WATCHDOG_USEC: '30000000' }, { watchdogMs: 15_000 }],
    ['this process', { ...NOTIFY, WATCHDOG_USEC: '1000', WATCHDOG_PID: '42' }, { watchdogMs: 0.5 }],
    ['another process', { ...NOTIFY, WATCHDOG_USEC: '1000', WATCHDOG_PID: '43' }, { watchdogMs: undefined }],
  ] as const)('%s', ([_what, env, wanted]) => {
    expect(serviceManager(env, 42)).toEqual(wanted);
  });
  test.for(['soon', '-5', '0', '1.5'])('a time of %j ends the agent, by name', (text) => {
    expect(() => serviceManager({ ...NOTIFY, WATCHDOG_USEC: text }, 42)).toThrow(
      `WATCHDOG_USEC is "${text}" and must be a positive number`,
    );
  });
});

function start(watchdogMs: number | undefined, failures = 0) {
  const clock = new VirtualClock();
  const sent: string[] = [];
  const logs: string[] = [];
  const spans: Span[] = [];
  const tracer = new Tracer();
  tracer.subscribe((span) => spans.push(span));
  const state: { problem?: string | undefined; failures: number } = { failures };
  const stop = new AbortController();
  const ended = notifyServiceManager(
    { watchdogMs },
    {
      clock,
      tracer,
      log: (_level, message) => void logs.push(message),
      problem: () => state.problem,
      send: async (message) => {
        if (state.failures-- > 0) throw new Error('no socket');
        sent.push(message);
      },
    },
    stop.signal,
  );
  return { clock, sent, logs, spans, state, stop, ended };
}

it('gets READY=1 once, and WATCHDOG=1 at half its interval', async () => {
  const { clock, sent, spans, stop, ended } = start(15_000);
  await settle();
  expect(sent).toEqual(['READY=1', 'WATCHDOG=1']);
  await clock.advance(45_000);
  expect(sent).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1']);
  expect(spans.every(({ kind }) => kind === 'systemd')).toBe(true);
  stop.abort();
  await ended;
});

it('gets nothing while the sync loop is stuck, and again when it moves', async () => {
  const { clock, sent, state, logs } = start(10_000);
  await settle();
  state.problem = 'sync Loop took longer than expected: syncPod demo/web for 5m1s';
  await clock.advance(60_000);
  expect(sent).toEqual(['READY=1', 'WATCHDOG=1']);
  expect(logs.at(-1)).toContain('syncPod demo/web for 5m1s');
  state.problem = undefined;
  await clock.advance(10_000);
  expect(sent).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1']);
});

it('gets a failed message again a second later, and without a watchdog only READY=1', async () => {
  const { clock, sent, ended, logs } = start(undefined, 1);
  await settle();
  expect(sent).toEqual([]);
  await clock.advance(1_000);
  await ended;
  expect([sent, logs]).toEqual([['READY=1'], []]);
  const failing = start(undefined, 2);
  await failing.clock.advance(1_000);
  await failing.ended;
  expect(failing.logs).toEqual(['systemd was not notified of READY=1: no socket']);
});

test('a real socket shows this process as the sender, not the program that sends for it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodelet-notify-'));
  const socket = await listenForNotifications(join(directory, 'notify'));
  const before = process.env['NOTIFY_SOCKET'];
  process.env['NOTIFY_SOCKET'] = join(directory, 'notify');
  const stop = new AbortController();
  try {
    const parts = { clock: systemClock, tracer: new Tracer(), log: () => undefined, problem: () => undefined };
    const ended = notifyServiceManager({ watchdogMs: 10 }, parts, stop.signal);
    await expect.poll(() => socket.notifications.length).toBeGreaterThan(2);
    stop.abort();
    await ended;
    const [first, ...others] = socket.notifications;
    expect(first).toEqual({ pid: process.pid, message: 'READY=1' });
    for (const each of others) expect(each).toEqual({ pid: process.pid, message: 'WATCHDOG=1' });
  } finally {
    if (before === undefined) delete process.env['NOTIFY_SOCKET'];
    else process.env['NOTIFY_SOCKET'] = before;
    await socket.close();
    await rm(directory, { recursive: true });
  }
});
