import { describe, expect, test } from 'vitest';
import type { ContainerSnapshot, SandboxSnapshot } from '../../../../../agent/ports/runtime.ts';
import { isFresh, isStatusDue } from '../../../../../agent/runtime/cache/freshness.ts';
import { sandboxId } from '../../../../../agent/runtime/convert.ts';
import { epochMs, monotonicMs } from '../../../../../lib/clock.ts';
import { Applied, container, EXITED, NOW, OTHER, POD, RUNNING, sandbox } from './records.ts';

const LIMIT_MS = 30_000;

/** An event stream serves, and everything was listed and read since. */
function readPod(): Applied {
  const cache = new Applied().apply({ kind: 'stream', serving: true });
  cache.list({ s: [sandbox()], c: [container(RUNNING)] });
  return cache.sandboxStatus(sandbox({ ips: ['10.0.0.9'] })).status(container(RUNNING));
}

describe('a pod is known in full', () => {
  const fresh = (cache: Applied, at = LIMIT_MS, uid: string = POD.uid) =>
    isFresh(cache.state, uid, monotonicMs(at), LIMIT_MS);

  test.each<[string, (cache: Applied) => unknown, boolean]>([
    ['after a list of everything', () => undefined, true],
    [
      'beside results of our own calls',
      (cache) =>
        cache
          .apply({
            kind: 'callDone',
            call: 'CreateContainer',
            seqBefore: 0,
            pod: POD,
            container: container({ restartCount: 1 }),
          })
          .apply({ kind: 'callBegan', call: 'StartContainer', id: 'c1' })
          .apply({ kind: 'callDone', call: 'StartContainer', id: 'c1' })
          .apply({ kind: 'callDone', call: 'StopContainer', id: 'c1' })
          .apply({ kind: 'callDone', call: 'StopPodSandbox', id: 's1' })
          .apply({ kind: 'callDone', call: 'RemovePodSandbox', id: 's1' }),
      true,
    ],
    ['beside an event about another pod', (cache) => cache.apply({ kind: 'callFailed', call: 'x', pod: OTHER }), true],
    ['beside statuses that say the same', (cache) => cache.status(container(RUNNING)), true],
    ['not after an exit was announced', (cache) => cache.apply(exit()), false],
    [
      'not after an event about the pod',
      (cache) => cache.apply({ kind: 'event', event: 'removed', id: 'c1', at: epochMs(1) }),
      false,
    ],
    ['not when a status shows another state', (cache) => cache.status(container(EXITED)), false],
    ['not when a status shows that it is gone', (cache) => cache.status(undefined), false],
    ['not when a relist differs', (cache) => cache.list({ s: [sandbox()], c: [container(EXITED)] }), false],
    [
      'not when a relist shows more',
      (cache) => cache.list({ s: [sandbox(), sandbox({ id: sandboxId('s2') })], c: [container(RUNNING)] }),
      false,
    ],
    [
      'not after a call of unknown outcome',
      (cache) => cache.apply({ kind: 'callFailed', call: 'RunPodSandbox', pod: POD }),
      false,
    ],
    [
      'not without an event stream, however much is listed',
      (cache) => cache.apply({ kind: 'stream', serving: false }).list({ s: [sandbox()], c: [container(RUNNING)] }),
      false,
    ],
    ['not when the event stream breaks', (cache) => cache.apply({ kind: 'stream', serving: false }), false],
    [
      'not when the stream broke and serves again, before the next list',
      (cache) => cache.apply({ kind: 'stream', serving: false }).apply({ kind: 'stream', serving: true }),
      false,
    ],
    [
      'again after a list of the pod',
      (cache) => cache.apply(exit()).list({ pod: POD, s: [sandbox()], c: [container(EXITED)] }),
      true,
    ],
    [
      'not after a list that began before the event',
      (cache) =>
        cache.apply(exit()).list({ seqBefore: cache.state.seq - 1, pod: POD, s: [sandbox()], c: [container(EXITED)] }),
      false,
    ],
  ])('%s', (_when, change, expected) => {
    const cache = readPod();
    change(cache);
    expect(fresh(cache)).toBe(expected);
    if (!expected) expect(fresh(cache, LIMIT_MS, 'u3')).toBe(cache.state.streaming && cache.state.staleSeq === 1);
  });

  test('not for longer than the limit', () => {
    expect(fresh(readPod(), LIMIT_MS + 1)).toBe(false);
  });

  test('not from a read that began before the stream served', () => {
    const cache = new Applied().list({ s: [sandbox()] }).list({ pod: POD, s: [sandbox()] });
    expect(fresh(cache.apply({ kind: 'stream', serving: true }))).toBe(false);
    expect(fresh(cache.list({ s: [sandbox()] }))).toBe(true);
  });

  test('not before anything was read', () => {
    expect(fresh(new Applied().apply({ kind: 'stream', serving: true }))).toBe(false);
  });

  test('a pod of which a list of everything shows nothing is known to be nothing', () => {
    expect(fresh(readPod(), 0, 'u9')).toBe(true);
  });

  test('a pod without records is not kept', () => {
    const cache = readPod().list({}).list({});
    expect(cache.state.pods.size).toBe(0);
    // But a pod whose sandbox may be in the making is.
    cache.apply({ kind: 'callFailed', call: 'RunPodSandbox', pod: POD }).list({ seqBefore: cache.state.seq - 1 });
    expect(fresh(cache)).toBe(false);
    expect(fresh(cache.list({}))).toBe(true);
    expect(cache.state.pods.size).toBe(0);
  });
});

