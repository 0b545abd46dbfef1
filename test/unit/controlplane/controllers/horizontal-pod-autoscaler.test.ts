// The HorizontalPodAutoscaler: how many replicas figures ask for, how fast that is followed, and the controller around it.

import type { HPAScalingPolicy } from 'kubernetes-types/autoscaling/v2';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import {
  NO_HISTORY,
  normalizeByBehavior,
  normalizePlainly,
  type Sample,
  type ScaleHistory,
  withScale,
} from '../../../../controlplane/controllers/horizontal-pod-autoscaler/behavior.ts';
import { selectorText } from '../../../../controlplane/controllers/horizontal-pod-autoscaler/compute.ts';
import { HorizontalPodAutoscalerController } from '../../../../controlplane/controllers/horizontal-pod-autoscaler/horizontal-pod-autoscaler.ts';
import {
  AUTOSCALER_DEFAULTS,
  type PodMetric,
} from '../../../../controlplane/controllers/horizontal-pod-autoscaler/pod-groups.ts';
import {
  byAverage,
  byShare,
  byUtilization,
  byValue,
} from '../../../../controlplane/controllers/horizontal-pod-autoscaler/replicas.ts';
import type { HorizontalPodAutoscaler } from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, monotonicMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makePod, meta } from '../environment.ts';

const NOW = epochMs(1_800_000_000_000);
/** Of histories. */
const SINCE_START = monotonicMs(10_000_000);
const ago = (ms: number): string => rfc3339(plusMs(NOW, -ms));

interface Given {
  /** Millicores that it uses; absent: there is no figure. */
  readonly uses?: number;
  readonly phase?: string;
  readonly ready?: 'True' | 'False';
  /** ms. */
  readonly age?: number;
  readonly readyFor?: number;
  readonly deleted?: boolean;
}

/** Pods p0, p1, … that request a core each, and their figures. */
function scene(current: number, given: readonly Given[]) {
  const metrics = new Map<string, PodMetric>();
  const pods = given.map(
    ({ uses, phase = 'Running', ready = 'True', age = 3_600_000, readyFor = age, deleted }, index): Pod => {
      const name = `p${index}`;
      if (uses !== undefined) metrics.set(name, { value: uses, at: plusMs(NOW, -1000), windowMs: 30_000 });
      const pod = makePod(name, { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] });
      return {
        ...pod,
        metadata: { ...pod.metadata, ...(deleted === true ? { deletionTimestamp: ago(0) } : {}) },
        status: {
          phase,
          startTime: ago(age),
          conditions: [{ type: 'Ready', status: ready, lastTransitionTime: ago(readyFor) }],
        },
      };
    },
  );
  return { scene: { current, pods, settings: AUTOSCALER_DEFAULTS, now: NOW }, metrics };
}
const all = (count: number, uses: number): Given[] => Array.from({ length: count }, () => ({ uses }));

