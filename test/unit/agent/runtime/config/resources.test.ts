import { describe, expect, test } from 'vitest';
import {
  containerResources,
  oomScoreAdj,
  pageSizeName,
  sandboxResources,
  updatedResources,
  updatedSandboxResources,
} from '../../../../../agent/runtime/config/resources.ts';
import type { Container, Pod } from '../../../../../client/types.ts';
import { container, NODE, pod } from '../fixtures.ts';

const withResources = (resources: Container['resources']) => container(resources === undefined ? {} : { resources });
const of = (one: Container, spec: Partial<Pod['spec']> = {}) => pod({ containers: [one], ...spec });
const GIB = 2 ** 30;

describe('oom_score_adj', () => {
  const guaranteed = withResources({ limits: { cpu: '1', memory: '1Gi' } });
  test.each<[string, Pod, Container, number]>([
    ['guaranteed', of(guaranteed), guaranteed, -997],
    ['best effort', of(container()), container(), 1000],
    [
      'a quarter of the machine requested',
      of(withResources({ requests: { memory: '1Gi' } })),
      withResources({ requests: { memory: '1Gi' } }),
      750,
    ],
    [
      'a limit stands for the request',
      of(withResources({ limits: { memory: '1Gi' } })),
      withResources({ limits: { memory: '1Gi' } }),
      750,
    ],
    [
      'next to nothing requested stays below best effort',
      of(withResources({ requests: { memory: '1' } })),
      withResources({ requests: { memory: '1' } }),
      999,
    ],
    [
      'all of the machine stays above guaranteed',
      of(withResources({ requests: { memory: '4Gi' } })),
      withResources({ requests: { memory: '4Gi' } }),
      3,
    ],
    [
      'only cpu requested',
      of(withResources({ requests: { cpu: '1' } })),
      withResources({ requests: { cpu: '1' } }),
      999,
    ],
    ['node critical', of(container(), { priorityClassName: 'system-node-critical' }), container(), -997],
  ])('%s', (_what, whole, one, expected) => {
    expect(oomScoreAdj(whole, one, 4 * GIB)).toBe(expected);
  });

  describe('a sidecar counts as asking for as much as the least of the containers it serves, or more', () => {
    const asking = (name: string, memory: string) => container({ name, resources: { requests: { memory } } });
    test.each([
      ['1Mi', ['2Gi'], 500],
      ['1Mi', ['2Gi', '1Gi'], 750],
      ['3Gi', ['2Gi', '1Gi'], 250],
    ])('%s beside %j', (own, others, expected) => {
      const sidecar = { ...asking('side', own), restartPolicy: 'Always' };
      const containers = others.map((memory, index) => asking(`c${index}`, memory));
      expect(oomScoreAdj(pod({ containers, initContainers: [sidecar] }), sidecar, 4 * GIB)).toBe(expected);
    });
  });

  test('what a pod as a whole requests and no container does is shared out among them', () => {
    const containers = [
      container({ name: 'a', resources: { requests: { memory: '1Gi' } } }),
      container({ name: 'b' }),
      container({ name: 'c' }),
    ];
    const sidecar = { ...container({ name: 'd' }), restartPolicy: 'Always' };
    const resources = { requests: { memory: '3Gi' }, limits: { memory: '4Gi' } };
    const whole = pod({ containers, initContainers: [sidecar], resources } as Pod['spec']);
    const scores = [...containers, sidecar].map((one) => oomScoreAdj(whole, one, 4 * GIB));
    expect(scores).toEqual([625, 875, 875, 875]);
  });
});

