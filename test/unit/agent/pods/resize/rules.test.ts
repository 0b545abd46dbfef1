// The rules of resizing a pod in place: what is granted, what a container is asked, what is reported.

import { describe, expect, it } from 'vitest';
import { computePodActions } from '../../../../../agent/pods/actions.ts';
import { hashContainer } from '../../../../../agent/pods/hash.ts';
import type { PodAction } from '../../../../../agent/pods/pod-action.ts';
import {
  allocationFromStatus,
  allocationOf,
  decideResize,
  inResizeOrder,
  judgeResize,
  type Resources,
  roomFor,
  sameResources,
  withAllocation,
} from '../../../../../agent/pods/resize/allocation.ts';
import {
  judgeContainerResize,
  runtimeFigures,
  shrinksMemoryTo,
} from '../../../../../agent/pods/resize/resize-actions.ts';
import { reportedResources, resizeEventMessage } from '../../../../../agent/pods/resize/resize-status.ts';
import type { ContainerSnapshot, PodUID, SandboxSnapshot } from '../../../../../agent/ports/runtime.ts';
import type { Container, Pod } from '../../../../../client/types.ts';
import { epochMs } from '../../../../../lib/clock.ts';
import { FakeProbes, makePod } from '../../../../sim/fakes.ts';

const container = (resources: Resources, more: Partial<Container> = {}): Container => ({
  name: 'web',
  image: 'nginx:stable',
  resources: {
    ...(resources.requests === undefined ? {} : { requests: { ...resources.requests } }),
    ...(resources.limits === undefined ? {} : { limits: { ...resources.limits } }),
  },
  ...more,
});

const running = (resources?: ContainerSnapshot['resources']): ContainerSnapshot => ({
  id: 'c1' as ContainerSnapshot['id'],
  sandboxId: 's1' as ContainerSnapshot['sandboxId'],
  name: 'web',
  type: 'container',
  restartCount: 0,
  hash: '',
  state: 'running',
  createdAt: epochMs(0),
  startedAt: epochMs(0),
  finishedAt: epochMs(0),
  exitCode: 0,
  reason: '',
  message: '',
  image: 'nginx:stable',
  imageId: '',
  logPath: '',
  ...(resources === undefined ? {} : { resources }),
});

const cpu = (request: string, limit?: string): Resources => ({
  requests: { cpu: request },
  ...(limit === undefined ? {} : { limits: { cpu: limit } }),
});

const podOf = (...containers: Container[]): Pod => makePod('p', { containers });

describe('whether a resize is granted', () => {
  const wholePod: object = { resources: { limits: { cpu: '1' } } };
  const allocatable = { cpu: '2', memory: '4Gi' };
  const other = podOf(container({ requests: { cpu: '1500m', memory: '3Gi' } }));
  const rows: readonly (readonly [string, Pod, boolean, string | undefined])[] = [
    ['it is, when the rest of the node has room', podOf(container(cpu('500m'))), false, undefined],
    [
      'it waits while other pods take the cpu',
      podOf(container(cpu('501m'))),
      false,
      "Deferred: Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000",
    ],
    [
      'it waits while other pods take the memory',
      podOf(container({ requests: { memory: '2Gi' } })),
      false,
      "Deferred: Node didn't have enough resource: memory, requested: 2147483648, used: 3221225472, capacity: 4294967296",
    ],
    [
      'it is never, when the node has not that much cpu at all',
      podOf(container(cpu('3'))),
      false,
      "Infeasible: Node didn't have enough capacity: cpu, requested: 3000, capacity: 2000",
    ],
    [
      'memory is named before cpu where the node has enough of neither',
      podOf(container({ requests: { cpu: '3', memory: '5Gi' } })),
      false,
      "Infeasible: Node didn't have enough capacity: memory, requested: 5368709120, capacity: 4294967296",
    ],
    [
      'a static pod is never resized',
      podOf(container(cpu('1m'))),
      true,
      'Infeasible: In-place resize of static-pods is not supported',
    ],
    [
      'a pod with resources of its own as a whole is never resized',
      makePod('p', { containers: [container(cpu('1m'))], ...wholePod }),
      false,
      'Infeasible: In-place resize of pods with pod-level resources is not supported',
    ],
  ];
  it.each(rows)('%s', (_, pod, isStatic, expected) => {
    const verdict = judgeResize(pod, [other], allocatable, isStatic);
    expect(verdict === undefined ? undefined : `${verdict.reason}: ${verdict.message}`).toBe(expected);
  });
});

