// The node lifecycle controller: when a node is silent for too long, and how fast nodes lose their pods.

import type { Taint } from 'kubernetes-types/core/v1';
import { describe, expect, it } from 'vitest';
import type { Lease, Node, Pod } from '../../../../client/types.ts';
import {
  NodeLifecycleController,
  type NodeLifecycleSettings,
} from '../../../../controlplane/controllers/node-lifecycle/node-lifecycle.ts';
import {
  disruptionOf,
  EVICTION_DEFAULTS,
  fullBucket,
  tokenInMs,
  withoutToken,
  withRate,
  zoneOf,
  zoneState,
} from '../../../../controlplane/controllers/node-lifecycle/zones.ts';
import { monotonicMs } from '../../../../lib/clock.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makeNode, makePod, meta, NOW } from '../environment.ts';

const ZONE = 'topology.kubernetes.io/zone';

function inZone(name: string, ready: string, zone?: string, more: Record<string, string> = {}): Node {
  const node = makeNode(name, ready);
  const labels = { ...more, ...(zone === undefined ? {} : { [ZONE]: zone }) };
  return { ...node, metadata: { ...node.metadata, labels } };
}

describe('zones', () => {
  it.each<[Record<string, string>, string]>([
    [{}, ''],
    [{ [ZONE]: 'a' }, ':a'],
    [{ [ZONE]: 'a', 'topology.kubernetes.io/region': 'eu' }, 'eu:a'],
    [{ [ZONE]: 'a', 'failure-domain.beta.kubernetes.io/zone': 'b' }, ':b'],
  ])('%j is the zone "%s"', (labels, zone) => {
    expect(zoneOf(inZone('n', 'True', undefined, labels))).toBe(zone);
  });

  it.each<[number, number, string]>([
    [0, 0, 'Normal'],
    [1, 0, 'Normal'],
    [0, 1, 'FullDisruption'],
    [1, 2, 'Normal'],
    [3, 3, 'Normal'],
    [2, 3, 'PartialDisruption'],
    [45, 55, 'PartialDisruption'],
    [46, 54, 'Normal'],
  ])('%d ready and %d not: %s', (ready, notReady, state) => {
    expect(zoneState(ready, notReady, EVICTION_DEFAULTS.unhealthyZoneThreshold)).toBe(state);
  });

  const nodes = (zone: string, ready: number, notReady: number): Node[] => [
    ...Array.from({ length: ready }, (_, index) => inZone(`${zone}-r${index}`, 'True', zone)),
    ...Array.from({ length: notReady }, (_, index) => inZone(`${zone}-n${index}`, 'Unknown', zone)),
  ];

  it.each<[string, Node[], Record<string, number>, boolean]>([
    ['no nodes', [], {}, false],
    ['all ready', nodes('a', 3, 0), { ':a': 0.1 }, false],
    ['one of two is silent', nodes('a', 1, 1), { ':a': 0.1 }, false],
    ['the only node is silent', nodes('a', 0, 1), { ':a': 0 }, true],
    ['no node of any zone is ready', [...nodes('a', 0, 2), ...nodes('b', 0, 1)], { ':a': 0, ':b': 0 }, true],
    [
      'a whole zone is silent, another is not',
      [...nodes('a', 0, 2), ...nodes('b', 1, 0)],
      { ':a': 0.1, ':b': 0.1 },
      false,
    ],
    ['most of a small zone', [...nodes('a', 2, 8), ...nodes('b', 1, 0)], { ':a': 0, ':b': 0.1 }, false],
    ['most of a large zone', nodes('a', 11, 40), { ':a': 0.01 }, false],
    [
      'a node that does not count',
      [inZone('x', 'Unknown', 'a', { 'node.kubernetes.io/exclude-disruption': '' })],
      { ':a': 0.1 },
      false,
    ],
  ])('rates: %s', (_what, all, rates, isTotal) => {
    const disruption = disruptionOf(all, EVICTION_DEFAULTS);
    expect([Object.fromEntries(disruption.rates), disruption.isTotal]).toEqual([rates, isTotal]);
  });

  it('a bucket has one token, and the next when its rate has made one', () => {
    const at = (ms: number) => monotonicMs(ms);
    const empty = withoutToken(fullBucket(0.1, at(0)), at(100));
    expect(tokenInMs(fullBucket(0.1, at(0)), at(0))).toBe(0);
    expect(tokenInMs(empty, at(100))).toBe(10_000);
    expect(tokenInMs(empty, at(4_100))).toBe(6_000);
    expect(tokenInMs(empty, at(99_000))).toBe(0);
    expect(tokenInMs(withRate(empty, 0, at(100)), at(99_000))).toBe(undefined);
    // A bucket that never gives a token has none when it begins to.
    expect(tokenInMs(withRate(withRate(empty, 0, at(99_000)), 0.1, at(99_000)), at(99_000))).toBe(10_000);
    expect(tokenInMs(withRate(fullBucket(0.1, at(0)), 0.01, at(0)), at(0))).toBe(0);
  });
});