describe('resources of a container', () => {
  const figures = (resources: Container['resources'], node = NODE) => {
    const one = withResources(resources);
    return containerResources(of(one), one, node);
  };

  test('requests are shares, limits are quota and memory', () => {
    expect(figures({ requests: { cpu: '250m', memory: '1Gi' }, limits: { cpu: '500m', memory: '2Gi' } })).toEqual({
      cpu_shares: 256,
      cpu_quota: 50_000,
      cpu_period: 100_000,
      memory_limit_in_bytes: 2 * GIB,
      oom_score_adj: 750,
    });
  });

  test('nothing asked for is the least weight and no limit', () => {
    expect(figures(undefined)).toEqual({ cpu_shares: 2, cpu_quota: 0, cpu_period: 100_000, oom_score_adj: 1000 });
  });

  test('a cpu limit alone is the request, too', () => {
    expect(figures({ limits: { cpu: '2' } })).toMatchObject({ cpu_shares: 2048, cpu_quota: 200_000 });
  });

  test('a cpu request of zero is a request', () => {
    expect(figures({ requests: { cpu: '0' }, limits: { cpu: '2' } })).toMatchObject({ cpu_shares: 2 });
  });

  test('what it does not limit itself is limited by the pod as a whole', () => {
    const one = withResources({ limits: { cpu: '1' } });
    const spec = { resources: { limits: { cpu: '2', memory: '2Gi' } } };
    const bare = container({ name: 'b' });
    const whole = of(one, { ...spec, containers: [one, bare] } as Partial<Pod['spec']>);
    expect(containerResources(whole, one, NODE)).toMatchObject({
      cpu_quota: 100_000,
      memory_limit_in_bytes: 2 * GIB,
    });
    expect(containerResources(whole, bare, NODE)).toMatchObject({
      cpu_shares: 2048,
      cpu_quota: 200_000,
      memory_limit_in_bytes: 2 * GIB,
    });
  });

  test('without cpuCFSQuota there is no quota', () => {
    expect(figures({ limits: { cpu: '2' } }, { ...NODE, cpuCFSQuota: false })).not.toHaveProperty('cpu_quota');
  });

  test('every page size of the node is limited, in its order, to zero unless asked for; no other size is', () => {
    const node = { ...NODE, hugepageSizes: ['1GB', '2MB'] };
    const limits = { 'hugepages-2Mi': '64Mi', 'hugepages-64Ki': '1Mi' };
    expect(figures({ limits }, node).hugepage_limits).toEqual([
      { page_size: '1GB', limit: '0' },
      { page_size: '2MB', limit: String(64 * 2 ** 20) },
    ]);
    expect(figures({ limits })).not.toHaveProperty('hugepage_limits');
  });

  test('huge pages of the pod as a whole are those of each container that names none of its own', () => {
    const node = { ...NODE, hugepageSizes: ['1GB', '2MB'] };
    const one = withResources({ limits: { 'hugepages-2Mi': '2Mi' } });
    const spec = { resources: { limits: { 'hugepages-2Mi': '8Mi', 'hugepages-1Gi': '1Gi' } } };
    const limits = containerResources(of(one, spec as Partial<Pod['spec']>), one, node).hugepage_limits;
    expect(limits).toEqual([
      { page_size: '1GB', limit: String(2 ** 30) },
      { page_size: '2MB', limit: String(2 * 2 ** 20) },
    ]);
  });

  test('on cgroup v1 memory and swap together are limited to the memory, also when that changes', () => {
    const node = { ...NODE, swapController: true };
    const limited = figures({ limits: { memory: '1Gi' } }, node);
    expect(limited).toMatchObject({ memory_limit_in_bytes: GIB, memory_swap_limit_in_bytes: GIB });
    expect(figures({ limits: { memory: '1Gi' } })).not.toHaveProperty('memory_swap_limit_in_bytes');
    expect(figures({ limits: { cpu: '1' } }, node)).not.toHaveProperty('memory_swap_limit_in_bytes');
    expect(updatedResources({ memoryLimitBytes: 2 * GIB }, node)).toEqual({
      memory_limit_in_bytes: 2 * GIB,
      memory_swap_limit_in_bytes: 2 * GIB,
    });
    expect(updatedResources({ cpuShares: 2 }, node)).toEqual({ cpu_shares: 2 });
    const onV2 = { ...node, cgroupVersion: 2 } as const;
    expect(updatedResources({ memoryLimitBytes: GIB }, onV2)).toEqual({ memory_limit_in_bytes: GIB });
  });

  test('on cgroup v2 a container dies of its own OOM as a whole, and does not swap', () => {
    expect(figures(undefined, { ...NODE, cgroupVersion: 2 }).unified).toEqual({ 'memory.oom.group': '1' });
    expect(figures(undefined, { ...NODE, cgroupVersion: 2, swapController: true }).unified).toEqual({
      'memory.oom.group': '1',
      'memory.swap.max': '0',
    });
  });
});