describe('a resize that the spec wants', () => {
  const deferred = {
    reason: 'Deferred',
    message: "Node didn't have enough resource: cpu, requested: 2000, used: 2500, capacity: 4000",
  } as const;
  const infeasible = {
    reason: 'Infeasible',
    message: "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000",
  } as const;
  const decide = (
    desired: string,
    given: { pending?: typeof deferred | typeof infeasible; observed?: boolean; deleted?: boolean; used?: string } = {},
  ) => {
    const made = makePod('web', { containers: [container(cpu(desired))] });
    const deletion = given.deleted === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
    const pod = { ...made, metadata: { ...made.metadata, ...deletion } };
    const others = [makePod('other', { containers: [container(cpu(given.used ?? '0'))] })];
    return decideResize({
      pod,
      allocated: { web: cpu('1') },
      pending: given.pending,
      observed: given.observed ?? true,
      node: () => ({ others, allocatable: { cpu: '4' } }),
    });
  };
  it.each<[string, ReturnType<typeof decide>, ReturnType<typeof decide>]>([
    ['and is allocated already changes nothing', decide('1'), { kind: 'unchanged' }],
    ['and is allocated already in another spelling changes nothing', decide('1000m'), { kind: 'unchanged' }],
    ['no more is withdrawn', decide('1', { pending: deferred }), { kind: 'withdrawn' }],
    ['waits until what runs is known', decide('2', { observed: false }), { kind: 'unchanged' }],
    ['of a pod that is being deleted is left alone', decide('2', { deleted: true }), { kind: 'unchanged' }],
    ['and there is room for is allocated', decide('2'), { kind: 'allocated', allocated: { web: cpu('2') } }],
    [
      'and there is room for now is allocated',
      decide('2', { pending: deferred }),
      { kind: 'allocated', allocated: { web: cpu('2') } },
    ],
    [
      'and there is no room for now is deferred',
      decide('2', { used: '2500m' }),
      { kind: 'pending', why: deferred, since: 'now' },
    ],
    [
      'and is deferred already is not reported again',
      decide('2', { used: '2500m', pending: deferred }),
      { kind: 'unchanged' },
    ],
    [
      'is deferred for less room',
      decide('2', { used: '2600m', pending: deferred }),
      { kind: 'pending', why: { ...deferred, message: deferred.message.replace('2500', '2600') }, since: 'before' },
    ],
    [
      'and the node never has room for is infeasible',
      decide('5', { pending: deferred }),
      { kind: 'pending', why: infeasible, since: 'now' },
    ],
    [
      'and was infeasible is deferred once it is less',
      decide('2', { used: '2500m', pending: infeasible }),
      { kind: 'pending', why: deferred, since: 'now' },
    ],
  ])('%s', (_what, decision, expected) => expect(decision).toEqual(expected));
});

