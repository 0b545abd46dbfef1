import { describe, expect, test } from 'vitest';
import type { ContainerSnapshot, SandboxSnapshot } from '../../../../../agent/ports/runtime.ts';
import type { CacheInput } from '../../../../../agent/runtime/cache/inputs.ts';
import { emptyCache } from '../../../../../agent/runtime/cache/records.ts';
import { reduce } from '../../../../../agent/runtime/cache/reduce.ts';
import { containerId, sandboxId } from '../../../../../agent/runtime/convert.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { Applied, container, EXITED, NOW, POD, RUNNING, sandbox } from './records.ts';

const CONFIG = { hostname: 'pod' };

const began = (
  call: 'StartContainer' | 'StopContainer' | 'RemoveContainer' | 'RemovePodSandbox',
  id: string,
): CacheInput => ({
  kind: 'callBegan',
  call,
  id,
});
const done = (
  call:
    | 'StartContainer'
    | 'StopContainer'
    | 'StopPodSandbox'
    | 'RemoveContainer'
    | 'RemovePodSandbox'
    | 'UpdateContainerResources',
  id: string,
): CacheInput => ({ kind: 'callDone', call, id });
const ran = (snapshot: SandboxSnapshot, networkKnown = true, seqBefore = 0): CacheInput => ({
  kind: 'callDone',
  call: 'RunPodSandbox',
  seqBefore,
  pod: POD,
  sandbox: snapshot,
  networkKnown,
  config: CONFIG,
});
const created = (snapshot: ContainerSnapshot, seqBefore = 0): CacheInput => ({
  kind: 'callDone',
  call: 'CreateContainer',
  seqBefore,
  pod: POD,
  container: snapshot,
});
const failed = (call: string, id?: string): CacheInput => ({
  kind: 'callFailed',
  call,
  pod: POD,
  ...(id === undefined ? {} : { id }),
});
const event = (kind: 'started' | 'oom' | 'removed', id = 'c1', at = 50): CacheInput => ({
  kind: 'event',
  event: kind,
  id,
  at: epochMs(at),
});
const exited = (id = 'c1', exit?: { exitCode: number; message: string }): CacheInput => ({
  kind: 'event',
  event: 'exited',
  id,
  at: epochMs(4000),
  ...(exit === undefined ? {} : { exit }),
});

/** A pod of one running container, read in full. */
function runningPod(): Applied {
  return new Applied()
    .list({ s: [sandbox({ ips: [] })], c: [container({ state: 'running' })] })
    .sandboxStatus(sandbox({ ips: ['10.0.0.9'] }))
    .status(container(RUNNING))
    .quiet();
}

describe('what two lists of everything differ by', () => {
  const s1 = sandbox();
  const c1 = (state: ContainerSnapshot['state']) => container({ state });
  type Items = { s?: SandboxSnapshot[]; c?: ContainerSnapshot[] };
  test.each<[string, Items, Items, string[]]>([
    ['appeared running', {}, { c: [c1('running')] }, ['started c1']],
    ['appeared dead: lived and died between', {}, { c: [c1('exited')] }, ['died c1']],
    ['appeared created: nothing to do', {}, { c: [c1('created')] }, []],
    ['created to running', { c: [c1('created')] }, { c: [c1('running')] }, ['started c1']],
    ['running to dead', { c: [c1('running')] }, { c: [c1('exited')] }, ['died c1']],
    ['running as before', { c: [c1('running')] }, { c: [c1('running')] }, []],
    ['dead as before', { c: [c1('exited')] }, { c: [c1('exited')] }, []],
    ['running to unknown', { c: [c1('running')] }, { c: [c1('unknown')] }, []],
    ['unknown to dead', { c: [c1('unknown')] }, { c: [c1('exited')] }, ['died c1']],
    ['dead and gone', { c: [c1('exited')] }, {}, ['removed c1']],
    ['running and gone', { c: [c1('running')] }, {}, ['died c1', 'removed c1']],
    ['a sandbox appeared', {}, { s: [s1] }, ['changed s1']],
    ['a sandbox died', { s: [s1] }, { s: [sandbox({ state: 'notReady' })] }, ['changed s1']],
    ['a dead sandbox went', { s: [sandbox({ state: 'notReady' })] }, {}, ['changed s1']],
  ])('%s', (_what, before, after, expected) => {
    const cache = new Applied().list(before);
    expect(cache.changes).toEqual([]);
    expect(cache.list(after).changes).toEqual(expected);
  });
});

