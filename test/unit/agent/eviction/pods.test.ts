// Which pod is evicted first, its message, which limits evict it, and which pods are not taken at all.

import { describe, expect, it, test } from 'vitest';
import { admitUnderPressure } from '../../../../agent/eviction/admit.ts';
import { hasLocalStorageLimit, localStorageViolation } from '../../../../agent/eviction/local-storage.ts';
import { formatCount, pressureMessage } from '../../../../agent/eviction/messages.ts';
import { ephemeralStorageLimit, ephemeralStorageRequest, rankPods } from '../../../../agent/eviction/ranking.ts';
import { type PressureCondition, parseThresholds, type Signal } from '../../../../agent/eviction/thresholds.ts';
import type { DiskLayout, PodUsage } from '../../../../agent/eviction/types.ts';
import type { Pod } from '../../../../client/types.ts';
import { disk, MI, makePod, type PodShape, type Resources, usage } from './support.ts';

function rank(signal: Signal, pods: readonly (readonly [Pod, PodUsage | undefined])[], layout: DiskLayout = 'shared') {
  const used = new Map(pods);
  return rankPods(
    pods.map(([pod]) => pod),
    (pod) => used.get(pod),
    signal,
    layout,
  ).map(({ metadata }) => metadata.name);
}

const requests = (memory: string): Resources => ({ requests: { memory } });
const uses = (mebibytes: number): PodUsage => usage({ workingSetBytes: mebibytes * MI });

describe('ranking', () => {
  test.each<[string, Signal, readonly (readonly [Pod, PodUsage | undefined])[], string[]]>([
    [
      'a pod above its request goes before one below, whatever their priorities',
      'memory.available',
      [
        [makePod('below', { resources: requests('100Mi'), priority: 0 }), uses(90)],
        [makePod('above', { resources: requests('10Mi'), priority: 1000 }), uses(20)],
      ],
      ['above', 'below'],
    ],
    [
      'of pods above their requests the lower priority goes first',
      'memory.available',
      [
        [makePod('high', { priority: 10 }), uses(500)],
        [makePod('low', { priority: -10 }), uses(5)],
      ],
      ['low', 'high'],
    ],
    [
      'at equal priority the larger use beyond the request goes first',
      'memory.available',
      [
        [makePod('much', { resources: requests('480Mi') }), uses(500)],
        [makePod('more', { resources: requests('10Mi') }), uses(100)],
      ],
      ['more', 'much'],
    ],
    [
      'a pod that cannot be measured goes before all others',
      'memory.available',
      [
        [makePod('measured'), uses(500)],
        [makePod('unknown', { priority: 1000 }), undefined],
      ],
      ['unknown', 'measured'],
    ],
    [
      'memory inside kubepods ranks as memory of the node',
      'allocatableMemory.available',
      [
        [makePod('small'), uses(1)],
        [makePod('large'), uses(2)],
      ],
      ['large', 'small'],
    ],
    [
      'for processes the priority comes first, then their number',
      'pid.available',
      [
        [makePod('few'), usage({ processes: 3 })],
        [makePod('many'), usage({ processes: 300 })],
        [makePod('low', { priority: -1 }), usage({ processes: 1 })],
      ],
      ['low', 'many', 'few'],
    ],
    [
      'for disk the use beyond the requested ephemeral-storage counts',
      'nodefs.available',
      [
        [
          makePod('asked', { resources: { requests: { 'ephemeral-storage': '1Gi' } } }),
          usage({ volumes: { v: disk(900) } }),
        ],
        [makePod('took'), usage({ volumes: { v: disk(10) } })],
      ],
      ['took', 'asked'],
    ],
    [
      'for inodes their number counts',
      'nodefs.inodesFree',
      [
        [makePod('big-files'), usage({ volumes: { v: disk(900, 2) } })],
        [makePod('small-files'), usage({ volumes: { v: disk(1, 900) } })],
      ],
      ['small-files', 'big-files'],
    ],
  ])('%s', (_rule, signal, pods, order) => {
    expect(rank(signal, pods)).toEqual(order);
    expect(rank(signal, [...pods].reverse())).toEqual(order);
  });

  test.each<[DiskLayout, Signal, string]>([
    ['imagefs', 'imagefs.available', 'layer'],
    ['imagefs', 'nodefs.available', 'volume'],
    ['splitImagefs', 'nodefs.available', 'layer'],
    ['shared', 'imagefs.available', 'layer'],
  ])('with layout %s, %s is about what lies there: the %s', (layout, signal, first) => {
    const pods = [
      [makePod('volume'), usage({ volumes: { v: disk(50) } })],
      [makePod('layer'), usage({ containers: [{ name: 'c', rootfs: disk(100), logs: disk(1) }] })],
    ] as const;
    expect(rank(signal, pods, layout)[0]).toBe(first);
  });

  it('requests and limits of ephemeral-storage add up; init containers run alone, sidecars beside the rest', () => {
    const of = (name: string, size: string, always = false): Pod['spec']['containers'][number] => ({
      name,
      resources: { requests: { 'ephemeral-storage': size }, limits: { 'ephemeral-storage': size } },
      ...(always ? { restartPolicy: 'Always' } : {}),
    });
    const pod = makePod('p', {
      resources: { requests: { 'ephemeral-storage': '10Mi' } },
      initContainers: [of('side', '5Mi', true), of('init', '30Mi')],
    });
    expect(ephemeralStorageRequest(pod)).toBe(35 * MI);
    expect(ephemeralStorageLimit(pod)).toBe(35 * MI);
    expect(ephemeralStorageLimit(makePod('q'))).toBeUndefined();
    expect(ephemeralStorageRequest(makePod('r', { resources: { limits: { 'ephemeral-storage': '7Mi' } } }))).toBe(
      7 * MI,
    );
  });
});