describe('a target in percent of requests', () => {
  it.each<[string, number, number, readonly Given[], number]>([
    ['is exceeded', 3, 30, [{ uses: 300 }, { uses: 500 }, { uses: 700 }], 5],
    ['is far from being reached', 5, 50, all(5, 100), 1],
    ['is met within a tenth', 3, 50, all(3, 540), 3],
    ['is exceeded by a little more than a tenth', 3, 50, all(3, 560), 4],
    ['with a pod that has no figure: it counts as idle on the way up', 3, 30, [{ uses: 600 }, { uses: 600 }, {}], 4],
    ['with a pod that has no figure: it counts as busy on the way down', 3, 50, [{ uses: 100 }, { uses: 100 }, {}], 3],
    ['never turned round by pods without a figure', 4, 50, [{ uses: 600 }, {}, {}, {}], 4],
    [
      'with a pod that starts: it counts as idle on the way up',
      3,
      30,
      [{ uses: 600 }, { uses: 600 }, { uses: 900, ready: 'False', age: 60_000 }],
      4,
    ],
    [
      'with a pod that has been ready for less than its window',
      2,
      30,
      [{ uses: 600 }, { uses: 3000, age: 60_000, readyFor: 10_000 }],
      2,
    ],
    [
      'with a young pod that is ready for long enough',
      2,
      30,
      [{ uses: 600 }, { uses: 600, age: 120_000, readyFor: 60_000 }],
      4,
    ],
    [
      'with a pod that never was ready',
      2,
      30,
      [{ uses: 600 }, { uses: 9000, ready: 'False', age: 600_000, readyFor: 599_000 }],
      2,
    ],
    [
      'with a pod that was ready and is no longer: it counts',
      2,
      30,
      [{ uses: 600 }, { uses: 600, ready: 'False', readyFor: 1000 }],
      4,
    ],
    ['with pods that are pending', 3, 30, [{ uses: 600 }, { phase: 'Pending' }, { phase: 'Pending' }], 3],
    [
      'with failed and deleted pods, which do not count',
      3,
      30,
      [{ uses: 600 }, { uses: 900, phase: 'Failed' }, { uses: 900, deleted: true }],
      2,
    ],
  ])('%s', (_, current, target, given, replicas) => {
    const { scene: scenery, metrics } = scene(current, given);
    expect(byUtilization(scenery, metrics, 'cpu', undefined, target).replicas).toBe(replicas);
  });

  it('reports what is used, in percent and on average', () => {
    const { scene: scenery, metrics } = scene(3, [{ uses: 300 }, { uses: 500 }, { uses: 701 }]);
    expect(byUtilization(scenery, metrics, 'cpu', undefined, 30)).toEqual({ replicas: 5, utilization: 50, value: 500 });
  });

  it.each<[string, readonly Given[], string, string | undefined, string]>([
    ['no pods', [], 'cpu', undefined, 'no pods returned by selector while calculating replica count'],
    ['no figures', [{}], 'cpu', undefined, 'did not receive metrics for targeted pods (pods might be unready)'],
    ['no request', all(1, 1), 'memory', undefined, 'missing request for memory in container c of Pod p0'],
    ['no such container', all(1, 1), 'cpu', 'x', 'container x not found in Pod p0'],
  ])('needs more than %s', (_, given, resource, container, message) => {
    const { scene: scenery, metrics } = scene(1, given);
    expect(() => byUtilization(scenery, metrics, resource, container, 50)).toThrow(message);
  });
});

describe('a target', () => {
  it.each<[string, number, number]>([
    ['of an average that is exceeded', 200, 4],
    ['of an average that is near', 390, 2],
    ['of an average that is not reached', 1000, 1],
  ])('%s', (_, target, replicas) => {
    const { scene: scenery, metrics } = scene(2, all(2, 400));
    expect(byAverage(scenery, metrics, undefined, target)).toEqual({ replicas, value: 400 });
  });

  it.each<[string, number, number, number]>([
    ['of one value', 3, 20_000, 6],
    ['of one value that is near', 3, 10_900, 3],
    ['of one value, from no replicas', 0, 25_000, 3],
  ])('%s', (_, current, value, replicas) => {
    expect(byValue(scene(current, all(current, 1)).scene, value, 10_000)).toEqual({ replicas, value });
  });

  it('of a value that is shared', () => {
    expect(byShare(AUTOSCALER_DEFAULTS, 4, 30_000, 5000)).toEqual({ replicas: 6, value: 7500 });
    expect(byShare(AUTOSCALER_DEFAULTS, 4, 21_000, 5000)).toEqual({ replicas: 4, value: 5250 });
  });
});

const sample = (replicas: number, secondsAgo: number): Sample => ({
  replicas,
  at: plusMs(SINCE_START, -secondsAgo * 1000),
});
const history = (part: Partial<ScaleHistory>): ScaleHistory => ({ ...NO_HISTORY, ...part });

