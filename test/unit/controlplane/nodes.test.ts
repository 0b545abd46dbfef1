// The controllers that look after nodes, and after pods of nodes that are gone.

import type { Taint } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../client/types.ts';
import {
  type Eviction,
  nextTaints,
  olderLabels,
  unknownConditions,
} from '../../../controlplane/controllers/node-lifecycle/taints.ts';
import { PodGarbageCollector } from '../../../controlplane/controllers/pod-garbage-collector/pod-garbage-collector.ts';
import { TaintEvictionController } from '../../../controlplane/controllers/taint-eviction/taint-eviction.ts';
import { tolerationMs } from '../../../controlplane/controllers/taint-eviction/toleration-time.ts';
import { apiError, type Write } from '../../support/fake-client.ts';
import { settle } from '../../support/virtual-clock.ts';
import { environment, makeNode, makePod, meta, NOW } from './environment.ts';

describe('nextTaints', () => {
  const keys = (node: Node): string[] | undefined =>
    nextTaints(node, NOW, 'now')?.map(({ key, effect }) => `${key}:${effect}`);
  const notReady = ['node.kubernetes.io/not-ready:NoSchedule', 'node.kubernetes.io/not-ready:NoExecute'];
  const unreachable = ['node.kubernetes.io/unreachable:NoSchedule', 'node.kubernetes.io/unreachable:NoExecute'];

  it.each<[string, Node, string[] | undefined]>([
    ['a ready node needs none', makeNode('n', 'True'), undefined],
    ['a node that is not ready', makeNode('n', 'False'), notReady],
    ['a silent node', makeNode('n', 'Unknown'), unreachable],
    ['a node that has never reported', { metadata: meta('n') }, ['node.kubernetes.io/not-ready:NoSchedule']],
    [
      'a cordoned node',
      makeNode('n', 'True', { unschedulable: true }),
      ['node.kubernetes.io/unschedulable:NoSchedule'],
    ],
    [
      'pressure',
      {
        metadata: meta('n'),
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type: 'DiskPressure', status: 'True' },
          ],
        },
      },
      ['node.kubernetes.io/disk-pressure:NoSchedule'],
    ],
    [
      'a node that is ready again loses ours and keeps the others',
      makeNode('n', 'True', {
        taints: [
          { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
          { key: 'gpu', effect: 'NoSchedule' },
        ],
      }),
      ['gpu:NoSchedule'],
    ],
    [
      'a node that fell silent while not ready changes taints',
      makeNode('n', 'Unknown', { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] }),
      unreachable,
    ],
  ])('%s', (_what, node, expected) => {
    expect(keys(node)).toEqual(expected);
  });

  it.each<[string, Node, Eviction, string[] | undefined]>([
    ['a silent node that has to wait', makeNode('n', 'Unknown'), 'not yet', unreachable.slice(0, 1)],
    [
      'one that was not ready before changes taints without waiting',
      makeNode('n', 'Unknown', { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] }),
      'not yet',
      unreachable,
    ],
    [
      'none is driven out where no node is ready',
      makeNode('n', 'Unknown', {
        taints: [
          { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
          { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' },
          { key: 'gpu', effect: 'NoExecute' },
        ],
      }),
      'never',
      ['node.kubernetes.io/unreachable:NoSchedule', 'gpu:NoExecute'],
    ],
    [
      'of our keys another effect is not ours',
      makeNode('n', 'True', { taints: [{ key: 'node.kubernetes.io/memory-pressure', effect: 'NoExecute' }] }),
      'now',
      undefined,
    ],
  ])('%s', (_what, node, eviction, expected) => {
    expect(nextTaints(node, NOW, eviction)?.map(({ key, effect }) => `${key}:${effect}`)).toEqual(expected);
  });

  it('keeps the time of a taint that stays', () => {
    const taints = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', timeAdded: '2025-01-01T00:00:00Z' }];
    expect(nextTaints(makeNode('n', 'False', { taints }), NOW, 'not yet')).toContainEqual(taints[0]);
  });

  it('a silent node has all its conditions Unknown, with the time of its last heartbeat', () => {
    const conditions = unknownConditions(makeNode('n', 'True'), NOW);
    expect(conditions.map(({ type, status, reason }) => [type, status, reason])).toEqual([
      ['Ready', 'Unknown', 'NodeStatusUnknown'],
      ['MemoryPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['DiskPressure', 'Unknown', 'NodeStatusNeverUpdated'],
      ['PIDPressure', 'Unknown', 'NodeStatusNeverUpdated'],
    ]);
  });

  it('conditions become Unknown in the order that they have in the node', () => {
    const types = ['NetworkUnavailable', 'PIDPressure', 'MemoryPressure', 'Ready'];
    const node = makeNode('n', 'True');
    const conditions = types.map((type) => ({ type, status: 'True' }));
    const unknown = unknownConditions({ ...node, status: { ...node.status, conditions } }, NOW);
    expect(unknown.map(({ type }) => type)).toEqual(['PIDPressure', 'MemoryPressure', 'Ready', 'DiskPressure']);
  });
});