describe('the message of an evicted pod', () => {
  const config = {
    evictionSoft: {},
    evictionSoftGracePeriod: {},
    evictionMinimumReclaim: {},
    enforceNodeAllocatable: [],
  };
  const thresholdsOf = (evictionHard: Record<string, string>) => parseThresholds({ ...config, evictionHard });

  test.each<[string, Record<string, string>, Signal, number, PodUsage, string]>([
    [
      'memory, with the container that uses more than it requested',
      { 'memory.available': '100Mi' },
      'memory.available',
      50 * MI,
      usage({ containers: [{ name: 'c', workingSetBytes: 1024 * MI }] }),
      'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ' +
        'Container c was using 1Gi, request is 0, has larger consumption of memory. ',
    ],
    [
      'memory, where the usage of containers is unknown',
      { 'memory.available': '1024Mi' },
      'memory.available',
      51_200,
      usage({ containers: [{ name: 'c' }] }),
      'The node was low on resource: memory. Threshold quantity: 1Gi, available: 50Ki. ',
    ],
    [
      'disk, from a share of the capacity',
      { 'nodefs.available': '10%' },
      'nodefs.available',
      3000,
      usage({ containers: [{ name: 'c', rootfs: disk(2), logs: disk(1) }] }),
      'The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: 3000. ' +
        'Container c was using 3Mi, request is 0, has larger consumption of ephemeral-storage. ',
    ],
    [
      'inodes',
      { 'nodefs.inodesFree': '5k' },
      'nodefs.inodesFree',
      4000,
      usage(),
      'The node was low on resource: inodes. Threshold quantity: 5k, available: 4k. ',
    ],
    [
      'processes',
      { 'pid.available': '100' },
      'pid.available',
      7,
      usage(),
      'The node was low on resource: pids. Threshold quantity: 100, available: 7. ',
    ],
  ])('%s', (_what, hard, signal, available, used, message) => {
    const observations = { [signal]: { available, capacity: 1000 * MI } };
    expect(pressureMessage(signal, makePod('p'), used, thresholdsOf(hard), observations)).toBe(message);
  });

  it('a container within its request is not blamed', () => {
    const pod = makePod('p', { resources: requests('2Gi') });
    const used = usage({ containers: [{ name: 'c', workingSetBytes: 1024 * MI }] });
    expect(pressureMessage('memory.available', pod, used, [], {})).toBe('The node was low on resource: memory. ');
  });

  test.each([
    [0, '0'],
    [999, '999'],
    [12_000, '12k'],
    [12_001, '12001'],
    [5_000_000, '5M'],
  ])('the count %s is printed as %s', (count, text) => {
    expect(formatCount(count)).toBe(text);
  });
});

