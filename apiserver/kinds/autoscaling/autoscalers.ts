// HorizontalPodAutoscalers: autoscaling/v2, which is stored, and autoscaling/v1 on top of it.

import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2';
import { namedTable, text } from '../columns.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject, ResourceStrategy } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { validateCounts } from '../shared/counts.ts';
import { cpuMetric, DEFAULT_UTILIZATION, dropOwnAnnotations, fromV1, toV1 } from './convert.ts';
import { type Options, type Spec, validateSpec } from './validate.ts';

const of = (object: KubeObject): Of<HorizontalPodAutoscaler> =>
  as<HorizontalPodAutoscaler>(object, 'HorizontalPodAutoscaler');
type Metric = NonNullable<Spec['metrics']>[number];
type MetricStatus = NonNullable<NonNullable<Of<HorizontalPodAutoscaler>['status']>['currentMetrics']>[number];

const UP = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
} as const;
const DOWN = { selectPolicy: 'Max', policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] } as const;

function applyDefaults(object: KubeObject): void {
  const autoscaler = of(object);
  autoscaler.spec ??= {};
  const { spec } = autoscaler;
  spec.minReplicas ??= 1;
  spec.metrics ??= [cpuMetric(DEFAULT_UTILIZATION)];
  if (spec.behavior !== undefined) {
    spec.behavior.scaleUp = { ...structuredClone({ ...UP, policies: [...UP.policies] }), ...spec.behavior.scaleUp };
    spec.behavior.scaleDown = {
      ...structuredClone({ ...DOWN, policies: [...DOWN.policies] }),
      ...spec.behavior.scaleDown,
    };
  }
  dropOwnAnnotations(object);
}

function optionsFor({ scaleTargetRef: now }: Spec, old?: Spec): Options {
  const before = old?.scaleTargetRef;
  const same = before !== undefined && before.apiVersion === now?.apiVersion && before.kind === now?.kind;
  return {
    minReplicasLowerBound: old?.minReplicas === 0 ? 0 : 1,
    anyVersion: same,
    noGroup: now?.kind === 'ReplicationController',
  };
}

function validate(object: KubeObject, old?: KubeObject): FieldError[] {
  const spec = of(object).spec ?? {};
  return validateSpec(spec, optionsFor(spec, old === undefined ? undefined : (of(old).spec ?? {})));
}

function metricCell(metric: Metric, status: MetricStatus | undefined): string {
  const unknown = '<unknown>';
  switch (metric.type) {
    case 'External':
    case 'Object': {
      const field = metric.type === 'External' ? 'external' : 'object';
      const { value, averageValue } = metric[field]?.target ?? {};
      const current = status?.[field]?.current;
      if (averageValue !== undefined) return `${current?.averageValue ?? unknown}/${averageValue} (avg)`;
      return `${current?.value ?? unknown}/${value ?? '<nil>'}`;
    }
    case 'Pods':
      return `${status?.pods?.current?.averageValue ?? unknown}/${metric.pods?.target?.averageValue ?? '<nil>'}`;
    case 'Resource':
    case 'ContainerResource': {
      const field = metric.type === 'Resource' ? 'resource' : 'containerResource';
      const { name = '', target = {} } = metric[field] ?? {};
      const current = status?.[field]?.current;
      if (target.averageValue !== undefined)
        return `${name}: ${current?.averageValue ?? unknown}/${target.averageValue}`;
      const used = current?.averageUtilization;
      const wanted = target.averageUtilization;
      return `${name}: ${used === undefined ? unknown : `${used}%`}/${wanted === undefined ? '<auto>' : `${wanted}%`}`;
    }
    default:
      return '<unknown type>';
  }
}

function metricsCell(metrics: readonly Metric[] = [], statuses: readonly MetricStatus[] = []): string {
  const shown = 2;
  if (metrics.length === 0) return '<none>';
  const cells = metrics.slice(0, shown).map((metric, index) => metricCell(metric, statuses[index]));
  const more = metrics.length > shown ? ` + ${metrics.length - shown} more...` : '';
  return `${cells.join(', ')}${more}`;
}

function table(read: (object: KubeObject) => KubeObject): NonNullable<ResourceStrategy['table']> {
  return namedTable(
    [
      text('Reference', 'What is scaled.'),
      text('Targets', 'The metrics, as they are and as they should be.'),
      text('MinPods', 'The smallest number of pods.'),
      text('MaxPods', 'The largest number of pods.'),
      text('Replicas', 'Pods that there are.'),
    ],
    (object) => {
      const { spec = {}, status = {} } = of(read(object));
      const { kind = '', name = '' } = spec.scaleTargetRef ?? {};
      return [
        `${kind}/${name}`,
        metricsCell(spec.metrics, status.currentMetrics ?? []),
        spec.minReplicas === undefined ? '<unset>' : String(spec.minReplicas),
        spec.maxReplicas ?? 0,
        status.currentReplicas ?? 0,
      ];
    },
  );
}

function validateStatus(object: KubeObject): FieldError[] {
  return validateCounts('status', of(object).status ?? {}, ['currentReplicas', 'desiredReplicas']);
}

const ROW = {
  group: 'autoscaling',
  kind: 'HorizontalPodAutoscaler',
  plural: 'horizontalpodautoscalers',
  singular: 'horizontalpodautoscaler',
  shortNames: ['hpa'],
  categories: ['all'],
  namespaced: true,
  subresources: ['status'],
} as const;

export const horizontalpodautoscalers = defineKind({
  ...ROW,
  version: 'v2',
  schema: 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
  strategy: {
    countsGenerations: false,
    applyDefaults,
    prepareForCreate: (object) => {
      object['status'] = { currentMetrics: null, desiredReplicas: 0 };
    },
    validateCreate: (object) => validate(object),
    validateUpdate: validate,
    validateStatusUpdate: validateStatus,
    table: table((object) => object),
  },
});

/** The rules are those of the stored form: each is applied to the object converted. */
export const horizontalpodautoscalersV1 = defineKind({
  ...ROW,
  version: 'v1',
  schema: 'io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler',
  storedAs: { group: 'autoscaling', plural: 'horizontalpodautoscalers', toStored: fromV1, fromStored: toV1 },
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const stored = fromV1(object);
      applyDefaults(stored);
      const shown = toV1(stored);
      object.metadata = shown.metadata;
      object['spec'] = shown['spec'];
      if (shown['status'] !== undefined) object['status'] = shown['status'];
    },
    prepareForCreate: (object) => {
      object['status'] = { currentReplicas: 0, desiredReplicas: 0 };
    },
    validateCreate: (object) => validate(fromV1(object)),
    validateUpdate: (object, old) => validate(fromV1(object), fromV1(old)),
    validateStatusUpdate: (object) => validateStatus(fromV1(object)),
    table: table(fromV1),
  },
});
