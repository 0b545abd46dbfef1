// The rules of resizing a pod in place: allocation, actions on containers, reported status.

import { describe, expect, it } from 'vitest';
import { computePodActions } from '../../../../../agent/pods/actions.ts';
import { hashContainer } from '../../../../../agent/pods/hash.ts';
import type { PodAction } from '../../../../../agent/pods/pod-action.ts';
import {
  allocationFromStatus,
  allocationOf,
  checkResize,
  completeAllocation,
  decideResize,
  inResizeOrder,
  type Resources,
  roomFor,
  sameResources,
  withAllocation,
} from '../../../../../agent/pods/resize/allocation.ts';
import {
  containerResize,
  memoryRefusal,
  runtimeFigures,
  shrinksMemoryTo,
  updateFigures,
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

describe('whether a resize can be allocated', () => {
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
    const verdict = checkResize(pod, [other], allocatable, isStatic);
    expect(verdict === undefined ? undefined : `${verdict.reason}: ${verdict.message}`).toBe(expected);
  });
});

describe('the decision about desired resources', () => {
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
    ['that are allocated already: unchanged', decide('1'), { kind: 'unchanged' }],
    ['that are allocated already in another spelling: unchanged', decide('1000m'), { kind: 'unchanged' }],
    ['that are back at the allocated ones: withdrawn', decide('1', { pending: deferred }), { kind: 'withdrawn' }],
    ['before the running instances are known: unchanged', decide('2', { observed: false }), { kind: 'unchanged' }],
    ['of a pod that is being deleted: unchanged', decide('2', { deleted: true }), { kind: 'unchanged' }],
    ['that fit: allocated', decide('2'), { kind: 'allocated', allocated: { web: cpu('2') } }],
    [
      'that were deferred and fit now: allocated',
      decide('2', { pending: deferred }),
      { kind: 'allocated', allocated: { web: cpu('2') } },
    ],
    ['that do not fit now: deferred', decide('2', { used: '2500m' }), { kind: 'pending', why: deferred, since: 'now' }],
    [
      'that are deferred already: not reported again',
      decide('2', { used: '2500m', pending: deferred }),
      { kind: 'unchanged' },
    ],
    [
      'that are deferred already, with another message: reported',
      decide('2', { used: '2600m', pending: deferred }),
      { kind: 'pending', why: { ...deferred, message: deferred.message.replace('2500', '2600') }, since: 'before' },
    ],
    [
      'that exceed the capacity: infeasible',
      decide('5', { pending: deferred }),
      { kind: 'pending', why: infeasible, since: 'now' },
    ],
    [
      'that were infeasible and fit the capacity now: deferred',
      decide('2', { used: '2500m', pending: infeasible }),
      { kind: 'pending', why: deferred, since: 'now' },
    ],
  ])('%s', (_what, decision, expected) => expect(decision).toEqual(expected));
});