describe('the very first list', () => {
  test('causes no lifecycle event', () => {
    expect(new Applied().list({ s: [sandbox()], c: [container(RUNNING)] }).changes).toEqual([]);
  });

  test('of one pod is none about what it brings, and some about what it finds changed', () => {
    const cache = new Applied().list({ pod: POD, s: [sandbox()], c: [container(RUNNING)] });
    expect(cache.changes).toEqual([]);
    expect(cache.list({ pod: POD, s: [sandbox()], c: [container(EXITED)] }).changes).toEqual(['died c1']);
  });
});

describe('our own calls cause no lifecycle event', () => {
  test('a pod’s whole life', () => {
    const cache = new Applied().list({});
    cache.apply(ran(sandbox({ ips: ['10.0.0.9'] })), created(container()), began('StartContainer', 'c1'));
    // The stream is faster than the answer.
    cache.apply(event('started'), done('StartContainer', 'c1'));
    cache.status(container(RUNNING));
    cache.apply(done('StopContainer', 'c1'), done('StopPodSandbox', 's1'), began('RemovePodSandbox', 's1'));
    cache.apply(event('removed', 'c1'), event('removed', 's1'), done('RemovePodSandbox', 's1'));
    expect(cache.changes).toEqual([]);
    expect(cache.state.records.size).toBe(0);
  });

  test('a start of ours that a status shows first', () => {
    const cache = new Applied().apply(created(container()), began('StartContainer', 'c1')).status(container(RUNNING));
    expect(cache.changes).toEqual([]);
    expect(cache.container().snapshot).toMatchObject({ state: 'running', startedAt: 3000 });
  });

  test('a removal that fails is none of ours any more', () => {
    const cache = runningPod().apply(began('RemoveContainer', 'c1'), failed('RemoveContainer', 'c1'), event('removed'));
    expect(cache.changes).toEqual(['removed c1']);
  });

  test('an end that we caused is announced all the same: the answer of the stop may come much later', () => {
    expect(runningPod().apply(exited('c1', { exitCode: 143, message: '' })).changes).toEqual(['died c1']);
  });
});