it.each<[string, Record<string, string> | undefined, Record<string, string> | undefined]>([
  ['no labels', undefined, undefined],
  ['older ones alone', { 'beta.kubernetes.io/os': 'linux' }, undefined],
  ['a newer one alone', { 'kubernetes.io/os': 'linux' }, { 'beta.kubernetes.io/os': 'linux' }],
  [
    'one that is right and one that is not',
    {
      'kubernetes.io/os': 'linux',
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'arm64',
      'beta.kubernetes.io/arch': 'amd64',
    },
    { 'beta.kubernetes.io/arch': 'arm64' },
  ],
])('olderLabels: %s', (_what, labels, expected) => {
  const node = makeNode('n', 'True');
  const metadata = { ...node.metadata, ...(labels === undefined ? {} : { labels }) };
  expect(olderLabels({ ...node, metadata })).toEqual(expected);
});

const UNREACHABLE = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
const tolerates = (seconds?: number) => ({
  key: UNREACHABLE.key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});

describe('tolerationMs', () => {
  const gpu = { key: 'gpu', value: 'yes', effect: 'NoExecute' };

  it.each<[string, Pod['spec']['tolerations'], Taint[], number | undefined]>([
    ['no taint', [], [], undefined],
    ['a taint for the scheduler alone', [], [{ key: 'gpu', effect: 'NoSchedule' }], undefined],
    ['not tolerated', [], [gpu], 0],
    ['tolerated for ever', [tolerates()], [UNREACHABLE], undefined],
    ['tolerated for a time', [tolerates(300)], [UNREACHABLE], 300_000],
    ['not at all', [tolerates(0)], [UNREACHABLE], 0],
    ['less than not at all', [tolerates(-1)], [UNREACHABLE], 0],
    ['one of two is not tolerated', [tolerates(300)], [UNREACHABLE, gpu], 0],
    [
      'the shortest of two',
      [tolerates(300), { operator: 'Exists', tolerationSeconds: 20 }],
      [UNREACHABLE, gpu],
      20_000,
    ],
    [
      'for ever, and for a time',
      [tolerates(), { key: 'gpu', operator: 'Exists', tolerationSeconds: 5 }],
      [UNREACHABLE, gpu],
      5_000,
    ],
    ['the first that fits counts', [tolerates(60), tolerates(5)], [UNREACHABLE], 60_000],
    ['another value', [{ key: 'gpu', value: 'no' }], [gpu], 0],
  ])('%s', (_what, tolerations = [], taints, expected) => {
    expect(tolerationMs({ spec: { containers: [], tolerations } }, taints)).toBe(expected);
  });
});

describe('TaintEvictionController', () => {
  function start(tolerationSeconds: number | undefined) {
    const env = environment();
    env.run(new TaintEvictionController(env.context, env.informers));
    env.informers.pods.upsert(makePod('p', { nodeName: 'n', tolerations: [tolerates(tolerationSeconds)] }));
    env.informers.pods.upsert(makePod('elsewhere', { nodeName: 'm' }));
    env.informers.nodes.upsert(makeNode('n', 'Unknown', { taints: [UNREACHABLE] }));
    env.informers.nodes.upsert(makeNode('m', 'True'));
    return env;
  }

  it('deletes a pod when it does not tolerate its node any longer, and says why', async () => {
    const { clock, client, events } = start(300);
    await clock.advance(299_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes).toMatchObject([
      {
        verb: 'patch',
        path: '/api/v1/namespaces/demo/pods/p/status',
        body: { metadata: { uid: 'uid-p' }, status: { conditions: [{ type: 'DisruptionTarget', status: 'True' }] } },
      },
      { verb: 'delete', path: '/api/v1/namespaces/demo/pods/p' },
    ]);
    expect(events).toEqual(['p TaintManagerEviction: Marking for deletion Pod demo/p']);
  });

  it.each([-3_600_000, 3_600_000])('counts the seconds though the wall clock jumps by %i ms', async (jump) => {
    const { clock, client } = start(300);
    await clock.advance(100_000);
    clock.jump(jump);
    await clock.advance(199_000);
    expect(client.writes).toEqual([]);
    await clock.advance(1_000);
    expect(client.writes).toHaveLength(2);
  });

  it('deletes none whose node is back in time', async () => {
    const { clock, client, events, informers } = start(300);
    await clock.advance(200_000);
    informers.nodes.upsert(makeNode('n', 'True'));
    await clock.advance(200_000);
    expect(client.writes).toEqual([]);
    expect(events).toEqual(['p TaintManagerEviction: Cancelling deletion of Pod demo/p']);
  });

  it('deletes none that tolerates the taint for ever, or is being deleted', async () => {
    const { clock, client, informers } = start(undefined);
    const deleted = makePod('q', { nodeName: 'n' });
    informers.pods.upsert({ ...deleted, metadata: { ...deleted.metadata, deletionTimestamp: NOW } });
    await clock.advance(1_000_000);
    expect(client.writes).toEqual([]);
  });

  it('leaves a pod alone that has the name of one that is gone', async () => {
    const { clock, client } = start(1);
    client.failures.push(apiError(409, 'Conflict'));
    await clock.advance(10_000);
    expect(client.writes).toEqual([]);
  });
});