describe('the order of deferred resizes', () => {
  const waiting = (
    name: string,
    desired: string,
    allocated: string,
    priority: number,
    since: number,
    qos: 'Burstable' | 'Guaranteed' = 'Burstable',
  ) => {
    const of = (quantity: string): Pod => {
      const pod = makePod(name, { containers: [container(cpu(quantity))], priority });
      return { ...pod, status: { ...pod.status, qosClass: qos } };
    };
    return { pod: of(desired), effective: of(allocated), since: epochMs(since) };
  };
  it('is: no more requests than allocated, then priority, Guaranteed, and the longest wait', () => {
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

describe('the action of a resize on a container', () => {
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
    expect(containerResize(container(to, resizePolicy === undefined ? {} : { resizePolicy }), from)).toBe(expected);
  });
});

describe('the figures of UpdateContainerResources', () => {
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
  it('have no quota where quotas are not enforced', () => {
    expect(runtimeFigures(cpu('1', '1'), cpu('1', '2'), { ...settings, cpuCFSQuota: false })).toEqual({
      cpuShares: 1024,
    });
  });
  it('are checked against memory usage only where the memory limit decreases', () => {
    const memory = (limit?: string): Resources => (limit === undefined ? {} : { limits: { memory: limit } });
    expect(shrinksMemoryTo(memory('2Ki'), memory('1Ki'))).toBe(1024);
    expect(shrinksMemoryTo(memory(), memory('1Ki'))).toBe(1024);
    expect(shrinksMemoryTo(memory('1Ki'), memory('2Ki'))).toBeUndefined();
    expect(shrinksMemoryTo(memory('1Ki'), memory())).toBeUndefined();
  });
  it.each([
    ['less', 1023, undefined],
    ['as much', 1024, 'attempting to set container "web" memory limit (1024) below current usage (1024)'],
    ['an unknown amount', undefined, undefined],
  ])('are refused where the container uses the memory that it is to have: %s', (_, used, expected) => {
    expect(memoryRefusal('web', 1024, used)).toBe(expected);
  });
  it('set back what a call with a lost response may have changed', () => {
    const was = { limits: { cpu: '1', memory: '64Mi' } };
    const grown = { limits: { cpu: '1', memory: '128Mi' } };
    expect(updateFigures([was], was, settings)).toBeUndefined();
    expect(updateFigures([grown, was], was, settings)).toEqual({ memoryLimitBytes: 67_108_864 });
  });
});

describe('the pod with its allocated resources', () => {
  it('has the allocated instead of the desired resources', () => {
    const pod = podOf(container(cpu('2', '2')));
    const effective = withAllocation(pod, { web: cpu('1', '1') });
    expect(effective.spec.containers[0]?.resources).toEqual(cpu('1', '1'));
    expect(pod.spec.containers[0]?.resources).toEqual(cpu('2', '2'));
  });
  it('is the same object when the desired resources are allocated', () => {
    const pod = podOf(container(cpu('2')));
    expect(withAllocation(pod, { web: cpu('2000m') })).toBe(pod);
  });
  it('has a cgroup of the larger of actuated and allocated resources, figure by figure', () => {
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
  it('is read from its status without a checkpoint', () => {
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
  it('has the resources of the spec where none are recorded, and none of containers that cannot be resized', () => {
    const pod = makePod('p', {
      containers: [container(cpu('1')), { name: 'late', image: 'i', resources: { requests: { cpu: '3' } } }],
      initContainers: [{ name: 'once', image: 'i', resources: { requests: { cpu: '1' } } }],
    });
    expect(completeAllocation(pod)).toEqual(allocationOf(pod));
    expect(completeAllocation(pod, { web: cpu('2'), once: cpu('9') })).toEqual({ web: cpu('2'), late: cpu('3') });
  });
  it('ignores init containers that end, and counts sidecars', () => {
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

describe('the reported resources', () => {
  const spec = container({ requests: { cpu: '0.5', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } });
  it('are the allocated ones while the container does not run', () => {
    const dead = { ...running(), state: 'exited' } as const;
    expect(reportedResources(spec, undefined, undefined)).toEqual({});
    expect(reportedResources(spec, dead, undefined)).toEqual({
      allocatedResources: { cpu: '0.5', memory: '64Mi' },
      resources: { requests: { cpu: '0.5', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } },
    });
  });
  it('are those of its start until its resize is actuated', () => {
    const reported = reportedResources(spec, running(), { requests: { cpu: '100m' }, limits: { cpu: '200m' } });
    expect(reported.resources).toEqual({ requests: { cpu: '100m' }, limits: { cpu: '200m' } });
    expect(reported.allocatedResources).toEqual({ cpu: '0.5', memory: '64Mi' });
  });
  it('keep the spelling of the spec where the runtime has the same figures', () => {
    const runtimeResources = {
      cpuShares: 512,
      cpuQuota: 100_000,
      cpuPeriod: 100_000,
      memoryLimitBytes: 128 * 1024 ** 2,
    };
    expect(reportedResources(spec, running(runtimeResources), undefined).resources).toEqual(spec.resources);
  });
  it('are the runtime’s where they differ', () => {
    const runtimeResources = { cpuShares: 102, cpuQuota: 50_000, cpuPeriod: 100_000, memoryLimitBytes: 32 * 1024 ** 2 };
    expect(reportedResources(spec, running(runtimeResources), undefined).resources).toEqual({
      requests: { cpu: '100m', memory: '64Mi' },
      limits: { cpu: '500m', memory: '32Mi' },
    });
  });
  it('are an empty object for a container without resources', () => {
    expect(reportedResources(container({}), running(), undefined)).toEqual({ resources: {} });
  });
  it('have the kubelet’s texts in events', () => {
    expect(resizeEventMessage('Pod resize started', podOf(container(cpu('2'))))).toBe(
      'Pod resize started: {"containers":[{"name":"web","resources":{"requests":{"cpu":"2"}}}],"generation":1}',
    );
  });
});

describe('the next actions of a pod whose resize was allocated', () => {
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
  const decide = (spec: Container, actual: Resources | undefined, cgroupEnlarged: boolean, startsOutdated = false) => {
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
      resize: { actual: known, startsOutdated, cgroupEnlarged },
    }).actions.map(say);
  };
  const restart = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  it('update the running container', () => {
    expect(decide(container(cpu('2')), cpu('1'), false)).toEqual(['resize web']);
  });
  it('enlarge the cgroup first, and then stop a container that must restart', () => {
    expect(decide(container(cpu('2'), { resizePolicy: restart }), cpu('1'), false)).toEqual([
      'resize',
      'kill web: Container web resize requires restart',
    ]);
  });
  it('enlarge the cgroup only once', () => {
    expect(decide(container(cpu('2'), { resizePolicy: restart }), cpu('1'), true)).toEqual([
      'kill web: Container web resize requires restart',
    ]);
  });
  it('shrink the cgroup when every container has its resources', () => {
    expect(decide(container(cpu('2')), undefined, true)).toEqual(['resize']);
  });
  it('are none while a container is being created that must be resized', () => {
    expect(decide(container(cpu('2')), undefined, true, true)).toEqual([]);
    expect(decide(container(cpu('2')), undefined, false, true)).toEqual(['resize']);
  });
});

it('0 and no request are the same', () => {
  expect(sameResources({ requests: { cpu: '0' } }, {})).toBe(true);
});