describe('the result of a call', () => {
  test('a sandbox is known from its making, with its config and, where nothing is left to read, its addresses', () => {
    const cache = new Applied().apply(ran(sandbox({ ips: ['10.0.0.9'] })));
    expect(cache.sandbox()).toMatchObject({ config: CONFIG, snapshot: { ips: ['10.0.0.9'], state: 'ready' } });
    expect([...cache.sandbox().sources.keys()].sort()).toEqual(['identity', 'network', 'state']);
    const unread = new Applied().apply(ran(sandbox(), false));
    expect([...unread.sandbox().sources.keys()].sort()).toEqual(['identity', 'state']);
  });

  test('a list that came before the answer of RunPodSandbox is completed by it', () => {
    const cache = new Applied()
      .list({ s: [sandbox({ createdAt: epochMs(999) })] })
      .apply(ran(sandbox({ ips: ['10.0.0.9'] })));
    expect(cache.sandbox().snapshot).toMatchObject({ createdAt: 999, ips: ['10.0.0.9'] });
  });

  describe('a sandbox that was read as not ready while RunPodSandbox was under way', () => {
    const unfinished = sandbox({ state: 'notReady' });
    test.each([
      ['a list of everything', (cache: Applied) => cache.list({ s: [unfinished] })],
      ['a list of the pod', (cache: Applied) => cache.list({ s: [unfinished], pod: POD })],
      ['a status', (cache: Applied) => cache.sandboxStatus(unfinished)],
    ] as const)('%s: the answer makes it ready, and the next observation reads it again', (_what, read) => {
      const cache = read(new Applied()).apply(ran(sandbox(), false));
      expect(cache.sandbox().snapshot.state).toBe('ready');
      expect(cache.state.pods.get(POD.uid)?.staleSeq).toBe(cache.state.seq);
    });

    test('a list that was requested before the answer changes nothing; one requested after it shows that it has ended', () => {
      const cache = new Applied().list({ s: [unfinished] });
      const before = cache.state.seq;
      cache.apply(ran(sandbox(), false)).list({ s: [unfinished], seqBefore: before });
      expect(cache.sandbox().snapshot.state).toBe('ready');
      cache.list({ s: [unfinished] });
      expect(cache.sandbox().snapshot.state).toBe('notReady');
    });

    test('one that was stopped before the answer stays not ready', () => {
      const cache = new Applied().list({ s: [sandbox()] }).apply(done('StopPodSandbox', 's1'), ran(sandbox()));
      expect(cache.sandbox().snapshot.state).toBe('notReady');
    });
  });

  test.each([
    ['StopContainer: there may have been no process', 'StopContainer'],
    ['UpdateContainerResources: limits are what the runtime made of them', 'UpdateContainerResources'],
  ] as const)('%s: the status is due, and the state as before', (_why, call) => {
    const cache = runningPod().apply(done(call, 'c1'));
    expect(cache.container()).toMatchObject({ dueSeq: cache.state.seq, snapshot: { state: 'running' } });
    // Requested before the call, it says nothing of it.
    cache.status(container(RUNNING), cache.state.seq - 1);
    expect(cache.container().dueSeq).not.toBe(0);
    cache.status(container(RUNNING));
    expect(cache.container().dueSeq).toBe(0);
  });

  test('StopPodSandbox: it is not ready, and how its containers ended has to be read', () => {
    const cache = runningPod().apply(done('StopPodSandbox', 's1'));
    expect(cache.sandbox().snapshot.state).toBe('notReady');
    expect(cache.container().dueSeq).toBe(cache.state.seq);
  });

  test('RemovePodSandbox removes its containers, and no others', () => {
    const cache = runningPod();
    cache.apply(ran(sandbox({ id: sandboxId('s2'), attempt: 1 })), done('RemovePodSandbox', 's1'));
    expect([...cache.state.records.keys()]).toEqual(['s2']);
  });

  test('a start that was answered after the exit does not bring the container back', () => {
    const cache = new Applied().apply(created(container()), began('StartContainer', 'c1')).status(container(EXITED));
    cache.apply(done('StartContainer', 'c1'));
    expect(cache.container().snapshot).toMatchObject(EXITED);
  });

  test('a sandbox that was announced gone before its making was answered is not known, and the pod is read', () => {
    const cache = new Applied().apply(event('removed', 's1'), ran(sandbox()));
    expect(cache.state.records.size).toBe(0);
    expect(cache.state.pods.get('u1')?.staleSeq).toBe(cache.state.seq);
  });
});

describe('the sandbox’s config goes with its record, however that goes', () => {
  test.each<[string, (cache: Applied) => unknown]>([
    ['by a call', (cache) => cache.apply(done('RemovePodSandbox', 's1'))],
    ['by an event', (cache) => cache.apply(event('removed', 's1'))],
    ['by a list of everything', (cache) => cache.list({})],
    ['by a list of the pod', (cache) => cache.list({ pod: POD })],
    ['by a status', (cache) => cache.sandboxStatus(undefined)],
  ])('%s', (_how, remove) => {
    const cache = new Applied().apply(ran(sandbox()));
    expect(cache.sandbox().config).toBe(CONFIG);
    remove(cache);
    expect(cache.state.records.size).toBe(0);
  });
});

