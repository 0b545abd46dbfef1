import { describe, expect, it } from 'vitest';
import { createHookRunner } from '../../../../agent/pods/hooks.ts';
import { limitMessages } from '../../../../agent/pods/message-limits.ts';
import type { ContainerId } from '../../../../agent/ports/runtime.ts';
import type { ContainerStatus, PodStatus } from '../../../../client/types.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { FakeRecorder, makePod } from '../../../sim/fakes.ts';
import { statusOf } from './status-of.ts';

const HUGE = 'ö'.repeat(3_000_000);

const container = (name: string, state: ContainerStatus['state']): ContainerStatus => ({
  name,
  image: 'i',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...(state && { state, lastState: { terminated: { exitCode: 1, message: HUGE } } }),
});

function bytes(status: ContainerStatus | undefined): readonly number[] {
  const { state, lastState } = status ?? {};
  return [state?.waiting?.message ?? state?.terminated?.message, lastState?.terminated?.message].map((message) =>
    Buffer.byteLength(message ?? ''),
  );
}

describe('a status', () => {
  const spec = {
    containers: [{ name: 'a' }, { name: 'b' }],
    initContainers: [{ name: 'i' }],
    ephemeralContainers: [{ name: 'e' }],
  };
  const status: PodStatus = {
    phase: 'Failed',
    message: HUGE,
    conditions: [{ type: 'Ready', status: 'False', message: HUGE }],
    containerStatuses: [
      container('a', { waiting: { reason: 'PostStartHookError', message: HUGE } }),
      container('b', { terminated: { exitCode: 1, message: HUGE } }),
    ],
    initContainerStatuses: [container('i', { waiting: { reason: 'ErrImagePull', message: HUGE } })],
    ephemeralContainerStatuses: [container('e', { waiting: { reason: 'RunContainerError', message: HUGE } })],
  };

  it('has no text that grows with what a container prints', () => {
    const limited = limitMessages(spec, status);
    const share = (12 * 1024) / 4;
    for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const) {
      for (const each of limited[list] ?? []) expect(bytes(each)).toEqual([share, share]);
    }
    expect(Buffer.byteLength(limited.message ?? '')).toBe(32 * 1024);
    expect(Buffer.byteLength(limited.conditions?.[0]?.message ?? '')).toBe(32 * 1024);
    expect(limitMessages(spec, limited)).toEqual(limited);
  });
  it('keeps the reason, and everything that is short', () => {
    const short = statusOf(makePod('p'), [], {
      waiting: new Map([['web', { reason: 'ErrImagePull', message: 'no' }]]),
    });
    expect(limitMessages(makePod('p').spec, short)).toEqual(short);
    expect(limitMessages(spec, status).containerStatuses?.[0]?.state?.waiting?.reason).toBe('PostStartHookError');
  });
  it('of a pod whose postStart hook printed 6 MB is a small one', () => {
    const made = statusOf(makePod('p'), [], {
      waiting: new Map([['web', { reason: 'PostStartHookError', message: HUGE }]]),
    });
    expect(JSON.stringify(made).length).toBeLessThan(16 * 1024);
  });
});

it('a hook that prints 6 MB fails with the beginning of it', async () => {
  const output = Buffer.alloc(6_000_000, '\u0001');
  const hook = createHookRunner({
    runtime: { execSync: async () => ({ stdout: output, stderr: output, exitCode: 1, timedOut: false }) },
    recorder: new FakeRecorder(),
    clock: systemClock,
    tracer: new Tracer(),
  });
  const target = { pod: makePod('p'), container: { name: 'web' }, id: 'c' as ContainerId, podIP: undefined };
  const handler = { exec: { command: ['noisy'] } };
  const error: unknown = await hook('postStart', handler, target, 1000, new AbortController().signal).catch((e) => e);
  expect(error).toBeInstanceOf(Error);
  expect(String(error)).toMatch(/Exec lifecycle hook \(\[noisy\]\).*exited with 1/);
  expect(String(error).length).toBeLessThan(32 * 1024);
});