describe('without a behavior', () => {
  it.each<[string, number, number, readonly Sample[], number, string, string]>([
    ['up at once', 4, 3, [], 4, 'ReadyForNewScale', 'DesiredWithinRange'],
    ['up to twice as many', 9, 3, [], 6, 'ReadyForNewScale', 'ScaleUpLimit'],
    ['up to four from one', 9, 1, [], 4, 'ReadyForNewScale', 'ScaleUpLimit'],
    ['up to the maximum', 30, 8, [], 10, 'ReadyForNewScale', 'TooManyReplicas'],
    [
      'down to the highest of five minutes',
      2,
      8,
      [sample(8, 310), sample(5, 290)],
      5,
      'ScaleDownStabilized',
      'DesiredWithinRange',
    ],
    ['down to the minimum', 1, 8, [sample(8, 310)], 2, 'ReadyForNewScale', 'TooFewReplicas'],
  ])('%s', (_, desired, current, recommendations, replicas, able, limit) => {
    const normalized = normalizePlainly(
      desired,
      { min: 2, max: 10, current },
      history({ recommendations }),
      300_000,
      SINCE_START,
    );
    expect([normalized.replicas, normalized.ableToScale.reason, normalized.limit.reason]).toEqual([
      replicas,
      able,
      limit,
    ]);
  });
});

describe('a behavior', () => {
  const pods = (value: number, periodSeconds = 60) => ({ type: 'Pods', value, periodSeconds });
  const percent = (value: number, periodSeconds = 60) => ({ type: 'Percent', value, periodSeconds });
  const up = (policies: HPAScalingPolicy[], rest: object = {}) => ({
    scaleUp: { policies, selectPolicy: 'Max', ...rest },
  });
  const down = (policies: HPAScalingPolicy[], rest: object = {}) => ({
    scaleDown: { policies, selectPolicy: 'Max', stabilizationWindowSeconds: 0, ...rest },
  });
  it.each<[string, object, number, number, Partial<ScaleHistory>, number, string]>([
    ['adds so many pods a period', up([pods(2)]), 20, 10, {}, 12, 'ScaleUpLimit'],
    ['counts what the period has added already', up([pods(2)]), 20, 11, { ups: [sample(1, 30)] }, 12, 'ScaleUpLimit'],
    ['forgets what was added before the period', up([pods(2)]), 20, 11, { ups: [sample(1, 90)] }, 13, 'ScaleUpLimit'],
    ['counts what the period has removed', up([pods(2)]), 20, 10, { downs: [sample(3, 30)] }, 15, 'ScaleUpLimit'],
    ['adds percent, rounded up', up([percent(10)]), 20, 11, {}, 13, 'ScaleUpLimit'],
    ['takes the policy that allows most', up([pods(2), percent(100)]), 40, 10, {}, 20, 'ScaleUpLimit'],
    [
      'takes the policy that allows least',
      up([pods(2), percent(100)], { selectPolicy: 'Min' }),
      40,
      10,
      {},
      12,
      'ScaleUpLimit',
    ],
    ['stops scaling up', up([pods(2)], { selectPolicy: 'Disabled' }), 40, 10, {}, 10, 'ScaleUpLimit'],
    [
      'waits on the way up',
      up([pods(9)], { stabilizationWindowSeconds: 60 }),
      15,
      10,
      { recommendations: [sample(12, 30)] },
      12,
      'DesiredWithinRange',
    ],
    ['removes so many pods a period', down([pods(2)]), 1, 10, {}, 8, 'ScaleDownLimit'],
    ['removes percent', down([percent(15)]), 1, 10, {}, 8, 'ScaleDownLimit'],
    [
      'removes by the policy that allows least',
      down([pods(1), percent(50)], { selectPolicy: 'Min' }),
      1,
      10,
      {},
      9,
      'ScaleDownLimit',
    ],
    ['stops scaling down', down([pods(2)], { selectPolicy: 'Disabled' }), 1, 10, {}, 10, 'ScaleDownLimit'],
    [
      'waits on the way down',
      down([percent(100)], { stabilizationWindowSeconds: 120 }),
      3,
      10,
      { recommendations: [sample(7, 100)] },
      7,
      'DesiredWithinRange',
    ],
    [
      'waits five minutes where it does not say how long',
      { scaleDown: { policies: [percent(100)], selectPolicy: 'Max' } },
      3,
      10,
      { recommendations: [sample(6, 290)] },
      6,
      'DesiredWithinRange',
    ],
  ])('%s', (_, behavior, desired, current, past, replicas, limit) => {
    const normalized = normalizeByBehavior(
      desired,
      { min: 1, max: 50, current },
      behavior,
      history(past),
      300_000,
      SINCE_START,
    );
    expect([normalized.replicas, normalized.limit.reason]).toEqual([replicas, limit]);
  });

  it('keeps what its longest period looks back at', () => {
    const behavior = { ...up([pods(2, 60)]), ...down([percent(10, 120)]) };
    const next = withScale(history({ ups: [sample(1, 119), sample(1, 121)] }), behavior, 5, 3, SINCE_START);
    expect(next).toMatchObject({ ups: [{ replicas: 1 }], downs: [{ replicas: 2 }] });
  });
});