describe('an exit', () => {
  test('that a stream announces shows at once, and is replaced by what CRI says of it', () => {
    const cache = runningPod().apply(exited('c1', { exitCode: 3, message: 'bye' }));
    expect(cache.container().snapshot).toEqual(container(EXITED));
    expect(cache.container().sources.get('exit')).toEqual({
      from: 'event',
      what: 'exited',
      at: NOW,
      seq: cache.state.seq,
    });
    expect(cache.container().sources.get('details')?.from).toBe('status');
    // CRI is behind: its status and its lists still show it running.
    cache.status(container(RUNNING)).list({ s: [sandbox()], c: [container({ state: 'running' })] });
    expect(cache.container().snapshot).toEqual(container(EXITED));
    cache.status(container({ ...EXITED, finishedAt: epochMs(4001) }));
    expect(cache.container().snapshot.finishedAt).toBe(4001);
    expect(cache.container().sources.get('exit')).toMatchObject({ from: 'status', what: 'ContainerStatus' });
    expect(cache.changes).toEqual(['died c1']);
  });

  test.each<[string, CacheInput[], boolean]>([
    ['that comes by itself', [], true],
    ['that a stop of ours causes', [began('StopContainer', 'c1')], false],
    ['after a stop of ours has ended', [began('StopContainer', 'c1'), done('StopContainer', 'c1')], true],
    ['after a stop of ours has failed', [began('StopContainer', 'c1'), failed('StopContainer', 'c1')], true],
  ])('%s: whether the whole pod is read again', (_case, before, read) => {
    const cache = runningPod().apply(...before);
    const { seq } = cache.state;
    cache.apply(exited('c1', { exitCode: 143, message: '' }));
    expect(cache.changes).toEqual(['died c1']);
    expect((cache.state.pods.get(POD.uid)?.staleSeq ?? 0) > seq).toBe(read);
  });

  test('of which CRI says more than the stream did wakes the pod again', () => {
    const cache = runningPod().apply(exited('c1', { exitCode: 137, message: '' }));
    cache.status(container({ ...EXITED, exitCode: 137, message: '', reason: 'OOMKilled' }));
    expect(cache.changes).toEqual(['died c1', 'changed c1']);
    expect(cache.container().snapshot.reason).toBe('OOMKilled');
  });

  test.each<[string, number, boolean, string]>([
    ['Completed', 0, false, 'Completed'],
    ['Error', 1, false, 'Error'],
    ['OOMKilled where the kernel said so before', 137, true, 'OOMKilled'],
  ])('has the runtime’s own reason: %s', (_rule, exitCode, oom, reason) => {
    const cache = runningPod();
    if (oom) cache.apply(event('oom'));
    cache.apply(exited('c1', { exitCode, message: '' }));
    expect(cache.container().snapshot).toMatchObject({ exitCode, reason });
  });

  test('is not announced before the start was read: the status that follows has both', () => {
    const cache = new Applied().apply(
      created(container()),
      began('StartContainer', 'c1'),
      done('StartContainer', 'c1'),
    );
    cache.apply(exited('c1', { exitCode: 3, message: 'bye' }));
    expect(cache.container().snapshot.state).toBe('running');
    cache.status(container(EXITED));
    expect(cache.last).toEqual([{ type: 'died', id: 'c1', kind: 'container', pod: POD, at: 4000 }]);
    expect(cache.container().snapshot).toEqual(container(EXITED));
  });

  test('whose container CRI calls unknown is an end, and the container may be shown running again', () => {
    const cache = runningPod().apply(exited('c1'));
    expect(cache.changes).toEqual([]);
    cache.status(container({ ...RUNNING, state: 'unknown' }));
    expect(cache.changes).toEqual(['died c1']);
    cache.status(container(RUNNING));
    expect(cache.container().snapshot.state).toBe('running');
    cache.quiet().list({ s: [sandbox()], c: [container({ state: 'exited' })] });
    expect(cache.changes).toEqual(['died c1']);
  });

  test('announced twice is one exit, and a start announced after it is an old story', () => {
    const cache = runningPod().apply(exited('c1', { exitCode: 3, message: 'bye' }));
    cache.apply(exited('c1', { exitCode: 3, message: 'bye' }), event('started'), exited('c1'));
    expect(cache.changes).toEqual(['died c1']);
    expect(cache.container().snapshot).toEqual(container(EXITED));
  });

  test('that came with its status is CRI’s own word: nothing is due', () => {
    const cache = runningPod();
    cache.apply({ kind: 'event', event: 'exited', id: 'c1', at: epochMs(4000), status: container(EXITED) });
    expect(cache.container()).toMatchObject({ snapshot: EXITED, statusState: 'exited', dueSeq: 0 });
    expect(cache.changes).toEqual(['died c1']);
  });

  test('of a sandbox is one when its status shows it, dated as announced', () => {
    const cache = runningPod().apply(exited('s1'));
    expect(cache.changes).toEqual([]);
    cache.sandboxStatus(sandbox({ state: 'notReady' }));
    expect(cache.last).toEqual([{ type: 'changed', id: 's1', kind: 'sandbox', pod: POD, at: 4000 }]);
    // A status after the end does not show the addresses any more.
    expect(cache.sandbox().snapshot).toMatchObject({ state: 'notReady', ips: ['10.0.0.9'] });
  });
});

