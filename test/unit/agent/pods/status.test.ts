// computePodStatus and what it is made of: conditions and container statuses. The phase is in phase.test.ts.

import { describe, expect, it } from 'vitest';
import { activeDeadline } from '../../../../agent/pods/deadline.ts';
import { rejectedStatus } from '../../../../agent/pods/status.ts';
import type { ContainerId, ContainerSnapshot, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { Pod, PodStatus } from '../../../../client/types.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { FakeProbes, makePod } from '../../../sim/fakes.ts';
import { AT, condition, ended, instance, NOW, ready, statusOf } from './status-of.ts';

describe('the status of a running pod', () => {
  const status = statusOf(makePod('p'), [instance('web')]);
  it('names its addresses, primary first', () => {
    expect(status).toMatchObject({ podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] });
    expect(status).toMatchObject({ hostIP: '192.0.2.1', hostIPs: [{ ip: '192.0.2.1' }] });
  });
  it('gives times to the second', () => {
    expect(status.startTime).toBe(AT);
    expect(status.containerStatuses?.[0]?.state).toEqual({ running: { startedAt: AT } });
    expect(condition(status, 'Ready')?.lastTransitionTime).toBe(AT);
  });
  it.each([
    ['the family of the node first', ['fd00::1', '10.0.0.1'], ['192.0.2.1'], ['10.0.0.1', 'fd00::1']],
    ['on a node of the other family', ['10.0.0.1', 'fd00::1'], ['fd00::9'], ['fd00::1', '10.0.0.1']],
    ['one of each', ['10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00::2'], ['192.0.2.1'], ['10.0.0.1', 'fd00::1']],
    ['the other family where there is no other', ['fd00::1'], ['192.0.2.1'], ['fd00::1']],
  ])('has of its addresses %s', (_name, ips, hostIPs, expected) => {
    const of = statusOf(makePod('p'), [instance('web')], { hostIPs }, [{ ...ready, ips }]);
    expect(of.podIPs?.map(({ ip }) => ip)).toEqual(expected);
    expect(of.podIP).toBe(expected[0]);
  });
  it('lists init containers in their order and all others by name', () => {
    const named = (...names: string[]) => names.map((name) => ({ name, image: 'i' }));
    const pod = makePod('p', {
      initContainers: named('z', 'y'),
      containers: named('b', 'c', 'a'),
      ephemeralContainers: named('f', 'e'),
    });
    const all = statusOf(pod, []);
    expect(all.initContainerStatuses?.map(({ name }) => name)).toEqual(['z', 'y']);
    expect(all.containerStatuses?.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(all.ephemeralContainerStatuses?.map(({ name }) => name)).toEqual(['e', 'f']);
    expect(condition(all, 'ContainersReady')?.message).toBe('containers with unready status: [b c a]');
  });
  it('has the address of the node on the host network', () => {
    const sandboxes = [{ ...ready, ips: [], hostNetwork: true }];
    const onHost = statusOf(makePod('p', { hostNetwork: true }), [instance('web')], {}, sandboxes);
    expect(onHost).toMatchObject({ podIP: '192.0.2.1', podIPs: [{ ip: '192.0.2.1' }] });
    expect(condition(onHost, 'PodReadyToStartContainers')?.status).toBe('True');
  });
  it('keeps its address after the sandbox is gone', () => {
    const after = statusOf(makePod('p'), [ended('web', 0)], { previous: status }, [
      { ...ready, state: 'notReady', ips: [] },
    ]);
    expect(after.podIP).toBe('10.0.0.1');
    expect(condition(after, 'PodReadyToStartContainers')?.status).toBe('False');
  });
  it('keeps transition times of conditions that did not change', () => {
    const later = statusOf(makePod('p'), [instance('web')], { previous: status, now: plusMs(NOW, 60_000) });
    expect(later.conditions).toEqual(status.conditions);
  });
  it.each([
    // Last reported, on the server, now: the transition time.
    ['what the server does not show yet', 'True', 'False', 'True', 'node'],
    ['what the server does not show yet, the other way', 'False', 'True', 'False', 'node'],
    ['nothing that the server still shows of before', 'False', 'True', 'True', 'now'],
    ['what the server shows to a new agent', undefined, 'True', 'True', 'server'],
  ] as const)('keeps the transition time of %s', (_name, reported, shown, wanted, since) => {
    const at = { node: '2026-01-01T08:00:00Z', server: '2026-01-01T07:00:00Z', now: AT } as const;
    const ready = (status: string, lastTransitionTime: string) => [{ type: 'Ready', status, lastTransitionTime }];
    const pod: Pod = { ...makePod('p'), status: { conditions: ready(shown, at.server) } };
    const previous = reported === undefined ? undefined : { conditions: ready(reported, at.node) };
    const status = statusOf(pod, wanted === 'True' ? [instance('web')] : [ended('web', 1)], { previous });
    expect(condition(status, 'Ready')).toMatchObject({ status: wanted, lastTransitionTime: at[since] });
  });
  it('says of each condition which generation of the pod it describes', () => {
    const generations = (pod: Pod) =>
      statusOf(pod, [instance('web')]).conditions?.map(({ type, observedGeneration }) => [type, observedGeneration]);
    const types = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];
    expect(generations(makePod('p', {}, { generation: 7 }))).toEqual(types.map((type) => [type, 7]));
    const { generation, ...metadata } = makePod('p').metadata;
    expect(generations({ ...makePod('p'), metadata })).toEqual(types.map((type) => [type, undefined]));
    const evicted = { reason: 'Evicted', message: 'm', disruption: { reason: 'TerminationByKubelet', message: 'm' } };
    const gone = statusOf(makePod('p', {}, { generation: 7 }), [ended('web', 1)], { failure: evicted, over: true });
    expect(condition(gone, 'DisruptionTarget')).toMatchObject({ status: 'True', observedGeneration: 7 });
  });
  it('says of a resize under way which generation was granted, and of one that waits the present one', () => {
    const resize = {
      pending: { reason: 'Deferred', message: 'm' },
      inProgress: { generation: 3 },
      actual: {},
    } as const;
    const status = statusOf(makePod('p', {}, { generation: 4 }), [instance('web')], { resize });
    expect(condition(status, 'PodResizeInProgress')).toMatchObject({ observedGeneration: 3 });
    expect(condition(status, 'PodResizePending')).toMatchObject({ observedGeneration: 4 });
  });
  it('carries along the conditions of others', () => {
    const gate = { type: 'example.com/gate', status: 'False', lastTransitionTime: AT };
    const pod = {
      ...makePod('p', { readinessGates: [{ conditionType: 'example.com/gate' }] }),
      status: { conditions: [gate] },
    };
    const gated = statusOf(pod, [instance('web')]);
    expect(gated.conditions).toContainEqual(gate);
    expect(condition(gated, 'ContainersReady')?.status).toBe('True');
    expect(condition(gated, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ReadinessGatesNotReady',
      message: 'the status of pod readiness gate "example.com/gate" is not "True", but False',
    });
  });
  it('names a readiness gate that is not set', () => {
    const gated = statusOf(makePod('p', { readinessGates: [{ conditionType: 'a/b' }] }), [instance('web')]);
    expect(condition(gated, 'Ready')?.message).toBe(
      'corresponding condition of pod readiness gate "a/b" does not exist.',
    );
  });
});

