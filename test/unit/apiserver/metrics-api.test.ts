import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { nanoQuantity, nodemetrics, podmetrics } from '../../../apiserver/kinds/metrics.ts';
import type { KubeObject } from '../../../apiserver/kinds/resource.ts';
import { MetricsCollector } from '../../../apiserver/metrics-api/collector.ts';
import { type Point, parseResourceMetrics } from '../../../apiserver/metrics-api/resource-text.ts';
import { nextReadings, usageOf } from '../../../apiserver/metrics-api/usage.ts';
import { epochMs } from '../../../lib/clock.ts';
import { ManualClock } from '../agent/volumes/support.ts';

/** A page of a kubelet; `cpu` in seconds, times in ms. */
function page(at: number, cpu: number, more = ''): string {
  return [
    '# TYPE container_cpu_usage_seconds_total counter',
    `container_cpu_usage_seconds_total{container="c",namespace="demo",pod="web"} ${cpu} ${at}`,
    `container_memory_working_set_bytes{container="c",namespace="demo",pod="web"} 2.097152e+06 ${at}`,
    'container_start_time_seconds{container="c",namespace="demo",pod="web"} 1.6e+09',
    `node_cpu_usage_seconds_total ${cpu * 2} ${at}`,
    `node_memory_working_set_bytes 4096 ${at}`,
    `pod_cpu_usage_seconds_total{namespace="demo",pod="web"} 99 ${at}`,
    'resource_scrape_error 0',
    more,
    '',
  ].join('\n');
}

describe('a kubelet’s page', () => {
  test('node and containers, with their times', () => {
    const { node, pods } = parseResourceMetrics(page(1_700_000_000_123, 1.5));
    const at = epochMs(1_700_000_000_123);
    expect(node).toEqual({ at, startedAt: undefined, cpu: 3, memory: 4096 });
    expect([...pods]).toEqual([
      [
        'demo/web',
        {
          namespace: 'demo',
          name: 'web',
          containers: new Map([['c', { at, startedAt: epochMs(1.6e12), cpu: 1.5, memory: 2_097_152 }]]),
        },
      ],
    ]);
  });

  test.each([
    ['a container without memory', 'container_cpu_usage_seconds_total{container="d",namespace="demo",pod="web"} 1 5'],
    [
      'a container that has used nothing yet',
      'container_cpu_usage_seconds_total{container="d",namespace="demo",pod="web"} 0 5\n' +
        'container_memory_working_set_bytes{container="d",namespace="demo",pod="web"} 7 5',
    ],
  ])('%s: its pod is left out', (_title, more) => {
    expect(parseResourceMetrics(page(5, 1, more)).pods.size).toBe(0);
  });

  test('what is in no known form is passed over', () => {
    const { node, pods } = parseResourceMetrics('node_cpu_usage_seconds_total nothing\ncontainer_cpu{ 1\n\u0000\n');
    expect(node).toBeUndefined();
    expect(pods.size).toBe(0);
  });
});

describe('use from two readings', () => {
  const point = (at: number, cpu: number, startedAt?: number): Point => ({
    at: epochMs(at),
    startedAt: startedAt === undefined ? undefined : epochMs(startedAt),
    cpu,
    memory: 10,
  });
  const PERIOD = 15_000;

  test.each([
    ['one alone', [point(100_000, 5)], undefined],
    ['two', [point(100_000, 5), point(115_000, 12.5)], { nanoCores: 500_000_000, windowMs: 15_000 }],
    ['the same once more', [point(100_000, 5), point(115_000, 12.5), point(115_000, 12.5)], { nanoCores: 500_000_000 }],
    ['a counter that went back', [point(100_000, 5), point(115_000, 4)], undefined],
    ['another instance', [point(100_000, 5, 0), point(115_000, 1, 114_000)], undefined],
    // Compared with its own start, where that is 10 s ago or more.
    ['a young container', [point(112_000, 6, 100_000)], { nanoCores: 500_000_000, windowMs: 12_000 }],
    ['one that is too young', [point(105_000, 6, 100_000)], undefined],
  ])('%s', (_title, points, expected) => {
    let readings = nextReadings(undefined, points[0] as Point, PERIOD);
    for (const next of points.slice(1)) readings = nextReadings(readings, next, PERIOD);
    const usage = usageOf(readings);
    if (expected === undefined) expect(usage).toBeUndefined();
    else expect(usage).toMatchObject(expected);
  });
});

test.each([
  [0, '0'],
  [1, '1n'],
  [1_500, '1500n'],
  [2_000, '2u'],
  [250_000_000, '250m'],
  [2_000_000_000, '2'],
])('%s billionths of a core are %s', (nanoCores, quantity) => {
  expect(nanoQuantity(nanoCores)).toBe(quantity);
});