test('a sandbox gets the sum of its containers, and its overhead apart', () => {
  const one = withResources({ requests: { cpu: '1' }, limits: { cpu: '1', memory: '1Gi' } });
  expect(sandboxResources(pod({ containers: [one, { ...one, name: 'b' }], overhead: { cpu: '100m' } }), NODE)).toEqual({
    resources: { cpu_shares: 2048, cpu_quota: 200_000, cpu_period: 100_000, memory_limit_in_bytes: 2 * GIB },
    overhead: { cpu_shares: 102, cpu_quota: 10_000, cpu_period: 100_000 },
  });
});

describe('the sums in a sandbox config', () => {
  const sums = (spec: Partial<Pod['spec']>) => sandboxResources(pod(spec), NODE).resources;
  const named = (name: string, limits: Record<string, string>, requests: Record<string, string> = {}) =>
    container({ name, resources: { limits, requests } });

  test('have a limit where only some containers do', () => {
    const containers = [named('a', { cpu: '500m', memory: '1Gi' }), named('b', { memory: '1Gi' }), container()];
    expect(sums({ containers })).toMatchObject({ cpu_quota: 50_000, memory_limit_in_bytes: 2 * GIB });
  });

  test('have a limit where only an init container does', () => {
    const initContainers = [named('i', { cpu: '1', memory: '1Gi' }, { cpu: '250m' })];
    expect(sums({ initContainers })).toMatchObject({
      cpu_shares: 256,
      cpu_quota: 100_000,
      memory_limit_in_bytes: GIB,
    });
  });

  test('count what runs at one time: sidecars beside containers, init containers one by one', () => {
    const sidecar = { ...named('s', { memory: '1Gi' }), restartPolicy: 'Always' };
    const initContainers = [sidecar, named('i', { memory: '1Gi' })];
    expect(sums({ initContainers, containers: [named('a', { memory: '512Mi' })] })).toMatchObject({
      memory_limit_in_bytes: 2 * GIB,
    });
  });

  test('have no limit where no container has one, or one of 0', () => {
    const none = sums({ containers: [named('a', { cpu: '0', memory: '0' })] });
    expect(none).toEqual({ cpu_shares: 2, cpu_quota: 0, cpu_period: 100_000 });
    expect(sums({})).toEqual(none);
  });

  test('are those of the pod as a whole where it states them', () => {
    const resources = { limits: { cpu: '2', memory: '3Gi' } };
    const spec = { resources, containers: [named('a', { cpu: '500m', memory: '1Gi' }, { cpu: '250m' })] };
    expect(sums(spec as Partial<Pod['spec']>)).toMatchObject({
      cpu_shares: 256,
      cpu_quota: 200_000,
      memory_limit_in_bytes: 3 * GIB,
    });
  });
});

test.each([
  [2 ** 21, '2MB'],
  [2 ** 30, '1GB'],
  [2 ** 16, '64KB'],
])('a page of %i bytes is called %s', (bytes, name) => {
  expect(pageSizeName(bytes)).toBe(name);
});

describe('what is reported to the runtime of a resized pod', () => {
  const limited = withResources({ requests: { cpu: '250m' }, limits: { cpu: '500m', memory: '1Gi' } });
  test('are the figures of its cgroup, without the overhead, which is beside them', () => {
    const overhead = { cpu: '100m', memory: '16Mi' };
    expect(updatedSandboxResources(of(limited, { overhead }), NODE)).toEqual({
      resources: { cpu_shares: 256, cpu_quota: 50_000, cpu_period: 100_000, memory_limit_in_bytes: GIB },
      overhead: expect.objectContaining({ cpu_shares: 102, memory_limit_in_bytes: 16 * 2 ** 20 }),
    });
  });
  test('has no limit where only some containers have one: those bound nothing', () => {
    const both = pod({ containers: [limited, container({ name: 'free' })] });
    expect(updatedSandboxResources(both, NODE)).toEqual({ resources: { cpu_shares: 256 }, overhead: {} });
  });
  test('has no quota on a node without them', () => {
    const { resources } = updatedSandboxResources(of(limited), { ...NODE, cpuCFSQuota: false });
    expect(resources).toEqual({ cpu_shares: 256, memory_limit_in_bytes: GIB });
  });
});
