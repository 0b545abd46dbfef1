import { describe, expect, it } from 'vitest';
import { humanDuration } from '../../../../apiserver/kinds/columns.ts';
import { NOW, object, row } from './support.ts';

const pods = row('pods');
type Fields = Record<string, unknown>;

function cells(spec: Fields, status: Fields, metadata: Fields = {}): unknown[] {
  const pod = object(pods, {
    metadata: { creationTimestamp: new Date(NOW - 65_000).toISOString(), ...metadata },
    spec: { containers: [{ name: 'web' }], ...spec },
    status,
  });
  return [...(pods.strategy.table?.row(pod, NOW) ?? [])];
}

const running = { name: 'web', ready: true, restartCount: 0, state: { running: {} } };
const finished = (secondsAgo: number): Fields => ({
  terminated: { exitCode: 1, finishedAt: new Date(NOW - secondsAgo * 1000).toISOString() },
});
const ready = [
  { type: 'Ready', status: 'True' },
  { type: 'Initialized', status: 'True' },
];

describe('READY, STATUS and RESTARTS', () => {
  it.each<[string, Fields, Fields, [string, string, string]]>([
    ['a pod nobody has seen', {}, { phase: 'Pending' }, ['0/1', 'Pending', '0']],
    [
      'a running pod',
      {},
      { phase: 'Running', conditions: ready, containerStatuses: [running] },
      ['1/1', 'Running', '0'],
    ],
    [
      'a pod being made',
      {},
      { phase: 'Pending', containerStatuses: [{ name: 'web', state: { waiting: { reason: 'ContainerCreating' } } }] },
      ['0/1', 'ContainerCreating', '0'],
    ],
    [
      'a pull that failed',
      {},
      { phase: 'Pending', containerStatuses: [{ name: 'web', state: { waiting: { reason: 'ErrImagePull' } } }] },
      ['0/1', 'ErrImagePull', '0'],
    ],
    [
      'a crash loop',
      {},
      {
        phase: 'Running',
        containerStatuses: [
          { name: 'web', restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: finished(30) },
        ],
      },
      ['0/1', 'CrashLoopBackOff', '3 (30s ago)'],
    ],
    [
      'a restart long ago',
      {},
      {
        phase: 'Running',
        conditions: ready,
        containerStatuses: [{ ...running, restartCount: 1, lastState: finished(3) }],
      },
      ['1/1', 'Running', '1 (3s ago)'],
    ],
    [
      'a job that is done',
      {},
      {
        phase: 'Succeeded',
        containerStatuses: [{ name: 'web', state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
      },
      ['0/1', 'Completed', '0'],
    ],
    [
      'a job that failed',
      {},
      {
        phase: 'Failed',
        containerStatuses: [{ name: 'web', state: { terminated: { exitCode: 1, reason: 'Error' } } }],
      },
      ['0/1', 'Error', '0'],
    ],
    [
      'an exit without a reason',
      {},
      { phase: 'Failed', containerStatuses: [{ name: 'web', state: { terminated: { exitCode: 7 } } }] },
      ['0/1', 'ExitCode:7', '0'],
    ],
    [
      'a death by signal',
      {},
      { phase: 'Failed', containerStatuses: [{ name: 'web', state: { terminated: { exitCode: 137, signal: 9 } } }] },
      ['0/1', 'Signal:9', '0'],
    ],
    ['an evicted pod', {}, { phase: 'Failed', reason: 'Evicted' }, ['0/1', 'Evicted', '0']],
    [
      'one of two containers done',
      { containers: [{ name: 'web' }, { name: 'b' }] },
      {
        phase: 'Running',
        containerStatuses: [{ name: 'b', state: { terminated: { exitCode: 0, reason: 'Completed' } } }, running],
      },
      ['1/2', 'NotReady', '0'],
    ],
    [
      'the first of two init containers',
      { initContainers: [{ name: 'a' }, { name: 'b' }] },
      {
        phase: 'Pending',
        initContainerStatuses: [
          { name: 'a', state: { running: {} } },
          { name: 'b', state: { waiting: { reason: 'PodInitializing' } } },
        ],
      },
      ['0/1', 'Init:0/2', '0'],
    ],
    [
      'the second of two init containers',
      { initContainers: [{ name: 'a' }, { name: 'b' }] },
      {
        phase: 'Pending',
        initContainerStatuses: [
          { name: 'a', state: { terminated: { exitCode: 0 } } },
          { name: 'b', state: { running: {} } },
        ],
      },
      ['0/1', 'Init:1/2', '0'],
    ],
    [
      'an init container that failed',
      { initContainers: [{ name: 'a' }] },
      {
        phase: 'Pending',
        initContainerStatuses: [
          {
            name: 'a',
            restartCount: 2,
            lastState: finished(10),
            state: { terminated: { exitCode: 1, reason: 'Error' } },
          },
        ],
      },
      ['0/1', 'Init:Error', '2 (10s ago)'],
    ],
    [
      'an init container in a crash loop',
      { initContainers: [{ name: 'a' }] },
      {
        phase: 'Pending',
        initContainerStatuses: [
          { name: 'a', restartCount: 2, lastState: finished(10), state: { waiting: { reason: 'CrashLoopBackOff' } } },
        ],
      },
      ['0/1', 'Init:CrashLoopBackOff', '2 (10s ago)'],
    ],
    [
      'a pod with a sidecar',
      { initContainers: [{ name: 'side', restartPolicy: 'Always' }] },
      {
        phase: 'Running',
        conditions: ready,
        initContainerStatuses: [
          { name: 'side', started: true, ready: true, restartCount: 1, lastState: finished(5), state: { running: {} } },
        ],
        containerStatuses: [running],
      },
      ['2/2', 'Running', '1 (5s ago)'],
    ],
    [
      'a gated pod',
      {},
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
      ['0/1', 'SchedulingGated', '0'],
    ],
  ])('%s', (_name, spec, status, expected) => {
    expect(cells(spec, status).slice(1, 4)).toEqual(expected);
  });

  it('a pod that is going is Terminating, unless its node is lost or it has ended', () => {
    const gone = { deletionTimestamp: '2025-01-01T00:00:00Z' };
    expect(cells({}, { phase: 'Running', containerStatuses: [running] }, gone)[2]).toBe('Terminating');
    expect(cells({}, { phase: 'Running', reason: 'NodeLost' }, gone)[2]).toBe('Unknown');
    expect(cells({}, { phase: 'Succeeded' }, gone)[2]).toBe('Succeeded');
  });
});

it('the wide columns show address, node and readiness gates', () => {
  const row = cells(
    { nodeName: 'n1', readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] },
    { podIPs: [{ ip: '10.1.2.3' }], nominatedNodeName: 'n2', conditions: [{ type: 'a', status: 'True' }] },
  );
  expect(row.slice(4)).toEqual(['65s', '10.1.2.3', 'n1', 'n2', '1/2']);
  expect(cells({}, {}).slice(5)).toEqual(['<none>', '<none>', '<none>', '<none>']);
});

describe('ages have the two largest units', () => {
  const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
  it.each([
    [-5 * second, '<invalid>'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [3 * minute + 20 * second, '3m20s'],
    [10 * minute + 20 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [3 * hour + 5 * minute, '3h5m'],
    [8 * hour + 5 * minute, '8h'],
    [47 * hour, '47h'],
    [2 * day + 4 * hour, '2d4h'],
    [8 * day + 4 * hour, '8d'],
    [729 * day, '729d'],
    [730 * day, '2y'],
    [800 * day, '2y70d'],
    [3000 * day, '8y'],
  ])('%d ms is %s', (ms, shown) => {
    expect(humanDuration(ms)).toBe(shown);
  });
});
