import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Attachments } from '../../../../agent/network/attachments.ts';
import { collectPeriodically } from '../../../../agent/network/collector.ts';
import type { SandboxId } from '../../../../agent/ports/runtime.ts';
import { type Clock, epochMs } from '../../../../lib/clock.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { answer, chainOf, type FakeHost, type FakePlugin, fails, fakeHost, pod } from '../../cni/fake-plugins.ts';

const ALIVE = '/proc/self/ns/net';
const LIST = chainOf('1.1.0', 'one');

let host: FakeHost;
let clock: VirtualClock;
let listed: string[] | Error;
let lists: number;
let broken: boolean;
let stop: AbortController;
let attachments: Attachments;
/** Added to the wall clock. */
let skewMs: number;
const errors: string[] = [];
const released: string[] = [];
/** What the plugin waits for before it answers an ADD. */
let slow: Promise<void> | undefined;

const plugin: FakePlugin = async ({ command }) => {
  if (command === 'ADD') await slow;
  if (command === 'ADD') return answer('10.0.0.2/24');
  return command === 'DEL' && broken ? fails(100, 'busy') : undefined;
};

beforeEach(async () => {
  host = await fakeHost({ one: plugin });
  clock = new VirtualClock();
  listed = [];
  lists = 0;
  broken = false;
  skewMs = 0;
  slow = undefined;
  errors.length = 0;
  released.length = 0;
  stop = new AbortController();
  attachments = makeAttachments();
});
afterEach(async () => {
  stop.abort();
  await rm(host.dir, { recursive: true, force: true });
});

function makeAttachments(): Attachments {
  const skewed: Clock = {
    now: () => epochMs(clock.now() + skewMs),
    monotonic: () => clock.monotonic(),
    after: (ms, fn) => clock.after(ms, fn),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
  return new Attachments({
    cni: host.runtime({ clock: skewed }),
    conf: { current: async () => ({ kind: 'loaded', network: { file: 'net.conflist', list: LIST, skipped: [] } }) },
    confDir: host.dir,
    links: { attached: () => undefined, released: (id) => released.push(id) },
    clock: skewed,
  });
}

function start(): Promise<void> {
  void collectPeriodically(
    {
      attachments,
      listSandboxes: async () => {
        lists++;
        if (listed instanceof Error) throw listed;
        return listed as SandboxId[];
      },
      clock,
      tracer: new Tracer(),
      onError: (what, error) => errors.push(`${what}: ${error}`),
    },
    stop.signal,
  );
  return roundIsOver();
}

/** Plugins and files take their time; the next round's timer is set after both. */
async function roundIsOver(): Promise<void> {
  while (clock.nextTimerMs !== 60_000) await new Promise(setImmediate);
}

async function nextRound(): Promise<void> {
  await clock.advance(60_000);
  await roundIsOver();
}

const attach = async (containerId: string, netns = ALIVE): Promise<void> => {
  await attachments.add(pod({ containerId, netns }));
  // The links are reported after the answer.
  await clock.advance(0);
};
const deleted = (): (string | undefined)[] =>
  host.calls.filter(({ command }) => command === 'DEL').map(({ env }) => env['CNI_CONTAINERID']);

it('a sandbox that the runtime forgets while the agent runs gives its network back, whatever else lives', async () => {
  await start();
  listed = ['a', 'b'];
  await attach('a');
  await attach('b');
  await nextRound();
  expect(deleted()).toEqual([]);
  listed = ['b'];
  for (let minute = 0; minute < 4; minute++) await nextRound();
  expect(deleted()).toEqual(['a']);
  expect(released).toEqual(['a']);
  expect(attachments.addresses('a' as SandboxId)).toBeUndefined();
  expect(attachments.addresses('b' as SandboxId)).toEqual(['10.0.0.2']);
});

it('and at the next round when its namespace is gone', async () => {
  await start();
  await attach('a', '/gone');
  await nextRound();
  expect(deleted()).toEqual(['a']);
});

it('a sandbox that is being made keeps its network, also when the clock is set forward an hour', async () => {
  await start();
  await attach('a');
  skewMs = 3_600_000;
  for (let minute = 0; minute < 4; minute++) await nextRound();
  expect(deleted()).toEqual([]);
  listed = ['a'];
  for (let minute = 0; minute < 4; minute++) await nextRound();
  expect(deleted()).toEqual([]);
});

it('nor is it taken from one that is added under an old agent while its plugin is at work', async () => {
  await start();
  await clock.advance(600_000);
  await roundIsOver();
  const gate = Promise.withResolvers<void>();
  slow = gate.promise;
  const adding = attach('a');
  while (!host.names().includes('ADD one')) await new Promise(setImmediate);
  await clock.advance(60_000);
  gate.resolve();
  await adding;
  await roundIsOver();
  await nextRound();
  expect(deleted()).not.toContain('a');
});

it('an attachment of an earlier agent counts from the start of this one', async () => {
  await attach('a');
  await clock.advance(3_600_000);
  attachments = makeAttachments();
  await start();
  expect(deleted()).toEqual([]);
  for (let minute = 0; minute < 4; minute++) await nextRound();
  expect(deleted()).toEqual([]);
  await nextRound();
  expect(deleted()).toEqual(['a']);
});

it('what is left of a failed ADD belongs to no sandbox, and is tried again until it goes; the error is reported once', async () => {
  broken = true;
  await start();
  await clock.advance(300_000);
  await roundIsOver();
  host.calls.length = 0;
  await attach('a', '/gone');
  await nextRound();
  await nextRound();
  expect(deleted()).toEqual(['a', 'a']);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain('CNI garbage collection could not free everything');
  broken = false;
  await nextRound();
  expect(deleted()).toEqual(['a', 'a', 'a']);
});

it('plugins collect for themselves once, as soon as the runtime answers', async () => {
  listed = new Error('connection refused');
  await start();
  expect(errors).toEqual(['CNI garbage collection: Error: connection refused']);
  expect(host.names()).toEqual([]);
  listed = ['a'];
  await nextRound();
  await nextRound();
  expect(host.names()).toEqual(['GC one']);
  expect(host.calls[0]?.netconf['cni.dev/valid-attachments']).toEqual([{ containerID: 'a', ifname: 'eth0' }]);
});

it('without attachments, sandboxes are not listed again', async () => {
  await start();
  await nextRound();
  await nextRound();
  expect(lists).toBe(1);
});