describe('who is looked at first when there is room again', () => {
  const waiting = (
    name: string,
    asked: string,
    promised: string,
    priority: number,
    since: number,
    qos: 'Burstable' | 'Guaranteed' = 'Burstable',
  ) => {
    const of = (quantity: string): Pod => {
      const pod = makePod(name, { containers: [container(cpu(quantity))], priority });
      return { ...pod, status: { ...pod.status, qosClass: qos } };
    };
    return { pod: of(asked), effective: of(promised), since: epochMs(since) };
  };
  it('is who wants no more than it has, then the more important, the guaranteed, and who waited longest', () => {
    const order = inResizeOrder([
      waiting('late', '2', '1', 0, 20),
      waiting('early', '2', '1', 0, 10),
      waiting('guaranteed', '2', '1', 0, 30, 'Guaranteed'),
      waiting('important', '2', '1', 1000, 40),
      waiting('modest', '1', '2', -5, 50),
    ]);
    expect(order.map(({ pod }) => pod.metadata.name)).toEqual(['modest', 'important', 'guaranteed', 'early', 'late']);
  });
});

describe('what a container is asked', () => {
  const both = [
    { resourceName: 'cpu', restartPolicy: 'NotRequired' },
    { resourceName: 'memory', restartPolicy: 'RestartContainer' },
  ];
  const rows: readonly (readonly [string, Resources, Resources, Container['resizePolicy'], string])[] = [
    ['nothing when nothing differs, however it is spelled', cpu('1'), cpu('1000m'), undefined, 'none'],
    ['an update when the cpu request changes', cpu('1'), cpu('2'), undefined, 'update'],
    ['an update when the cpu limit changes', cpu('1', '1'), cpu('1', '2'), undefined, 'update'],
    [
      'an update when the memory changes and no policy says otherwise',
      { limits: { memory: '1Gi' } },
      { limits: { memory: '2Gi' } },
      undefined,
      'update',
    ],
    [
      'a restart when the memory changes and the policy wants one',
      { limits: { memory: '1Gi' } },
      { limits: { memory: '2Gi' } },
      both,
      'restart',
    ],
    ['no restart when only the cpu changes and the policy is about memory', cpu('1'), cpu('2'), both, 'update'],
    [
      'a restart when both change and one of them wants it',
      { requests: { cpu: '1', memory: '1Gi' } },
      { requests: { cpu: '2', memory: '2Gi' } },
      both,
      'restart',
    ],
  ];
  it.each(rows)('%s', (_, from, to, resizePolicy, expected) => {
    expect(judgeContainerResize(container(to, resizePolicy === undefined ? {} : { resizePolicy }), from)).toBe(
      expected,
    );
  });
});

describe('what the runtime is told', () => {
  const settings = { cpuCFSQuota: true, cpuCFSQuotaPeriodUs: 100_000 };
  const rows: readonly (readonly [string, Resources, Resources, object])[] = [
    ['shares for a cpu request', cpu('1'), cpu('2'), { cpuShares: 2048 }],
    [
      'shares and quota for a cpu limit',
      cpu('1', '1'),
      cpu('1', '1500m'),
      { cpuShares: 1024, cpuQuota: 150_000, cpuPeriod: 100_000 },
    ],
    [
      'no quota any more where the limit went',
      cpu('1', '1'),
      cpu('1'),
      { cpuShares: 1024, cpuQuota: -1, cpuPeriod: 100_000 },
    ],
    [
      'bytes for a memory limit',
      { limits: { memory: '64Mi' } },
      { limits: { memory: '128Mi' } },
      { memoryLimitBytes: 134_217_728 },
    ],
    ['nothing for a memory request', { requests: { memory: '1Mi' } }, { requests: { memory: '2Mi' } }, {}],
  ];
  it.each(rows)('%s', (_, from, to, expected) => {
    expect(runtimeFigures(from, to, settings)).toEqual(expected);
  });
  it('is no quota where quotas are not enforced', () => {
    expect(runtimeFigures(cpu('1', '1'), cpu('1', '2'), { ...settings, cpuCFSQuota: false })).toEqual({
      cpuShares: 1024,
    });
  });
  it('is checked against what is in use only where the memory limit comes down', () => {
    const memory = (limit?: string): Resources => (limit === undefined ? {} : { limits: { memory: limit } });
    expect(shrinksMemoryTo(memory('2Ki'), memory('1Ki'))).toBe(1024);
    expect(shrinksMemoryTo(memory(), memory('1Ki'))).toBe(1024);
    expect(shrinksMemoryTo(memory('1Ki'), memory('2Ki'))).toBeUndefined();
    expect(shrinksMemoryTo(memory('1Ki'), memory())).toBeUndefined();
  });
});