describe('an OOM kill', () => {
  test('that comes after the exit causes another sync', () => {
    const cache = runningPod().apply(exited('c1', { exitCode: 137, message: '' }), event('oom'));
    expect(cache.changes).toEqual(['died c1', 'changed c1']);
    expect(cache.container().dueSeq).toBe(cache.state.seq);
  });
  test('that the exit shows already causes no lifecycle event', () => {
    const cache = runningPod()
      .status(container({ ...EXITED, reason: 'OOMKilled' }))
      .quiet();
    expect(cache.apply(event('oom')).changes).toEqual([]);
  });
});

describe('an answer that is older than what is known', () => {
  test('a list from before the end, or before a stop, changes nothing', () => {
    const cache = runningPod();
    const seqBefore = cache.state.seq;
    cache.apply(done('StopPodSandbox', 's1')).status(container(EXITED)).quiet();
    cache.list({ seqBefore, s: [sandbox()], c: [container({ state: 'running' })] });
    expect(cache.sandbox().snapshot.state).toBe('notReady');
    expect(cache.container().snapshot).toEqual(container(EXITED));
    expect(cache.changes).toEqual([]);
  });

  test('a list from before the making does not unmake it', () => {
    const cache = new Applied().list({});
    const seqBefore = cache.state.seq;
    cache.apply(ran(sandbox()), created(container()), done('StartContainer', 'c1')).list({ seqBefore });
    expect([...cache.state.records.keys()]).toEqual(['s1', 'c1']);
    cache.list({});
    expect([...cache.state.records.keys()]).toEqual([]);
  });

  test.each<[string, CacheInput]>([
    ['by a call of ours', done('RemoveContainer', 'c1')],
    ['by another agent', event('removed', 'c1')],
  ])('what went %s is not brought back by a list or a status from before', (_how, removal) => {
    const cache = runningPod();
    const seqBefore = cache.state.seq;
    cache.apply(removal).quiet();
    cache.list({ seqBefore, s: [sandbox()], c: [container(RUNNING)] }).status(container(RUNNING), seqBefore);
    expect([...cache.state.records.keys()]).toEqual(['s1']);
    expect(cache.changes).toEqual([]);
    // But a list from after shows that it is there.
    cache.list({ s: [sandbox()], c: [container(RUNNING)] });
    expect([...cache.state.records.keys()]).toEqual(['s1', 'c1']);
  });

  test('a status that overtook another one does not give way to it', () => {
    const cache = runningPod();
    const seqBefore = cache.state.seq;
    cache.apply(done('UpdateContainerResources', 'c1'));
    cache.status(container({ ...RUNNING, resources: { cpuShares: 200 } }));
    cache.status(container({ ...RUNNING, resources: { cpuShares: 100 } }), seqBefore);
    expect(cache.container().snapshot.resources).toEqual({ cpuShares: 200 });
  });

  test('NOT_FOUND from before the container was started means nothing', () => {
    const cache = new Applied().apply(created(container()));
    const seqBefore = cache.state.seq - 1;
    expect(cache.status(undefined, seqBefore).state.records.has('c1')).toBe(true);
    expect(cache.status(undefined).state.records.has('c1')).toBe(false);
  });
});