describe('a container status', () => {
  const web = (status: PodStatus) => status.containerStatuses?.[0];
  it('is ContainerCreating before there is a container', () => {
    expect(web(statusOf(makePod('p'), []))?.state).toEqual({ waiting: { reason: 'ContainerCreating' } });
  });
  it('is PodInitializing where there are init containers', () => {
    const pod = makePod('p', { initContainers: [{ name: 'init', image: 'i' }] });
    const status = statusOf(pod, [instance('init', { type: 'init' })]);
    expect(web(status)?.state).toEqual({ waiting: { reason: 'PodInitializing' } });
    expect(condition(status, 'Initialized')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotInitialized',
      message: 'containers with incomplete status: [init]',
    });
  });
  it('reports how it ended', () => {
    const status = statusOf(makePod('p'), [ended('web', 137, { reason: 'OOMKilled', message: 'bye' })]);
    expect(web(status)?.state?.terminated).toEqual({
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'bye',
      startedAt: AT,
      finishedAt: '2026-01-01T10:00:01Z',
      containerID: 'cri-o://web-0',
    });
  });
  it('keeps what was reported of its last words once they cannot be read any more', () => {
    const first = statusOf(makePod('p'), [ended('web', 3, { message: 'bye' })]);
    const second = statusOf(makePod('p'), [ended('web', 3)], { previous: first });
    expect(web(second)?.state?.terminated?.message).toBe('bye');
    const next = instance('web', { id: 'web-1' as ContainerId, restartCount: 1 });
    const third = statusOf(makePod('p'), [next, ended('web', 3)], { previous: second });
    expect(web(third)?.lastState?.terminated?.message).toBe('bye');
    const other = ended('web', 3, { id: 'web-2' as ContainerId, restartCount: 2 });
    expect(web(statusOf(makePod('p'), [other], { previous: second }))?.state?.terminated?.message).toBeUndefined();
  });
  it('keeps how the instance before it ended', () => {
    const now = instance('web', { id: 'web-1' as ContainerId, restartCount: 1 });
    const status = statusOf(makePod('p'), [now, ended('web', 3)]);
    expect(web(status)).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 3 } } });
  });
  it('keeps how the instance before it ended after the runtime has forgotten', () => {
    const first = statusOf(makePod('p'), [ended('web', 3)]);
    const now = instance('web', { id: 'web-1' as ContainerId, restartCount: 1 });
    const second = statusOf(makePod('p'), [now], { previous: first });
    expect(web(second)?.lastState?.terminated?.exitCode).toBe(3);
    const third = statusOf(makePod('p'), [now], { previous: second });
    expect(web(third)?.lastState?.terminated?.exitCode).toBe(3);
  });
  it('that was reported ended is not taken back while the runtime still shows the same instance running', () => {
    const pod = makePod('p', { restartPolicy: 'Never' });
    const over = statusOf(pod, [ended('web', 0)]);
    const behind = statusOf(pod, [instance('web')], { previous: over });
    expect(behind.containerStatuses?.[0]?.state).toEqual(over.containerStatuses?.[0]?.state);
    const another = statusOf(pod, [instance('web', { id: 'web-1' as ContainerId })], { previous: over });
    expect(another.containerStatuses?.[0]?.state).toHaveProperty('running');
  });
  it('that ran and is nowhere to be found ended in an unknown way', () => {
    const before = statusOf(makePod('p'), [instance('web')]);
    const after = statusOf(makePod('p'), [], { previous: before });
    expect(web(after)).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { reason: 'ContainerStatusUnknown', exitCode: 137 } },
    });
    expect(after.phase).toBe('Running');
  });
  it('says what holds its start up, and shows how it ended as the last state', () => {
    const waiting = new Map([['web', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]]);
    const status = statusOf(makePod('p'), [ended('web', 1)], { waiting });
    expect(web(status)?.state).toEqual({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } });
    expect(web(status)?.lastState?.terminated?.exitCode).toBe(1);
    expect(status.phase).toBe('Running');
  });
  it('does not wait for anything once the container will not run again', () => {
    const waiting = new Map([['web', { reason: 'CrashLoopBackOff', message: '' }]]);
    const status = statusOf(makePod('p', { restartPolicy: 'Never' }), [ended('web', 1)], { waiting });
    expect(web(status)?.state?.terminated?.exitCode).toBe(1);
  });
  it('is ready by its readiness probe and started by its startup probe', () => {
    const probe = { tcpSocket: { port: 80 } };
    const pod = makePod('p', { containers: [{ name: 'web', image: 'n', readinessProbe: probe, startupProbe: probe }] });
    const probes = new FakeProbes();
    expect(web(statusOf(pod, [instance('web')], { probes }))).toMatchObject({ started: false, ready: false });
    probes.set('readiness', 'web-0', 'success');
    expect(web(statusOf(pod, [instance('web')], { probes }))).toMatchObject({ started: false, ready: false });
    probes.set('startup', 'web-0', 'success');
    expect(web(statusOf(pod, [instance('web')], { probes }))).toMatchObject({ started: true, ready: true });
  });
  describe('reports its mounts', () => {
    const mount = (mode: string | undefined, readOnly = true) => ({
      name: 'v',
      mountPath: '/v',
      ...(readOnly ? { readOnly } : {}),
      ...(mode === undefined ? {} : { recursiveReadOnly: mode }),
    });
    const writable = { name: 'v', mountPath: '/v' };
    const notified = (mode: string) => ({ ...writable, readOnly: true, recursiveReadOnly: mode });
    const deep: Partial<ContainerSnapshot> = { recursiveReadOnly: ['/v'] };
    it.each<[string, object, readonly ContainerSnapshot[], object]>([
      ['one that is written', mount(undefined, false), [instance('web')], writable],
      ['one that is read', mount(undefined), [instance('web')], notified('Disabled')],
      ['Enabled', mount('Enabled'), [instance('web', deep)], notified('Enabled')],
      ['Enabled, before it is', mount('Enabled'), [], notified('Enabled')],
      ['IfPossible, where it was', mount('IfPossible'), [instance('web', deep)], notified('Enabled')],
      ['IfPossible, where it was not', mount('IfPossible'), [instance('web')], notified('Disabled')],
      ['IfPossible, before it is known', mount('IfPossible'), [], notified('Disabled')],
    ])('%s', (_name, given, instances, expected) => {
      const volumeMounts = [given] as { name: string; mountPath: string }[];
      const pod = makePod('p', { containers: [{ name: 'web', image: 'n', volumeMounts }] });
      expect(web(statusOf(pod, instances))?.volumeMounts).toEqual([expected]);
    });
  });
  it('of an ephemeral container is neither ready nor started', () => {
    const pod = makePod('p', { ephemeralContainers: [{ name: 'debug', image: 'd' }] });
    const status = statusOf(pod, [instance('web'), instance('debug', { type: 'ephemeral' })]);
    const debug = status.ephemeralContainerStatuses?.[0];
    expect(debug).toMatchObject({ ready: false, state: { running: { startedAt: AT } } });
    expect(Object.keys(debug ?? {})).not.toContain('started');
  });
  it.each([
    ['of no instance', [], undefined, undefined],
    ['of one that runs', [instance('web')], { requests: { cpu: '1' } }, { cpu: '1' }],
    ['of one that has ended', [ended('web', 1)], { requests: { cpu: '1' } }, { cpu: '1' }],
  ])('has resources where there is an instance: %s', (_name, instances, resources, allocatedResources) => {
    const asking = { name: 'web', image: 'n', resources: { requests: { cpu: '1' } } };
    const status = web(statusOf(makePod('p', { containers: [asking] }), instances));
    expect(status?.resources).toEqual(resources);
    expect(status?.allocatedResources).toEqual(allocatedResources);
  });
  it('has empty resources of an ephemeral container that runs, and none before', () => {
    const pod = makePod('p', { ephemeralContainers: [{ name: 'debug', image: 'd' }] });
    const debug = (...instances: ReturnType<typeof instance>[]) =>
      statusOf(pod, [instance('web'), ...instances]).ephemeralContainerStatuses?.[0];
    expect(debug(instance('debug'))?.resources).toEqual({});
    expect(Object.keys(debug() ?? {})).not.toContain('resources');
  });
  it('never counts fewer restarts than were reported', () => {
    const before = statusOf(makePod('p'), [instance('web', { restartCount: 5 })]);
    const again = (restartCount: number) =>
      web(statusOf(makePod('p'), [instance('web', { restartCount })], { previous: before }))?.restartCount;
    expect([again(0), again(5), again(6)]).toEqual([5, 5, 6]);
  });
  it.each([
    ['success', true],
    ['failure', false],
    [undefined, false],
  ] as const)('is ready where its probe says %s: %s', (verdict, isReady) => {
    const probed = { name: 'web', image: 'n', readinessProbe: { tcpSocket: { port: 1 } } };
    const probes = new FakeProbes();
    if (verdict !== undefined) probes.set('readiness', 'web-0', verdict);
    const status = statusOf(makePod('p', { containers: [probed] }), [instance('web')], { probes });
    expect(web(status)?.ready).toBe(isReady);
    expect(condition(status, 'Ready')?.status).toBe(isReady ? 'True' : 'False');
  });
  it('of an init container that the runtime has lost is Completed where a container after it was made', () => {
    const pod = makePod('p', {
      initContainers: [
        { name: 'init', image: 'i' },
        { name: 'side', image: 's', restartPolicy: 'Always' },
      ],
    });
    const status = statusOf(pod, [instance('web')]);
    expect(status.initContainerStatuses?.[0]).toMatchObject({
      ready: true,
      state: {
        terminated: {
          exitCode: 0,
          reason: 'Completed',
          message:
            'Unable to get init container status from container runtime and pod has been initialized, ' +
            'treat it as exited normally',
        },
      },
    });
    expect(status.initContainerStatuses?.[1]?.state?.waiting?.reason).toBe('PodInitializing');
    // In a sandbox before the present one it proves nothing.
    const before = statusOf(pod, [instance('web', { sandboxId: 'gone' as SandboxId })]);
    expect(before.initContainerStatuses?.[0]?.state?.waiting?.reason).toBe('PodInitializing');
  });
  it('has its share of 12 KiB of termination messages, cut between characters', () => {
    const containers = ['a', 'b', 'c', 'd'].map((name) => ({ name, image: 'i' }));
    const output = `x${'ä'.repeat(2000)}`;
    const pod = (count: number) => makePod('p', { restartPolicy: 'Never', containers: containers.slice(0, count) });
    const messages = (count: number) => {
      const ends = containers.slice(0, count).map(({ name }) => ended(name, 1, { message: output }));
      return statusOf(pod(count), ends).containerStatuses?.map(({ state }) => state?.terminated?.message);
    };
    expect(messages(3)).toEqual([output, output, output]);
    expect(new Set(messages(4))).toEqual(new Set([`x${'ä'.repeat(1535)}`]));
  });
  it('of an init container is ready once it succeeded', () => {
    const pod = makePod('p', { initContainers: [{ name: 'init', image: 'i' }] });
    const status = statusOf(pod, [instance('web'), ended('init', 0, { type: 'init' })]);
    expect(status.initContainerStatuses?.[0]?.ready).toBe(true);
    expect(condition(status, 'Initialized')?.status).toBe('True');
  });
});

