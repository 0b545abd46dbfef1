// autoscaling/v1 HorizontalPodAutoscalers from the stored form, autoscaling/v2, and back: the target CPU utilization is a field
// of v1, and what v1 has no field for is in annotations that only v1 shows.

import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2';
import { getOwn } from '../../../lib/own-property.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { KubeObject } from '../resource.ts';
import type { Loose } from '../shapes.ts';

const PREFIX = 'autoscaling.alpha.kubernetes.io/';
const METRICS = `${PREFIX}metrics`;
const CURRENT = `${PREFIX}current-metrics`;
const CONDITIONS = `${PREFIX}conditions`;
const BEHAVIOR = `${PREFIX}behavior`;
const OWN = new Set([
  METRICS,
  CURRENT,
  CONDITIONS,
  BEHAVIOR,
  `${PREFIX}scale-down-tolerance`,
  `${PREFIX}scale-up-tolerance`,
]);

type Spec = NonNullable<Loose<HorizontalPodAutoscaler>['spec']>;
type Metric = NonNullable<Spec['metrics']>[number];

export const DEFAULT_UTILIZATION = 80;

export function cpuMetric(averageUtilization: number): Metric {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } };
}

/** Without the annotations that carry fields between versions. In place. */
export function dropOwnAnnotations(object: KubeObject): void {
  const { annotations } = object.metadata;
  if (annotations === undefined) return;
  const kept = Object.entries(annotations).filter(([key]) => !OWN.has(key));
  if (kept.length === 0) delete object.metadata.annotations;
  else object.metadata.annotations = Object.fromEntries(kept);
}

function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function part(object: JsonObject, field: string): JsonObject {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
}

/** The fields that have a value. */
function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function isCpuUtilization(metric: JsonObject): boolean {
  const resource = part(metric, 'resource');
  const target = part(resource, 'target');
  return metric['type'] === 'Resource' && resource['name'] === 'cpu' && target['averageUtilization'] !== undefined;
}

const SOURCES = ['object', 'pods', 'resource', 'external', 'containerResource'] as const;
type Source = (typeof SOURCES)[number];

/** One metric, or the status of one, with its source converted. */
function withSource(metric: JsonObject, convert: (source: Source, value: JsonObject) => JsonObject): JsonObject {
  const converted = SOURCES.flatMap((source) => {
    const value = getOwn(metric, source);
    return isObject(value) ? [[source, present(convert(source, value))] as const] : [];
  });
  return { type: metric['type'], ...Object.fromEntries(converted) };
}

function metricToV1(source: Source, value: JsonObject): JsonObject {
  const { name, selector } = part(value, 'metric');
  const target = part(value, 'target');
  switch (source) {
    case 'object':
      return {
        target: value['describedObject'],
        metricName: name,
        targetValue: target['value'] ?? '0',
        selector,
        averageValue: target['averageValue'],
      };
    case 'pods':
      return { metricName: name, targetAverageValue: target['averageValue'] ?? '0', selector };
    case 'external':
      return {
        metricName: name,
        metricSelector: selector,
        targetValue: target['value'],
        targetAverageValue: target['averageValue'],
      };
    default:
      return {
        name: value['name'],
        targetAverageUtilization: target['averageUtilization'],
        targetAverageValue: target['averageValue'],
        container: value['container'],
      };
  }
}

function metricFromV1(source: Source, value: JsonObject): JsonObject {
  const metric = (selector: unknown): JsonObject => present({ name: value['metricName'], selector });
  const { averageValue, targetValue, targetAverageValue, targetAverageUtilization } = value;
  switch (source) {
    case 'object': {
      const type = averageValue === undefined ? 'Value' : 'AverageValue';
      return {
        describedObject: value['target'],
        target: present({ type, value: targetValue, averageValue }),
        metric: metric(value['selector']),
      };
    }
    case 'pods':
      return {
        metric: metric(value['selector']),
        target: present({ type: 'AverageValue', averageValue: targetAverageValue }),
      };
    case 'external': {
      const type = targetValue === undefined ? 'AverageValue' : 'Value';
      return {
        metric: metric(value['metricSelector']),
        target: present({ type, value: targetValue, averageValue: targetAverageValue }),
      };
    }
    default: {
      const type = targetAverageUtilization === undefined ? 'AverageValue' : 'Utilization';
      return {
        name: value['name'],
        target: present({
          type,
          averageValue: targetAverageValue,
          averageUtilization: targetAverageUtilization,
        }),
        container: value['container'],
      };
    }
  }
}

function statusToV1(source: Source, value: JsonObject): JsonObject {
  const { name, selector } = part(value, 'metric');
  const current = part(value, 'current');
  switch (source) {
    case 'object':
      return {
        target: value['describedObject'],
        metricName: name,
        currentValue: current['value'] ?? '0',
        selector,
        averageValue: current['averageValue'],
      };
    case 'pods':
      return { metricName: name, currentAverageValue: current['averageValue'] ?? '0', selector };
    case 'external':
      return {
        metricName: name,
        metricSelector: selector,
        currentValue: current['value'] ?? '0',
        currentAverageValue: current['averageValue'],
      };
    default:
      return {
        name: value['name'],
        currentAverageUtilization: current['averageUtilization'],
        currentAverageValue: current['averageValue'] ?? '0',
        container: value['container'],
      };
  }
}

