import { describe, expect, it } from 'vitest';
import { scales } from '../../../../apiserver/kinds/autoscaling/scales.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { create, lines, NOW, row, update } from './support.ts';

type Fields = Record<string, unknown>;
function version(wanted: string): ResourceKind {
  const found = RESOURCE_KINDS.find((kind) => kind.group === 'autoscaling' && kind.version === wanted);
  if (found === undefined) throw new Error(`no autoscaling/${wanted}`);
  return found;
}
const v2 = version('v2');
const v1 = version('v1');
const ref = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
const wrong = (spec: Fields): string[] =>
  lines(create(v2, { spec: { scaleTargetRef: ref, maxReplicas: 3, ...spec } }).errors);

describe('an autoscaler', () => {
  it('scales by CPU by default, and fills a behavior that is there', () => {
    const { object } = create(v2, { spec: { scaleTargetRef: ref, maxReplicas: 3, behavior: { scaleUp: {} } } });
    const percent = { type: 'Percent', value: 100, periodSeconds: 15 };
    expect(object['spec']).toEqual({
      scaleTargetRef: ref,
      minReplicas: 1,
      maxReplicas: 3,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
      behavior: {
        scaleUp: {
          stabilizationWindowSeconds: 0,
          selectPolicy: 'Max',
          policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent],
        },
        scaleDown: { selectPolicy: 'Max', policies: [percent] },
      },
    });
    expect(object['status']).toEqual({ currentMetrics: null, desiredReplicas: 0 });
  });

  const metric = (one: Fields): Fields => ({ metrics: [one] });
  const at = 'spec.metrics[0]';
  it.each<[Fields, string[]]>([
    [{}, []],
    [
      { minReplicas: 0 },
      expect.arrayContaining(['spec.minReplicas: Invalid value: 0: must be greater than or equal to 1']),
    ],
    [
      { maxReplicas: 0, minReplicas: 1 },
      expect.arrayContaining(['spec.maxReplicas: Invalid value: 0: must be greater than 0']),
    ],
    [{ minReplicas: 5 }, ['spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`']],
    [{ scaleTargetRef: { ...ref, kind: '' } }, ['spec.scaleTargetRef.kind: Required value']],
    [
      { scaleTargetRef: { ...ref, apiVersion: 'v1' } },
      ['spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'],
    ],
    [{ scaleTargetRef: { apiVersion: 'v1', kind: 'ReplicationController', name: 'web' } }, []],
    [metric({ type: 'Pods' }), [`${at}.pods: Required value: must populate information for the given metric source`]],
    [
      metric({ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization' } } }),
      [
        `${at}.resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
      ],
    ],
    [
      metric({ type: 'Pods', pods: { metric: { name: 'qps' }, target: { type: 'AverageValue', averageValue: '0' } } }),
      [`${at}.pods.target.averageValue: Invalid value: "0": must be positive`],
    ],
    [
      metric({ type: 'External', external: { metric: {}, target: { type: 'Rate', value: '1' } } }),
      [
        `${at}.external.metric.name: Required value: must specify a metric name`,
        `${at}.external.target.type: Invalid value: "Rate": must be either Utilization, Value, or AverageValue`,
      ],
    ],
    [
      {
        behavior: {
          scaleDown: { stabilizationWindowSeconds: 3601, policies: [{ type: 'Nodes', value: 0, periodSeconds: 1801 }] },
        },
      },
      [
        'spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
        'spec.behavior.scaleDown.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"',
        'spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero',
        'spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
      ],
    ],
  ])('%j', (spec, expected) => expect(wrong(spec)).toEqual(expected));

  it('keeps a reference that was stored before its version was validated', () => {
    const old = create(v2, { spec: { scaleTargetRef: { ...ref, apiVersion: 'v1' }, maxReplicas: 3 } }).object;
    const { errors } = update(v2, old, (draft) => {
      Object.assign(draft['spec'] ?? {}, { maxReplicas: 4 });
    });
    expect(lines(errors)).toEqual([]);
  });

  it('shows its metrics', () => {
    const pods = {
      type: 'Pods',
      pods: { metric: { name: 'qps' }, target: { type: 'AverageValue', averageValue: '5' } },
    };
    const cpu = {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
    };
    const made = create(v2, { spec: { scaleTargetRef: ref, maxReplicas: 3, metrics: [cpu, pods, pods] } }).object;
    const status = {
      currentMetrics: [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 7 } } }],
    };
    expect(v2.strategy.table?.row({ ...made, status }, NOW)).toEqual([
      'web',
      'Deployment/web',
      'cpu: 7%/50%, <unknown>/5 + 1 more...',
      '1',
      3,
      0,
      '<unknown>',
    ]);
  });
});

describe('autoscaling/v1', () => {
  const stored = (spec: Fields, metadata: Fields = {}) => {
    const { object, errors } = create(v1, { metadata, spec: { scaleTargetRef: ref, maxReplicas: 3, ...spec } });
    expect(lines(errors)).toEqual([]);
    return v1.storedAs?.toStored(object);
  };
  it('is stored as v2, its CPU target as a metric', () => {
    expect(stored({ targetCPUUtilizationPercentage: 60 })).toMatchObject({
      apiVersion: 'autoscaling/v2',
      spec: {
        minReplicas: 1,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } } },
        ],
      },
    });
    expect(stored({})).toMatchObject({ spec: { metrics: [{ resource: { target: { averageUtilization: 80 } } }] } });
  });

  it('shows in annotations what it has no fields for, and reads them back', () => {
    const spec = {
      scaleTargetRef: ref,
      maxReplicas: 3,
      metrics: [
        { type: 'Pods', pods: { metric: { name: 'qps' }, target: { type: 'AverageValue', averageValue: '5' } } },
        {
          type: 'Object',
          object: { describedObject: ref, metric: { name: 'hits' }, target: { type: 'Value', value: '10' } },
        },
        {
          type: 'External',
          external: { metric: { name: 'queue' }, target: { type: 'AverageValue', averageValue: '3' } },
        },
        { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } },
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    };
    const original = create(v2, { metadata: { annotations: { mine: 'kept' } }, spec }).object;
    const status = {
      currentReplicas: 2,
      desiredReplicas: 2,
      currentMetrics: [
        { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 9, averageValue: '5m' } } },
      ],
      conditions: [{ type: 'AbleToScale', status: 'True' }],
    };
    const shown = v1.storedAs?.fromStored({ ...original, status });
    expect(shown).toMatchObject({
      apiVersion: 'autoscaling/v1',
      metadata: {
        annotations: {
          mine: 'kept',
          'autoscaling.alpha.kubernetes.io/metrics': expect.stringContaining(
            '{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"5"}}',
          ),
          'autoscaling.alpha.kubernetes.io/behavior': expect.stringContaining('"stabilizationWindowSeconds":60'),
          'autoscaling.alpha.kubernetes.io/conditions': '[{"type":"AbleToScale","status":"True"}]',
        },
      },
      spec: { targetCPUUtilizationPercentage: 70 },
      status: { currentReplicas: 2, currentCPUUtilizationPercentage: 9 },
    });
    expect(shown?.['spec']).not.toHaveProperty('metrics');
    if (shown === undefined) throw new Error('v1 is not stored as v2');
    const back = v1.storedAs?.toStored(shown);
    expect(back).toEqual({ ...original, status });
  });

  it('is validated by the rules of v2', () => {
    expect(lines(create(v1, { spec: { scaleTargetRef: ref } }).errors)).toContain(
      'spec.maxReplicas: Invalid value: 0: must be greater than 0',
    );
  });
});

describe('a Scale', () => {
  it('of any kind is printed with its numbers', () => {
    const scale = {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'web' },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app=web' },
    };
    expect(scales.strategy.table?.row(scale, NOW)).toEqual(['web', 3, 2, '<unknown>']);
    expect(scales.strategy.table?.columns.map(({ name }) => name)).toEqual(['Name', 'Desired', 'Available', 'Age']);
  });
});

describe('a VolumeAttributesClass', () => {
  const kind = row('volumeattributesclasses', 'storage.k8s.io');
  const parameters = { iops: '500' };
  it.each<[Fields, string[]]>([
    [{ driverName: 'a.b', parameters }, []],
    [{ parameters }, ['driverName: Required value']],
    [{ driverName: 'a.b' }, ['parameters: Required value: must contain at least one key/value pair']],
  ])('%j', (fields, expected) => expect(lines(create(kind, fields).errors)).toEqual(expected));

  it('never changes', () => {
    const old = create(kind, { driverName: 'a.b', parameters }).object;
    const { errors } = update(kind, old, (draft) => {
      Object.assign(draft, { driverName: 'c.d', parameters: { iops: '1' } });
    });
    expect(lines(errors)).toEqual([
      'driverName: Forbidden: updates to driverName are forbidden.',
      'parameters: Forbidden: updates to parameters are forbidden.',
    ]);
    expect(kind.strategy.table?.row(old, NOW)).toEqual(['web', 'a.b', '<unknown>']);
  });
});