describe('the pod as it runs', () => {
  it('has what it was promised instead of what it asks for', () => {
    const pod = podOf(container(cpu('2', '2')));
    const effective = withAllocation(pod, { web: cpu('1', '1') });
    expect(effective.spec.containers[0]?.resources).toEqual(cpu('1', '1'));
    expect(pod.spec.containers[0]?.resources).toEqual(cpu('2', '2'));
  });
  it('is the same object when it is promised all that it asks for', () => {
    const pod = podOf(container(cpu('2')));
    expect(withAllocation(pod, { web: cpu('2000m') })).toBe(pod);
  });
  it('has a cgroup as large as the larger of what runs and what is promised, figure by figure', () => {
    const pod = podOf(container({ requests: { cpu: '1' }, limits: { cpu: '1', memory: '2Gi' } }));
    const room = roomFor(pod, { web: { requests: { cpu: '3' }, limits: { cpu: '3', memory: '1Gi' } } });
    expect(room.spec.containers[0]?.resources).toEqual({
      requests: { cpu: '3' },
      limits: { cpu: '3', memory: '2Gi' },
    });
  });
  it('has no limit of its cgroup while one of its containers has none yet', () => {
    const pod = podOf(container({ limits: { cpu: '1' } }));
    expect(roomFor(pod, { web: { requests: { cpu: '1' } } }).spec.containers[0]?.resources?.limits).toEqual({});
  });
  it('is told by its status where no checkpoint tells', () => {
    const pod = podOf(container(cpu('2', '2')));
    expect(allocationFromStatus(pod)).toBeUndefined();
    const status = {
      name: 'web',
      image: '',
      imageID: '',
      ready: true,
      restartCount: 0,
      allocatedResources: { cpu: '1' },
      resources: { requests: { cpu: '900m' }, limits: { cpu: '1' } },
    };
    const ran: Pod = { ...pod, status: { containerStatuses: [status] } };
    expect(allocationFromStatus(ran)).toEqual({ web: cpu('1', '1') });
  });
  it('leaves init containers that end alone, and counts sidecars', () => {
    const pod = makePod('p', {
      containers: [container(cpu('1'))],
      initContainers: [
        { name: 'once', image: 'i', resources: { requests: { cpu: '1' } } },
        { name: 'side', image: 'i', restartPolicy: 'Always', resources: { requests: { cpu: '2' } } },
      ],
    });
    expect(Object.keys(allocationOf(pod)).sort()).toEqual(['side', 'web']);
    const effective = withAllocation(pod, { once: cpu('9'), side: cpu('1') });
    expect(effective.spec.initContainers?.map(({ resources }) => resources?.requests?.['cpu'])).toEqual(['1', '1']);
  });
});