function statusFromV1(source: Source, value: JsonObject): JsonObject {
  const metric = (selector: unknown): JsonObject => present({ name: value['metricName'], selector });
  const { currentValue, averageValue, currentAverageValue, currentAverageUtilization } = value;
  switch (source) {
    case 'object':
      return {
        metric: metric(value['selector']),
        current: present({ value: currentValue, averageValue }),
        describedObject: value['target'],
      };
    case 'pods':
      return { metric: metric(value['selector']), current: present({ averageValue: currentAverageValue }) };
    case 'external':
      return {
        metric: metric(value['metricSelector']),
        current: present({ value: currentValue, averageValue: currentAverageValue }),
      };
    default:
      return {
        name: value['name'],
        current: present({ averageValue: currentAverageValue, averageUtilization: currentAverageUtilization }),
        container: value['container'],
      };
  }
}

/** The stored object as autoscaling/v1 shows it. */
export function toV1(stored: KubeObject): KubeObject {
  const object: KubeObject = { ...stored, apiVersion: 'autoscaling/v1', metadata: { ...stored.metadata } };
  dropOwnAnnotations(object);
  const added: Record<string, string> = {};
  const { metrics, behavior, ...spec } = part(stored, 'spec');
  const cpu = objects(metrics).find(isCpuUtilization);
  const utilization = cpu === undefined ? undefined : part(part(cpu, 'resource'), 'target')['averageUtilization'];
  object['spec'] = { ...spec, ...(utilization === undefined ? {} : { targetCPUUtilizationPercentage: utilization }) };
  const others = objects(metrics).filter((metric) => !isCpuUtilization(metric));
  if (others.length > 0) added[METRICS] = JSON.stringify(others.map((metric) => withSource(metric, metricToV1)));
  if (behavior !== undefined) added[BEHAVIOR] = JSON.stringify(behavior);
  const { currentMetrics, conditions, ...status } = part(stored, 'status');
  const current = objects(currentMetrics);
  if (current.length > 0) added[CURRENT] = JSON.stringify(current.map((metric) => withSource(metric, statusToV1)));
  if (objects(conditions).length > 0) added[CONDITIONS] = JSON.stringify(conditions);
  const used = current
    .filter((metric) => metric['type'] === 'Resource' && part(metric, 'resource')['name'] === 'cpu')
    .map((metric) => part(part(metric, 'resource'), 'current')['averageUtilization'])
    .findLast((value) => value !== undefined);
  if (stored['status'] !== undefined) {
    object['status'] = {
      ...status,
      currentReplicas: status['currentReplicas'] ?? 0,
      desiredReplicas: status['desiredReplicas'] ?? 0,
      ...(used === undefined ? {} : { currentCPUUtilizationPercentage: used }),
    };
  }
  if (Object.keys(added).length > 0) object.metadata.annotations = { ...object.metadata.annotations, ...added };
  return object;
}

/** JSON of an annotation; undefined for none, or for text that is not JSON, which is passed over. */
function annotation(object: KubeObject, key: string): unknown {
  const text = getOwn(object.metadata.annotations, key);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The form that is stored, of an object of autoscaling/v1. */
export function fromV1(object: KubeObject): KubeObject {
  const stored: KubeObject = { ...object, apiVersion: 'autoscaling/v2', metadata: { ...object.metadata } };
  const { targetCPUUtilizationPercentage: utilization, ...spec } = part(object, 'spec');
  const own = typeof utilization === 'number' ? [cpuMetric(utilization)] : [];
  const others = objects(annotation(object, METRICS)).map((metric) => withSource(metric, metricFromV1));
  const metrics = [...others, ...own];
  const behavior = annotation(object, BEHAVIOR);
  stored['spec'] = {
    ...spec,
    metrics: metrics.length > 0 ? metrics : [cpuMetric(DEFAULT_UTILIZATION)],
    ...(isObject(behavior) && Object.keys(behavior).length > 0 ? { behavior } : {}),
  };
  if (object['status'] !== undefined) stored['status'] = statusOf(object);
  dropOwnAnnotations(stored);
  return stored;
}

function statusOf(object: KubeObject): JsonObject {
  const { currentCPUUtilizationPercentage: used, ...status } = part(object, 'status');
  const reported = objects(annotation(object, CURRENT)).map((metric) => withSource(metric, statusFromV1));
  const cpu = { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: used } } };
  const current = reported.length > 0 || used === undefined ? reported : [cpu];
  const conditions = annotation(object, CONDITIONS);
  return {
    ...status,
    currentMetrics: current.length > 0 ? current : null,
    ...(Array.isArray(conditions) ? { conditions } : {}),
  };
}