it('selectors become text', () => {
  const matchExpressions = [
    { key: 'b', operator: 'In', values: ['1', '2'] },
    { key: 'c', operator: 'DoesNotExist' },
  ];
  expect(selectorText({ matchLabels: { a: 'x' }, matchExpressions })).toBe('a=x,b in (1,2),!c');
  expect(selectorText(undefined)).toBe('');
});

describe('the controller', () => {
  const SCALE = '/apis/apps/v1/namespaces/demo/deployments/web/scale';
  const METRICS = '/apis/metrics.k8s.io/v1beta1/namespaces/demo/pods';
  const PODS = '/api/v1/namespaces/demo/pods';
  const autoscaler = (name = 'web'): HorizontalPodAutoscaler => ({
    metadata: { ...meta(name), namespace: 'demo' },
    spec: {
      minReplicas: 2,
      maxReplicas: 10,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
    },
  });

  /** Fields of Go's that the published types do not know to be null. */
  const asServed = (fields: object): Partial<HorizontalPodAutoscaler> => JSON.parse(JSON.stringify(fields));

  function start(replicas: number, uses: readonly number[], ...autoscalers: HorizontalPodAutoscaler[]) {
    const env = environment();
    const { client, informers, clock } = env;
    client.objects.set('/apis', { groups: [{ versions: [{ groupVersion: 'apps/v1' }] }] });
    client.objects.set('/api/v1', { resources: [] });
    const resources = [{ name: 'deployments', kind: 'Deployment', namespaced: true, verbs: ['get'] }];
    client.objects.set('/apis/apps/v1', { resources });
    client.objects.set(SCALE, {
      metadata: { name: 'web' },
      spec: { replicas },
      status: { replicas, selector: 'app=web' },
    });
    const { pods } = scene(
      replicas,
      uses.map((each) => ({ uses: each })),
    ).scene;
    const started = rfc3339(plusMs(clock.now(), -3_600_000));
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: started }];
    client.objects.set(PODS, {
      items: pods.map((pod) => ({ ...pod, status: { phase: 'Running', startTime: started, conditions } })),
    });
    client.objects.set(METRICS, {
      items: uses.map((each, index) => ({
        metadata: { name: `p${index}` },
        timestamp: rfc3339(clock.now()),
        window: '15s',
        containers: [{ name: 'c', usage: { cpu: `${each}m` } }],
      })),
    });
    env.run(new HorizontalPodAutoscalerController(env.context, informers));
    informers.horizontalPodAutoscalers.replace(autoscalers.length === 0 ? [autoscaler()] : autoscalers);
    const written = (path: string) => client.writes.filter((write) => write.path === path).map(({ body }) => body);
    const statuses = () => written('/apis/autoscaling/v2/namespaces/demo/horizontalpodautoscalers/web/status');
    return { ...env, statuses, scales: () => written(SCALE) };
  }

  it('scales up, and says why', async () => {
    const { events, scales, statuses } = start(2, [900, 900]);
    await settle();
    expect(scales()).toMatchObject([{ spec: { replicas: 4 } }]);
    expect(events).toEqual([
      'web SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target',
    ]);
    expect(statuses().at(-1)).toMatchObject({
      status: {
        currentReplicas: 2,
        desiredReplicas: 4,
        currentMetrics: [
          { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 90, averageValue: '900m' } } },
        ],
        conditions: [
          { type: 'AbleToScale', status: 'True', reason: 'SucceededRescale' },
          { type: 'ScalingActive', status: 'True', reason: 'ValidMetricFound' },
          { type: 'ScalingLimited', status: 'False', reason: 'DesiredWithinRange' },
        ],
      },
    });
  });

  it('looks again every 15 seconds', async () => {
    const { client, clock, scales } = start(2, [500, 500]);
    await settle();
    const before = client.reads;
    await clock.advance(14_000);
    expect(client.reads).toBe(before);
    await clock.advance(1000);
    expect(client.reads).toBeGreaterThan(before);
    expect(scales()).toEqual([]);
  });

  it.each([-1_800_000, 3_600_000])(
    'scales down after five minutes, though the wall clock jumps by %i ms',
    async (jump) => {
      const { client, clock, scales } = start(4, [500, 500, 500, 500]);
      await clock.advance(60_000);
      clock.jump(jump);
      const items = ['p0', 'p1', 'p2', 'p3'].map((name) => ({
        metadata: { name },
        timestamp: rfc3339(clock.now()),
        window: '15s',
        containers: [{ name: 'c', usage: { cpu: '100m' } }],
      }));
      client.objects.set(METRICS, { items });
      await clock.advance(270_000);
      expect(scales()).toEqual([]);
      await clock.advance(60_000);
      expect(scales()[0]).toMatchObject({ spec: { replicas: 2 } });
    },
  );

  it('keeps to its bounds without looking at metrics', async () => {
    const { events, scales } = start(1, []);
    await settle();
    expect(scales()).toMatchObject([{ spec: { replicas: 2 } }]);
    expect(events).toEqual([
      'web SuccessfulRescale: New size: 2; reason: Current number of replicas below Spec.MinReplicas',
    ]);
  });

  it('leaves a target alone that has been scaled to nothing', async () => {
    const { scales, statuses } = start(0, []);
    await settle();
    expect(scales()).toEqual([]);
    expect(statuses().at(-1)).toMatchObject({ status: { conditions: [{}, { reason: 'ScalingDisabled' }] } });
  });

  it('waits for its next turn where the status that it was created with has null for metrics', async () => {
    const status = JSON.parse('{"currentMetrics": null, "desiredReplicas": 0}');
    const { client, clock, events, statuses } = start(3, [], { ...autoscaler(), status });
    client.objects.delete(METRICS);
    await clock.advance(14_000);
    expect(events).toHaveLength(2);
    expect(statuses()).toMatchObject([{ status: { currentReplicas: 3, desiredReplicas: 0, currentMetrics: [] } }]);
  });

  it('reports metrics that cannot be had', async () => {
    // As a server shows it before the first status.
    const status = { currentReplicas: 0, desiredReplicas: 0, currentMetrics: null, conditions: null };
    const { client, clock, events, statuses } = start(3, [], { ...autoscaler(), ...asServed({ status }) });
    client.objects.delete(METRICS);
    await clock.advance(15_000);
    const why =
      'failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: NotFound';
    expect(events.slice(-2)).toEqual([
      `web FailedGetResourceMetric: ${why}`,
      `web FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${why}`,
    ]);
    expect(statuses().at(-1)).toMatchObject({
      status: {
        currentReplicas: 3,
        conditions: [
          { type: 'AbleToScale', status: 'True', reason: 'SucceededGetScale' },
          {
            type: 'ScalingActive',
            status: 'False',
            reason: 'FailedGetResourceMetric',
            message: `the HPA was unable to compute the replica count: ${why}`,
          },
        ],
      },
    });
  });

  it('reports a target that is not there', async () => {
    const { client, clock, events } = start(3, []);
    client.objects.delete(SCALE);
    await clock.advance(15_000);
    expect(events.at(-1)).toBe('web FailedGetScale: NotFound');
  });

  it('does nothing where two autoscalers have the same pods', async () => {
    const { clock, events, scales } = start(2, [900, 900], autoscaler(), autoscaler('again'));
    await settle();
    const scaled = scales().length;
    await clock.advance(15_000);
    expect(scales()).toHaveLength(scaled);
    expect(events).toContain(
      'again AmbiguousSelector: pods by selector app=web are controlled by multiple HPAs: [demo/again demo/web]',
    );
  });
});