test('tables: a pod uses what its containers use together', () => {
  const object = {
    apiVersion: 'metrics.k8s.io/v1beta1',
    metadata: { name: 'web' },
    window: '15.2s',
  };
  const cells = (row: typeof podmetrics, more: object) =>
    row.strategy.table?.row({ ...object, kind: row.kind, ...more } as KubeObject, epochMs(0));
  expect(cells(nodemetrics, { usage: { cpu: '3m', memory: '1Ki' } })).toEqual(['web', '3m', '1Ki', '15.2s']);
  const containers = [{ usage: { cpu: '1500n', memory: '1Ki' } }, { usage: { cpu: '998500n', memory: '3Ki' } }];
  expect(cells(podmetrics, { containers })).toEqual(['web', '1m', '4Ki', '15.2s']);
});

function node(name: string): KubeObject {
  const addresses = [{ type: 'InternalIP', address: `10.0.0.${name.slice(1)}` }];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { node: name } }, status };
}

function runningPod(name: string, nodeName: string, phase = 'Running'): KubeObject {
  const metadata = { name, namespace: 'demo', labels: { app: name } };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName }, status: { phase } };
}

/** A collector over two nodes, of which the second does not answer. */
function collector(pods: readonly KubeObject[] = [runningPod('web', 'n1')]) {
  const clock = new ManualClock();
  const state = { requests: 0, cpu: 1, hangs: false };
  const nodes = [node('n1'), node('n2')];
  const failures: string[] = [];
  const of = (plural: string) => (plural === 'nodes' ? nodes : pods);
  const subject = new MetricsCollector({
    lookup: {
      get: () => undefined,
      list: (_group, plural) => [...of(plural)],
      each: (_group, plural) => of(plural),
      having: () => [],
    },
    kubelets: {
      request: async ({ host }) => {
        state.requests++;
        if (host === '10.0.0.2' && state.hangs) return await new Promise(() => undefined);
        if (host === '10.0.0.2') throw new Error('connection refused');
        state.cpu += 0.25;
        const text = page(clock.now(), state.cpu);
        return Object.assign(Readable.from([Buffer.from(text)]), { statusCode: 200 }) as never;
      },
    },
    clock,
    log: (line) => failures.push(line),
  });
  /** Time goes on until the first two readings are there. */
  const begin = async (): Promise<void> => {
    const wanted = subject.requested();
    while (clock.pending > 0 && state.requests < 2) await new Promise(setImmediate);
    const done = wanted.then(() => true);
    while (!(await Promise.race([done, new Promise((resolve) => setImmediate(() => resolve(false)))]))) {
      if (clock.pending > 0) clock.advance(1_000);
    }
  };
  return { subject, clock, state, failures, begin };
}

describe('the collector', () => {
  test('reads nothing until someone wants metrics, and then twice', async () => {
    const { subject, state, failures, begin } = collector();
    expect(state.requests).toBe(0);
    expect(subject.nodes()).toEqual([]);
    await begin();
    expect(state.requests).toBe(4);
    expect(subject.nodes()).toMatchObject([
      {
        kind: 'NodeMetrics',
        apiVersion: 'metrics.k8s.io/v1beta1',
        metadata: { name: 'n1', labels: { node: 'n1' } },
        window: '1s',
        usage: { cpu: '500m', memory: '4Ki' },
      },
    ]);
    expect(subject.pods('demo')).toMatchObject([
      {
        kind: 'PodMetrics',
        metadata: { name: 'web', namespace: 'demo', labels: { app: 'web' } },
        window: '1s',
        containers: [{ name: 'c', usage: { cpu: '250m', memory: '2Mi' } }],
      },
    ]);
    expect(failures).toEqual([
      'metrics.k8s.io: Failed to scrape node n2: connection refused',
      'metrics.k8s.io: Failed to scrape node n2: connection refused',
    ]);
    subject.stop();
  });

  test('a node that never answers holds up no other', async () => {
    const { subject, state, begin } = collector();
    state.hangs = true;
    await begin();
    expect(subject.nodes()).toMatchObject([{ metadata: { name: 'n1' } }]);
    subject.stop();
  });

  test('goes on every 15 s while there are requests, and ends without', async () => {
    const { subject, clock, state, begin } = collector();
    await begin();
    const settle = async (): Promise<void> => {
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    };
    clock.advance(15_000);
    await settle();
    expect(state.requests).toBe(6);
    expect(subject.nodes()).toMatchObject([{ window: '15s' }]);
    for (let seconds = 15; seconds < 330; seconds += 15) {
      clock.advance(15_000);
      await settle();
    }
    const { requests } = state;
    clock.advance(60_000);
    await settle();
    expect(state.requests).toBe(requests);
    // What was read before the pause is not compared with.
    await begin();
    expect(subject.nodes()).toMatchObject([{ window: '1s' }]);
    subject.stop();
  });

  test.each([
    ['that do not run', [runningPod('web', 'n1', 'Succeeded')]],
    ['of a node that does not answer', [runningPod('web', 'n2')]],
    ['that the kubelet does not show', [runningPod('db', 'n1')]],
  ])('pods %s have no metrics', async (_title, pods) => {
    const { subject, begin } = collector(pods);
    await begin();
    expect(subject.pods(undefined)).toEqual([]);
    subject.stop();
  });
});