describe('what is reported', () => {
  const spec = container({ requests: { cpu: '0.5', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } });
  it('is what the container would run with, while it does not run', () => {
    const dead = { ...running(), state: 'exited' } as const;
    expect(reportedResources(spec, undefined, undefined)).toEqual({});
    expect(reportedResources(spec, dead, undefined)).toEqual({
      allocatedResources: { cpu: '0.5', memory: '64Mi' },
      resources: { requests: { cpu: '0.5', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } },
    });
  });
  it('is what it was started with, until its resize is done', () => {
    const reported = reportedResources(spec, running(), { requests: { cpu: '100m' }, limits: { cpu: '200m' } });
    expect(reported.resources).toEqual({ requests: { cpu: '100m' }, limits: { cpu: '200m' } });
    expect(reported.allocatedResources).toEqual({ cpu: '0.5', memory: '64Mi' });
  });
  it('keeps the spelling of the spec where the runtime has the same figures', () => {
    const told = { cpuShares: 512, cpuQuota: 100_000, cpuPeriod: 100_000, memoryLimitBytes: 128 * 1024 ** 2 };
    expect(reportedResources(spec, running(told), undefined).resources).toEqual(spec.resources);
  });
  it('is what the runtime says where that is something else', () => {
    const told = { cpuShares: 102, cpuQuota: 50_000, cpuPeriod: 100_000, memoryLimitBytes: 32 * 1024 ** 2 };
    expect(reportedResources(spec, running(told), undefined).resources).toEqual({
      requests: { cpu: '100m', memory: '64Mi' },
      limits: { cpu: '500m', memory: '32Mi' },
    });
  });
  it('is an empty object for a container that asks for nothing', () => {
    expect(reportedResources(container({}), running(), undefined)).toEqual({ resources: {} });
  });
  it('has the kubelet’s words in its events', () => {
    expect(resizeEventMessage('Pod resize started', podOf(container(cpu('2'))))).toBe(
      'Pod resize started: {"containers":[{"name":"web","resources":{"requests":{"cpu":"2"}}}],"generation":1}',
    );
  });
});

describe('the next actions of a pod whose resize was granted', () => {
  const sandbox: SandboxSnapshot = {
    id: 's1' as SandboxSnapshot['id'],
    attempt: 0,
    state: 'ready',
    createdAt: epochMs(0),
    ips: ['10.0.0.1'],
    hostNetwork: false,
    runtimeHandler: '',
  };
  const say = (action: PodAction): string => {
    if (action.kind === 'resizePod')
      return `resize ${action.updates.map((update) => update.container.name).join(' ')}`.trim();
    if (action.kind === 'killContainer') return `kill ${action.container.name}: ${action.message}`;
    return action.kind;
  };
  const decide = (spec: Container, actual: Resources | undefined, roomMade: boolean, startsOutdated = false) => {
    const instance = { ...running(), id: 'c1' as ContainerSnapshot['id'], hash: hashContainer(spec) };
    const known = new Map(actual === undefined ? [] : [[instance.id, actual] as const]);
    return computePodActions({
      pod: podOf(spec),
      snapshot: {
        pod: { uid: 'u' as PodUID, namespace: 'demo', name: 'p' },
        sandboxes: [sandbox],
        containers: [instance],
        observedAt: epochMs(0),
      },
      previous: undefined,
      probes: new FakeProbes(),
      backoff: new Map(),
      backoffPolicy: { initialMs: 1, maxMs: 1, factor: 1, resetMs: 1 },
      now: epochMs(0),
      sandboxBusy: false,
      starting: new Set(),
      killing: new Set(),
      restartWanted: new Map(),
      resize: { actual: known, startsOutdated, roomMade },
    }).actions.map(say);
  };
  const restart = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  it('are to update the container that runs', () => {
    expect(decide(container(cpu('2')), cpu('1'), false)).toEqual(['resize web']);
  });
  it('are to make room first, and then to stop the container, where it must restart', () => {
    expect(decide(container(cpu('2'), { resizePolicy: restart }), cpu('1'), false)).toEqual([
      'resize',
      'kill web: Container web resize requires restart',
    ]);
  });
  it('make room only once', () => {
    expect(decide(container(cpu('2'), { resizePolicy: restart }), cpu('1'), true)).toEqual([
      'kill web: Container web resize requires restart',
    ]);
  });
  it('are to bring the cgroup down when every container is done', () => {
    expect(decide(container(cpu('2')), undefined, true)).toEqual(['resize']);
  });
  it('are none while a container is being made that will have to be resized', () => {
    expect(decide(container(cpu('2')), undefined, true, true)).toEqual([]);
    expect(decide(container(cpu('2')), undefined, false, true)).toEqual(['resize']);
  });
});

it('0 and nothing are the same request', () => {
  expect(sameResources({ requests: { cpu: '0' } }, {})).toBe(true);
});