describe('limits on local storage', () => {
  const emptyDir = (sizeLimit: string, medium?: string): NonNullable<PodShape['volumes']> => [
    { name: 'x', emptyDir: { sizeLimit, ...(medium === undefined ? {} : { medium }) } },
  ];
  const limits: Resources = { limits: { 'ephemeral-storage': '1Mi' } };

  test.each<[string, PodShape, PodUsage, DiskLayout, string | undefined]>([
    [
      'an emptyDir above its sizeLimit',
      { volumes: emptyDir('1Mi') },
      usage({ volumes: { x: disk(2) } }),
      'shared',
      'Usage of EmptyDir volume "x" exceeds the limit "1Mi". ',
    ],
    [
      'an emptyDir at its sizeLimit is fine',
      { volumes: emptyDir('2Mi') },
      usage({ volumes: { x: disk(2) } }),
      'shared',
      undefined,
    ],
    ['a sizeLimit of 0 is none', { volumes: emptyDir('0') }, usage({ volumes: { x: disk(2) } }), 'shared', undefined],
    [
      'the pod as a whole above the sum of its limits',
      { resources: limits },
      usage({ volumes: { y: disk(2) } }),
      'shared',
      'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    ],
    [
      'a container above its own limit in a pod that keeps within the sum',
      {
        resources: limits,
        initContainers: [{ name: 'i', resources: { limits: { 'ephemeral-storage': '9Mi' } } }],
      },
      usage({ containers: [{ name: 'c', rootfs: disk(1), logs: disk(1) }] }),
      'shared',
      'Container c exceeded its local ephemeral storage limit "1Mi". ',
    ],
    [
      'a writable layer on a disk of its own does not count',
      { resources: limits },
      usage({ containers: [{ name: 'c', rootfs: disk(5), logs: disk(1) }] }),
      'imagefs',
      undefined,
    ],
  ])('%s', (_rule, shape, used, layout, message) => {
    expect(localStorageViolation(makePod('p', shape), used, layout)).toBe(message);
  });

  test.each<[string, PodShape, boolean]>([
    ['a pod without limits is not measured', {}, false],
    ['a pod with a limit is', { resources: limits }, true],
    ['a pod with a sized emptyDir is', { volumes: emptyDir('1Mi') }, true],
    ['one in memory is limited by its tmpfs', { volumes: emptyDir('1Mi', 'Memory') }, false],
  ])('%s', (_rule, shape, measured) => {
    expect(hasLocalStorageLimit(makePod('p', shape))).toBe(measured);
  });
});

describe('admission under pressure', () => {
  const MEMORY: PressureCondition[] = ['MemoryPressure'];
  const burstable: PodShape = { resources: requests('1Mi') };
  const key = 'node.kubernetes.io/memory-pressure';
  test.each<[string, PodShape, PressureCondition[], string | undefined]>([
    ['without pressure every pod is taken', {}, [], undefined],
    ['a BestEffort pod is refused under memory pressure', {}, MEMORY, 'The node had condition: [MemoryPressure]. '],
    ['a pod that requested something is taken under memory pressure', burstable, MEMORY, undefined],
    [
      'a BestEffort pod that tolerates the taint is taken',
      { tolerations: [{ key, operator: 'Exists' }] },
      MEMORY,
      undefined,
    ],
    ['one that tolerates everything is taken', { tolerations: [{ operator: 'Exists' }] }, MEMORY, undefined],
    [
      'tolerating another effect does not help',
      { tolerations: [{ key, operator: 'Exists', effect: 'NoExecute' }] },
      MEMORY,
      'The node had condition: [MemoryPressure]. ',
    ],
    [
      'under disk pressure every pod is refused',
      burstable,
      ['DiskPressure'],
      'The node had condition: [DiskPressure]. ',
    ],
    [
      'under several pressures, tolerating that of memory does not help',
      { tolerations: [{ key, operator: 'Exists' }] },
      ['MemoryPressure', 'PIDPressure'],
      'The node had condition: [MemoryPressure PIDPressure]. ',
    ],
    ['a critical pod is always taken', { priority: 2_000_000_000 }, ['DiskPressure'], undefined],
    [
      'a static pod is always taken',
      { annotations: { 'kubernetes.io/config.source': 'file' } },
      ['DiskPressure'],
      undefined,
    ],
  ])('%s', (_rule, shape, conditions, message) => {
    const refusal = admitUnderPressure(makePod('p', shape), conditions);
    expect(refusal).toEqual(message === undefined ? undefined : { reason: 'Evicted', message });
  });
});