describe('what another agent does', () => {
  test('a container of its making is found by a status, as a list would find it', () => {
    expect(new Applied().status(container(EXITED)).last).toMatchObject([{ type: 'died', at: 4000 }]);
    expect(new Applied().status(container(RUNNING)).changes).toEqual(['started c1']);
    expect(new Applied().status(container()).changes).toEqual([]);
  });
  test('what it stops, starts and removes causes lifecycle events', () => {
    const cache = new Applied().list({ s: [sandbox()], c: [container()] });
    cache.apply(event('started')).status(container(RUNNING)).status(container(EXITED)).apply(event('removed'));
    expect(cache.changes).toEqual(['started c1', 'died c1', 'removed c1']);
  });
  test('an id of no pod is ignored', () => {
    const cache = new Applied().apply({
      kind: 'sandboxStatus',
      id: 'x',
      seqBefore: 0,
      sandbox: { pod: undefined, snapshot: sandbox() },
    });
    expect(cache.state.records.size).toBe(0);
  });
});

describe('where a field comes from', () => {
  const groups = (cache: Applied, id = 'c1') =>
    Object.fromEntries(
      [...(cache.state.records.get(id)?.sources ?? [])].map(([group, { from, what }]) => [group, `${from} ${what}`]),
    );
  test('a container from its making to its end', () => {
    const cache = new Applied().apply(created(container()));
    expect(groups(cache)).toEqual({ identity: 'call CreateContainer', state: 'call CreateContainer' });
    cache.apply(done('StartContainer', 'c1'));
    expect(groups(cache).state).toBe('call StartContainer');
    cache.list({ pod: POD, c: [container({ state: 'running', createdAt: epochMs(1999) })] });
    expect(groups(cache).identity).toBe('list ListContainers');
    expect(cache.container().snapshot.createdAt).toBe(1999);
    cache.status(container(RUNNING));
    const status = 'status ContainerStatus';
    expect(groups(cache)).toEqual({ identity: status, state: status, details: status, resources: status });
    cache.apply(exited('c1', { exitCode: 0, message: '' }));
    expect(groups(cache)).toMatchObject({ identity: status, state: 'event exited', exit: 'event exited' });
  });
  test('a sandbox', () => {
    const cache = new Applied().apply(ran(sandbox(), false)).sandboxStatus(sandbox({ ips: ['10.0.0.9'] }));
    expect(groups(cache, 's1')).toEqual({
      identity: 'status PodSandboxStatus',
      state: 'call RunPodSandbox',
      network: 'status PodSandboxStatus',
    });
    cache.apply(done('StopPodSandbox', 's1'));
    expect(groups(cache, 's1').state).toBe('call StopPodSandbox');
  });
});

describe('invariants', () => {
  const rule = (inputs: readonly CacheInput[]) => () => {
    for (const input of inputs) reduce(cache.state, input, NOW);
  };
  const cache = new Applied();
  test('a new instance counts more restarts than those before it', () => {
    const older = created(container({ id: containerId('c1'), restartCount: 2 }));
    const newer = created(container({ id: containerId('c2'), restartCount: 2 }));
    expect(rule([older, newer])).toThrow('a new instance of a container counts more restarts');
  });
  test('an exit that is known has a time', () => {
    const input = {
      kind: 'event',
      event: 'exited',
      id: 'c9',
      at: epochMs(4000),
      status: container({ ...EXITED, finishedAt: epochMs(0) }),
    } as const;
    rule([created(container({ id: containerId('c9'), name: 'other' }))])();
    expect(rule([input])).toThrow('a container whose exit is known has exited, and at a time');
  });
});

test('the outcome depends on the inputs alone', () => {
  const play = () => {
    const cache = runningPod();
    cache.apply(exited('c1', { exitCode: 3, message: 'bye' })).list({ s: [sandbox()] });
    return { changes: cache.changes, records: [...cache.state.records.values()] };
  };
  expect(play()).toEqual(play());
  expect(reduce(emptyCache(), event('oom'), NOW).changes).toEqual([]);
});