function exit() {
  return {
    kind: 'event',
    event: 'exited',
    id: 'c1',
    at: epochMs(4000),
    exit: { exitCode: 3, message: 'bye' },
  } as const;
}

describe('a status has to be read', () => {
  const listed = (state: ContainerSnapshot['state']) => new Applied().list({ c: [container({ state })] });
  const read = (snapshot: ContainerSnapshot) => new Applied().list({ c: [snapshot] }).status(snapshot);
  test.each<[string, Applied, boolean]>([
    ['of a container that was only listed', listed('running'), true],
    [
      'of one that was only made',
      new Applied().apply({
        kind: 'callDone',
        call: 'CreateContainer',
        seqBefore: 0,
        pod: POD,
        container: container(),
      }),
      true,
    ],
    ['not of a running one that was read', read(container(RUNNING)), false],
    ['not of a created one that was read', read(container()), false],
    ['not of a dead one that was read', read(container(EXITED)), false],
    ['of one that was read and runs by now', read(container()).list({ c: [container({ state: 'running' })] }), true],
    [
      'of one that we have started since',
      read(container()).apply({ kind: 'callDone', call: 'StartContainer', id: 'c1' }),
      true,
    ],
    [
      'of one that was read and is dead by now',
      read(container(RUNNING)).list({ c: [container({ state: 'exited' })] }),
      true,
    ],
    ['not while only an event has announced its end', read(container(RUNNING)).apply(exit()), false],
    [
      'when CRI shows the announced end too',
      read(container(RUNNING))
        .apply(exit())
        .list({ c: [container({ state: 'exited' })] }),
      true,
    ],
    ['of one in an unknown state, in every observation', read(container({ state: 'unknown' })), true],
    ['of a SIGKILL that may yet be an OOM kill', read(container({ ...EXITED, exitCode: 137, finishedAt: NOW })), true],
    ['not of an old SIGKILL', read(container({ ...EXITED, exitCode: 137 })), false],
    [
      'of what we have changed the limits of',
      read(container(RUNNING)).apply({ kind: 'callDone', call: 'UpdateContainerResources', id: 'c1' }),
      true,
    ],
  ])('%s', (_what, cache, expected) => {
    expect(isStatusDue(cache.container(), cache.state.seq, NOW)).toBe(expected);
  });

  test('but not twice in one observation, where only time changes the result', () => {
    const cache = listed('unknown');
    const since = cache.state.seq;
    cache.status(container({ state: 'unknown' }));
    expect(isStatusDue(cache.container(), since, NOW)).toBe(false);
  });

  test.each<[string, SandboxSnapshot, boolean, boolean]>([
    ['of a sandbox that was only listed', sandbox(), false, true],
    ['not of one with an address', sandbox({ ips: ['10.0.0.9'] }), true, false],
    ['not of one on the host’s network', sandbox({ hostNetwork: true }), true, false],
    ['of a ready one that has no address yet', sandbox(), true, true],
    ['not of a dead one without an address', sandbox({ state: 'notReady' }), true, false],
  ])('%s', (_what, snapshot, status, expected) => {
    const cache = new Applied().list({ s: [snapshot] });
    if (status) cache.sandboxStatus(snapshot);
    expect(isStatusDue(cache.sandbox(), cache.state.seq, NOW)).toBe(expected);
  });
});