describe('PodGarbageCollector', () => {
  function start(threshold?: number) {
    const env = environment();
    env.run(new PodGarbageCollector(env.context, env.informers, threshold));
    return env;
  }
  const leaving = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: NOW } });
  const deletion = (name: string): Write => ({
    verb: 'delete',
    path: `/api/v1/namespaces/demo/pods/${name}`,
    body: { gracePeriodSeconds: 0, preconditions: { uid: `uid-${name}` } },
  });
  const failing = (name: string, conditions?: readonly object[]): Write => ({
    verb: 'patch',
    path: `/api/v1/namespaces/demo/pods/${name}/status`,
    type: 'strategic',
    body: {
      metadata: { uid: `uid-${name}` },
      status: { phase: 'Failed', ...(conditions === undefined ? {} : { conditions }) },
    },
  });

  it('deletes pods of a node that is gone after 40 s', async () => {
    const { clock, client, informers } = start();
    informers.pods.upsert(makePod('p', { nodeName: 'gone' }));
    informers.nodes.replace([makeNode('n', 'True')]);
    await clock.advance(39_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
      lastTransitionTime: '2026-01-01T00:00:40Z',
    };
    expect(client.writes).toEqual([failing('p', [condition]), deletion('p')]);
  });

  it('deletes pods on their way out of a node that is out of service, once it is not ready', async () => {
    const { client, informers } = start();
    const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
    informers.nodes.replace([makeNode('n', 'True', { taints: [taint] }), makeNode('other', 'Unknown')]);
    informers.pods.replace([
      makePod('stays', { nodeName: 'n' }),
      leaving(makePod('p', { nodeName: 'n' })),
      leaving(makePod('q', { nodeName: 'other' })),
    ]);
    await settle();
    expect(client.writes).toEqual([]);
    informers.nodes.upsert(makeNode('n', 'Unknown', { taints: [taint] }));
    await settle();
    expect(client.writes).toEqual([failing('p'), deletion('p')]);
    informers.pods.upsert(leaving(makePod('stays', { nodeName: 'n' })));
    await settle();
    expect(client.writes.slice(2)).toEqual([failing('stays'), deletion('stays')]);
  });

  it('deletes pods on their way out that have no node', async () => {
    const { clock, client, informers } = start();
    informers.nodes.replace([]);
    informers.pods.replace([makePod('waits'), leaving(makePod('p'))]);
    await clock.advance(20_000);
    expect(client.writes).toEqual([failing('p'), deletion('p')]);
  });

  it('of pods that have ended keeps so many: evicted ones go first, then the oldest', async () => {
    const { clock, client, informers } = start(2);
    informers.nodes.replace([makeNode('n', 'True')]);
    const ended = (name: string, minute: number, status: Pod['status'] = { phase: 'Succeeded' }): Pod => {
      const pod = makePod(name, { nodeName: 'n' }, { status });
      return { ...pod, metadata: { ...pod.metadata, creationTimestamp: `2026-01-01T00:0${minute}:00Z` } };
    };
    informers.pods.replace([
      ended('a', 3),
      ended('b', 1),
      ended('c', 2),
      ended('evicted', 5, { phase: 'Failed', reason: 'Evicted' }),
      makePod('runs', { nodeName: 'n' }),
    ]);
    await clock.advance(20_000);
    expect(client.writes).toEqual([deletion('evicted'), deletion('b')]);
  });

  it('spares them when the node comes back, or exists on the server after all', async () => {
    const { clock, client, informers } = start();
    informers.nodes.replace([]);
    informers.pods.upsert(makePod('p', { nodeName: 'n' }));
    informers.pods.upsert(makePod('q', { nodeName: 'm' }));
    await clock.advance(20_000);
    informers.nodes.upsert(makeNode('n', 'True'));
    client.objects.set('/api/v1/nodes/m', makeNode('m', 'True'));
    await clock.advance(60_000);
    expect(client.writes).toEqual([]);
  });
});