describe('the end of a pod', () => {
  it('Succeeded: its conditions say PodCompleted', () => {
    const status = statusOf(makePod('p', { restartPolicy: 'Never' }), [ended('web', 0)], { over: true });
    expect(status.phase).toBe('Succeeded');
    expect(condition(status, 'Ready')).toMatchObject({ status: 'False', reason: 'PodCompleted' });
    expect(condition(status, 'ContainersReady')).toMatchObject({ status: 'False', reason: 'PodCompleted' });
    expect(condition(status, 'Initialized')).toMatchObject({ status: 'True', reason: 'PodCompleted' });
  });
  it('Failed: its conditions say PodFailed', () => {
    const status = statusOf(makePod('p', { restartPolicy: 'Never' }), [ended('web', 2)], { over: true });
    expect(status.phase).toBe('Failed');
    expect(condition(status, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
  });
  it('is not reported while a container still runs, nor why, nor that it is a disruption', () => {
    const why = { reason: 'Evicted', message: 'the node was low on memory' };
    const disruption = { reason: 'TerminationByKubelet', message: why.message };
    const failure = { ...why, disruption };
    const before = statusOf(makePod('p'), [instance('web')]);
    const dying = statusOf(makePod('p'), [instance('web')], { previous: before, failure });
    expect(dying).toEqual(before);
    const dead = statusOf(makePod('p'), [ended('web', 143)], { previous: dying, failure, over: true });
    expect(dead).toMatchObject({ phase: 'Failed', ...why });
    expect(condition(dead, 'DisruptionTarget')).toMatchObject({ status: 'True', ...disruption });
    expect(condition(dead, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
  });
  it.each([
    ['of itself', {}],
    ['because the node ends it', { failure: { reason: 'Evicted', message: 'low' } }],
  ])('is not reported while a container may still begin, although none is seen: %s', (_, facts) => {
    const pod = makePod('p', { restartPolicy: 'Never' });
    const previous = { phase: 'Running' };
    expect(statusOf(pod, [ended('web', 1)], { ...facts, previous }).phase).toBe('Running');
    expect(statusOf(pod, [ended('web', 1)], { ...facts, previous, over: true }).phase).toBe('Failed');
  });
  it('is not reported while one runs whose start has failed, and that is reported as waiting until it is stopped', () => {
    const failure = { reason: 'DeadlineExceeded', message: 'late' };
    const waiting = new Map([['web', { reason: 'PostStartHookError', message: 'no' }]]);
    const facts = { failure, waiting, restarting: new Set(['web']) };
    const dying = statusOf(makePod('p'), [instance('web')], facts);
    expect(dying.containerStatuses?.[0]?.state?.waiting?.reason).toBe('PostStartHookError');
    expect(dying).toMatchObject({ phase: 'Pending' });
    expect(dying.reason).toBeUndefined();
  });
  it('is not reported while a container is being started that the runtime does not show running yet', () => {
    const failure = { reason: 'Evicted', message: 'the node was low on memory' };
    for (const snapshot of [[], [instance('web', { state: 'created' })]]) {
      expect(statusOf(makePod('p'), snapshot, { failure, over: false })).toMatchObject({ phase: 'Pending' });
      expect(statusOf(makePod('p'), snapshot, { failure, over: true })).toMatchObject({ phase: 'Failed' });
    }
  });
  it('stays reported when the pod is deleted while the replacement of a container is created', () => {
    const containers = [
      instance('web', { id: 'second' as ContainerId, state: 'created', restartCount: 1 }),
      ended('web', 143, { id: 'first' as ContainerId }),
    ];
    const made = makePod('p', { restartPolicy: 'Never' });
    const deleted = { ...made, metadata: { ...made.metadata, deletionTimestamp: AT } };
    const previous = statusOf(deleted, containers.slice(1));
    expect(statusOf(deleted, containers, { previous }).containerStatuses?.[0]).toMatchObject({
      containerID: 'cri-o://first',
      restartCount: 0,
      state: { terminated: { exitCode: 143 } },
    });
    // The start of the replacement may be under way: an end that was not reported is not reported any more.
    const running = statusOf(made, [instance('web', { id: 'first' as ContainerId })]);
    expect(statusOf(deleted, containers, { previous: running }).containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: {} },
    });
    expect(statusOf(made, containers).containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: {} },
    });
  });
  it('by its deadline makes it unready at once', () => {
    const pod = makePod('p', { activeDeadlineSeconds: 1 });
    const failure = activeDeadline(pod, AT, plusMs(NOW, 1000))?.failure;
    const dying = statusOf(pod, [instance('web')], failure === undefined ? {} : { failure });
    expect(dying).toMatchObject({ phase: 'Pending' });
    expect(dying.reason).toBeUndefined();
    expect(condition(dying, 'Ready')).toMatchObject({ status: 'False', reason: 'PodFailed' });
    expect(condition(dying, 'ContainersReady')).toMatchObject({ status: 'False', reason: 'PodFailed' });
  });
  it('that has come but for an ephemeral container says PodCompleted, and its phase waits', () => {
    const pod = makePod('p', { restartPolicy: 'Never', ephemeralContainers: [{ name: 'debug', image: 'd' }] });
    const status = statusOf(pod, [instance('debug', { type: 'ephemeral' }), ended('web', 0)]);
    expect(status.phase).toBe('Pending');
    expect(condition(status, 'Ready')).toMatchObject({ status: 'False', reason: 'PodCompleted' });
  });
  it('leaves it initialized although its sidecar is dead', () => {
    const pod = makePod('p', {
      restartPolicy: 'Never',
      initContainers: [{ name: 'side', image: 's', restartPolicy: 'Always' }],
    });
    const status = statusOf(pod, [ended('web', 1), ended('side', 143, { type: 'init' })], { over: true });
    expect(status.phase).toBe('Failed');
    expect(condition(status, 'Initialized')).toMatchObject({ status: 'True' });
  });
  it('reports a container whose exit was not observed as ContainerStatusUnknown', () => {
    const before = statusOf(
      makePod('p', {
        containers: [
          { name: 'web', image: 'n' },
          { name: 'b', image: 'n' },
        ],
      }),
      [instance('web'), instance('b')],
    );
    const pod = makePod('p', {
      containers: [
        { name: 'web', image: 'n' },
        { name: 'b', image: 'n' },
      ],
    });
    const after = statusOf(pod, [ended('web', 0)], { previous: before, over: true });
    const b = after.containerStatuses?.find(({ name }) => name === 'b');
    expect(b?.state?.terminated).toMatchObject({ exitCode: 137, reason: 'ContainerStatusUnknown' });
    expect(after.phase).toBe('Failed');
  });
  const unknown = { exitCode: 137, reason: 'ContainerStatusUnknown' };
  it('of a pod that never started reports its containers as ended in an unknown way', () => {
    const after = statusOf(makePod('p'), [], { over: true }, []);
    expect(after.phase).toBe('Failed');
    expect(after.containerStatuses?.[0]?.state?.terminated).toMatchObject(unknown);
  });
  it('before it was initialized leaves the containers waiting whose turn never came', () => {
    const initContainers = ['one', 'two'].map((name) => ({ name, image: 'i' }));
    const after = statusOf(makePod('p', { initContainers }), [], { over: true }, []);
    expect(after.phase).toBe('Failed');
    expect(after.initContainerStatuses?.[0]?.state?.terminated).toMatchObject(unknown);
    expect(after.initContainerStatuses?.[1]?.state?.waiting?.reason).toBe('PodInitializing');
    expect(after.containerStatuses?.[0]?.state?.waiting?.reason).toBe('PodInitializing');
  });
  it('of a refused pod is Failed with why', () => {
    expect(rejectedStatus(makePod('p'), { reason: 'OutOfcpu', message: 'no cpu' }, NOW)).toEqual({
      observedGeneration: 1,
      startTime: AT,
      qosClass: 'BestEffort',
      phase: 'Failed',
      reason: 'OutOfcpu',
      message: 'Pod was rejected: no cpu',
    });
  });
});