const lease = (name: string, renewTime: string): Lease => ({
  metadata: meta(name, 'kube-node-lease'),
  spec: { renewTime },
});
const readyOf = (node: Node | undefined): string | undefined =>
  node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
const taints = (body: unknown): readonly Taint[] => {
  return (body as { spec?: { taints?: Taint[] | null } }).spec?.taints ?? [];
};

describe('NodeLifecycleController', () => {
  function start(settings: Partial<NodeLifecycleSettings> = {}) {
    const env = environment();
    env.run(new NodeLifecycleController(env.context, env.informers, settings));
    env.informers.nodeLeases.upsert(lease('n', '1'));
    env.informers.nodes.upsert(makeNode('n', 'True'));
    return env;
  }

  /** The API server as far as nodes go: what is written comes back as a change. */
  function cluster(all: readonly Node[]) {
    const env = environment();
    const current = new Map(all.map((node) => [node.metadata.name, node]));
    const executed: [string, number][] = [];
    const put = (node: Node): void => {
      const metadata = { ...node.metadata, resourceVersion: meta('x').resourceVersion };
      current.set(node.metadata.name, { ...node, metadata });
      env.informers.nodes.upsert({ ...node, metadata });
    };
    env.client.onWrite = ({ path, body }) => {
      const node = current.get(path.split('/')[4] ?? '');
      if (node === undefined) return body;
      const { status } = body as Partial<Node>;
      if (status !== undefined) put({ ...node, status });
      else {
        const now = taints(body);
        const had = (node.spec?.taints ?? []).some(({ effect }) => effect === 'NoExecute');
        const has = now.some(({ effect }) => effect === 'NoExecute');
        if (has && !had) executed.push([node.metadata.name, env.clock.monotonic()]);
        if (!has && had) executed.push([`-${node.metadata.name}`, env.clock.monotonic()]);
        put({ ...node, spec: { ...node.spec, taints: [...now] } });
      }
      return body;
    };
    const ready = (name: string, status: string): void => {
      const node = current.get(name);
      if (node !== undefined) put({ ...node, status: { conditions: [{ type: 'Ready', status }] } });
    };
    /** All at once. */
    const replace = (nodes: readonly Node[]): void => {
      const { resourceVersion } = meta('x');
      const stored = nodes.map((node) => ({ ...node, metadata: { ...node.metadata, resourceVersion } }));
      for (const node of stored) current.set(node.metadata.name, node);
      env.informers.nodes.replace(stored);
    };
    replace(all);
    return { ...env, executed, ready, replace };
  }

  it('declares a node Unknown 50 s after its last renewal, not earlier', async () => {
    const { clock, client, events, informers } = start();
    await clock.advance(30_000);
    informers.nodeLeases.upsert(lease('n', '2'));
    await clock.advance(49_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes).toMatchObject([
      {
        verb: 'patch',
        path: '/api/v1/nodes/n/status',
        type: 'strategic',
        body: {
          status: {
            conditions: [
              { type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' },
              {},
              {},
              {},
            ],
          },
        },
      },
    ]);
    expect(events).toEqual([
      'n RegisteredNode: Node n event: Registered Node n in Controller',
      'n NodeNotReady: Node n status is now: NodeNotReady',
    ]);
  });

  it('evicts nothing for a silence of the API server itself: each node has its grace period again', async () => {
    const { clock, executed, context, informers, client, replace, run, logs } = cluster([]);
    run(new NodeLifecycleController(context, informers));
    replace([makeNode('n', 'True'), makeNode('m', 'True')]);
    const put = client.onWrite;
    let answers = Promise.resolve();
    const silentFor = (ms: number): void => {
      answers = clock.sleep(ms);
    };
    client.onWrite = async (write) => {
      await answers;
      return put(write);
    };
    await clock.advance(40_000);
    informers.nodeLeases.upsert(lease('m', '1'));
    await clock.advance(9_999);
    silentFor(30_000);
    await clock.advance(30_001);
    // n was declared Unknown by the request that waited; its lease comes later than that of m.
    expect(logs.filter((line) => line.includes('silent'))).toHaveLength(1);
    expect(readyOf(informers.nodes.get('n'))).toBe('Unknown');
    await clock.advance(49_000);
    informers.nodeLeases.upsert(lease('m', '2'));
    expect(executed).toEqual([]);
    // It has given no sign in the time that it was given.
    await clock.advance(1_000);
    expect(executed.map(([name]) => name)).toEqual(['n']);
    expect(readyOf(informers.nodes.get('m'))).toBe('True');
  });

  it('gives a node that has not reported yet its own time', async () => {
    const env = environment();
    env.run(new NodeLifecycleController(env.context, env.informers));
    env.informers.nodes.upsert({
      metadata: meta('n'),
      spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
    });
    await env.clock.advance(59_999);
    expect(env.client.writes).toEqual([]);
    await env.clock.advance(1);
    expect(env.client.writes).toMatchObject([
      {
        path: '/api/v1/nodes/n/status',
        body: { status: { conditions: [{ reason: 'NodeStatusNeverUpdated' }, {}, {}, {}] } },
      },
    ]);
    expect(env.events).toEqual(['n RegisteredNode: Node n event: Registered Node n in Controller']);
  });

  it('says when a node has gone', async () => {
    const { events, informers } = start();
    await settle();
    const node = informers.nodes.get('n');
    if (node !== undefined) informers.nodes.remove(node);
    await settle();
    expect(events.at(-1)).toBe('n RemovingNode: Node n event: Removing Node n from Controller');
  });

  const status = (value: string) => ({
    conditions: [
      { type: 'Initialized', status: 'True' },
      { type: 'Ready', status: value },
    ],
  });
  const pod = (name: string, nodeName: string, value: string): Pod => {
    return makePod(name, { nodeName }, { status: status(value) });
  };
  const types = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];
  const unknown = (name: string): Node => {
    const conditions = types.map((type) => ({ type, status: 'Unknown' }));
    return { ...makeNode(name, 'Unknown'), status: { conditions } };
  };

  it('marks the Ready pods of a node that becomes Unknown, once, and again after a failure', async () => {
    const { clock, client, events, informers } = start();
    for (const each of [pod('here', 'n', 'True'), pod('waits', 'n', 'False'), pod('elsewhere', 'other', 'True')]) {
      informers.pods.upsert(each);
    }
    client.onWrite = ({ path }) => {
      if (path === '/api/v1/nodes/n/status') informers.nodes.upsert(unknown('n'));
      return {};
    };
    client.failures.push(undefined, apiError(500, 'InternalError'));
    await clock.advance(50_000);
    await clock.advance(5_000);
    const marks = client.writes.filter(({ path }) => path.includes('/pods/'));
    expect(marks).toMatchObject([
      {
        path: '/api/v1/namespaces/demo/pods/here/status',
        type: 'strategic',
        body: { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      },
    ]);
    expect(events.slice(1)).toEqual([
      'n NodeNotReady: Node n status is now: NodeNotReady',
      'here NodeNotReady: Node is not ready',
    ]);
  });

  it('marks a Ready pod that it first sees on a node that is not ready', async () => {
    const { client, events, informers } = start();
    informers.nodes.upsert(unknown('n'));
    await settle();
    client.writes.length = 0;
    informers.pods.upsert(pod('late', 'n', 'True'));
    informers.pods.upsert(pod('waits', 'n', 'False'));
    await settle();
    expect(client.writes.map(({ path }) => path)).toEqual(['/api/v1/namespaces/demo/pods/late/status']);
    expect(events.at(-1)).toBe('late NodeNotReady: Node is not ready');
  });

  it('a lease that is written again without being renewed is no sign of life', async () => {
    const { clock, client, informers } = start();
    await clock.advance(20_000);
    informers.nodeLeases.upsert(lease('n', '1'));
    await clock.advance(30_000);
    expect(client.writes.length).toBe(1);
  });

  it('taints by condition, guarded by the version of the node', async () => {
    const { client, informers } = start();
    informers.nodes.upsert(makeNode('other', 'True'));
    await settle();
    const node = makeNode('n', 'False');
    informers.nodes.upsert(node);
    await settle();
    expect(client.writes).toMatchObject([
      {
        path: '/api/v1/nodes/n',
        type: 'merge',
        body: {
          metadata: { resourceVersion: node.metadata.resourceVersion },
          spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
        },
      },
    ]);
    informers.nodes.upsert({
      ...makeNode('n', 'False', { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] }),
    });
    await settle();
    expect(taints(client.writes.at(-1)?.body)).toMatchObject([
      { effect: 'NoSchedule' },
      { effect: 'NoExecute', timeAdded: NOW },
    ]);
  });

  it('drives out the pods of one node of a zone each 10 s, and of each zone for itself', async () => {
    const all = ['a', 'b'].flatMap((zone) => ['1', '2', '3'].map((name) => inZone(`${zone}${name}`, 'True', zone)));
    const { executed, ready, context, informers, run, clock } = cluster(all);
    run(new NodeLifecycleController(context, informers, { nodeMonitorGraceMs: 1_000_000 }));
    await settle();
    for (const name of ['a1', 'a2', 'b1', 'b2']) ready(name, 'False');
    await clock.advance(9_000);
    expect(executed.map(([name]) => name)).toEqual(['a1', 'b1']);
    // One that is Ready again in time is not tainted, and takes no token.
    ready('b2', 'True');
    await clock.advance(1_000);
    expect(executed.slice(2)).toEqual([['a2', 10_000]]);
    ready('a1', 'True');
    ready('b3', 'False');
    await clock.advance(60_000);
    expect(executed.slice(3)).toEqual([
      ['-a1', 10_000],
      ['b3', 10_000],
    ]);
  });

  it('stops when no node is ready, takes back what it did, and gives each node its time again afterwards', async () => {
    const { executed, ready, context, informers, run, clock, logs } = cluster(
      ['x', 'y'].map((name) => inZone(name, 'True')),
    );
    run(new NodeLifecycleController(context, informers, { nodeMonitorGraceMs: 1_000_000 }));
    await settle();
    ready('x', 'False');
    await clock.advance(100);
    ready('y', 'False');
    await clock.advance(100_000);
    expect(executed).toEqual([
      ['x', 0],
      ['-x', 100],
    ]);
    expect(informers.nodes.list().flatMap(({ spec }) => spec?.taints ?? [])).toMatchObject([
      { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
    ]);
    ready('y', 'True');
    // The bucket was empty when the evictions stopped.
    await clock.advance(9_999);
    expect(executed.length).toBe(2);
    await clock.advance(1);
    expect(executed.slice(2).map(([name]) => name)).toEqual(['x']);
    expect(logs.length).toBe(2);
  });

  it('in a zone that is mostly gone no node is tainted, or slowly where it is large', async () => {
    for (const [threshold, expected] of [
      [50, []],
      [4, ['n1', 'n2']],
    ] as const) {
      const all = ['n1', 'n2', 'n3', 'n4', 'n5'].map((name) => inZone(name, 'True'));
      const { executed, replace, context, informers, run, clock } = cluster(all);
      const settings = {
        nodeMonitorGraceMs: 1_000_000,
        largeClusterSizeThreshold: threshold,
        nodeEvictionRate: 0.0001,
      };
      run(new NodeLifecycleController(context, informers, { ...settings, secondaryNodeEvictionRate: 0.01 }));
      const isSilent = ({ metadata }: Node): boolean => metadata.name < 'n4';
      replace(
        all.map((node) => ({
          ...node,
          status: { conditions: [{ type: 'Ready', status: isSilent(node) ? 'False' : 'True' }] },
        })),
      );
      await clock.advance(150_000);
      expect(executed.map(([name]) => name)).toEqual(expected);
    }
  });

  it('after a conflict the node is tainted by its newer state, without waiting for another turn', async () => {
    const { executed, ready, context, informers, run, clock, client } = cluster(
      ['x', 'y'].map((name) => inZone(name, 'True')),
    );
    run(new NodeLifecycleController(context, informers, { nodeMonitorGraceMs: 1_000_000 }));
    await settle();
    client.failures.push(undefined, apiError(409, 'Conflict'));
    ready('x', 'False');
    await clock.advance(10);
    expect(executed).toEqual([]);
    ready('x', 'False');
    await clock.advance(10);
    expect(executed).toEqual([['x', 10]]);
  });

  it('watches a node anew after it has come back', async () => {
    const { clock, client, informers } = start();
    await clock.advance(50_000);
    const beat = (at: string): Node => ({
      ...makeNode('n', 'True'),
      status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: at }] },
    });
    informers.nodes.upsert(beat('later'));
    await settle();
    client.writes.length = 0;
    await clock.advance(49_999);
    expect(client.writes).toEqual([]);
    await clock.advance(1);
    expect(client.writes.length).toBe(1);
  });
});
