// What all metrics of an autoscaler ask for together: each is read and turned into a proposal, and the highest counts. One that
// cannot be had stops the target from becoming smaller.

import type { MetricSpec, MetricStatus, MetricValueStatus } from 'kubernetes-types/autoscaling/v2';
import type { LabelSelector } from 'kubernetes-types/meta/v1';
import type { ApiClient } from '../../../client/api.ts';
import { formatMilli, quantityMilli } from '../../../lib/quantity.ts';
import type { DiscoveredResource } from '../../discovery.ts';
import { customPodMetrics, externalMetric, objectMetric, resourceMetrics } from './metrics-source.ts';
import { byAverage, byShare, byUtilization, byValue, MetricError, type Proposal, type Scene } from './replicas.ts';

export interface Target extends Scene {
  readonly namespace: string;
  /** status.selector of the scale. */
  readonly selector: string;
  /** status.replicas of the scale. */
  readonly statusReplicas: number;
  /** The kind of an object that a metric is of; undefined where the server has none such. */
  readonly kindOf: (apiVersion: string, kind: string) => DiscoveredResource | undefined;
}

export interface MetricFailure {
  /** Reason of the event, and of the condition ScalingActive. */
  readonly reason: string;
  /** Of the event; the condition's has a sentence before it. */
  readonly message: string;
  /** With what was to be read, as FailedComputeMetricsReplicas has it. */
  readonly full: string;
}

export interface Computed {
  /** Undefined where the metrics that could be had are not enough. */
  readonly replicas: number | undefined;
  /** Which metric it comes from. */
  readonly metric: string;
  readonly statuses: readonly MetricStatus[];
  readonly failures: readonly MetricFailure[];
}

interface Outcome {
  readonly proposal: Proposal;
  readonly metric: string;
  readonly status: MetricStatus;
}

/** How upstream names a source of metrics in its messages. */
interface Source {
  readonly reason: string;
  /** Before the reason of a failure: in the event, and in the sum of all failures. */
  readonly what: string;
  readonly fullWhat: string;
  read(client: Pick<ApiClient, 'get'>, target: Target): Promise<Outcome>;
}

/** As a query has it: "a=b,c in (d,e)". */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): string {
  const words: Readonly<Record<string, (key: string, values: string) => string>> = {
    In: (key, values) => `${key} in (${values})`,
    NotIn: (key, values) => `${key} notin (${values})`,
    Exists: (key) => key,
    DoesNotExist: (key) => `!${key}`,
  };
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    const word = new Map(Object.entries(words)).get(operator);
    if (word === undefined) throw new MetricError(`"${operator}" is not a valid label selector operator`);
    return word(key, values.join(','));
  });
  return [...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`), ...expressions].join(',');
}

const currentOf = ({ value, utilization }: Proposal): MetricValueStatus => ({
  ...(utilization === undefined ? {} : { averageUtilization: utilization }),
  averageValue: formatMilli(value),
});

function resourceSource(spec: NonNullable<MetricSpec['resource']>, container: string | undefined): Source {
  const { name, target } = spec;
  const isContainer = container !== undefined;
  return {
    reason: isContainer ? 'FailedGetContainerResourceMetric' : 'FailedGetResourceMetric',
    what: `failed to get ${name} utilization`,
    fullWhat: isContainer
      ? `failed to get ${name} container metric value`
      : `failed to get ${name} resource metric value`,
    async read(client, scene) {
      const { averageValue, averageUtilization } = target;
      const metrics = await resourceMetrics(client, scene.namespace, scene.selector, name, container).catch(
        (error: unknown) => {
          throw error instanceof MetricError
            ? new MetricError(`unable to get metrics for resource ${name}: ${error.message}`, { cause: error })
            : error;
        },
      );
      const isAverage = averageValue !== undefined;
      if (!isAverage && averageUtilization === undefined) {
        throw new MetricError(
          'invalid resource metric source: neither an average utilization target nor an average value (usage) target was set',
        );
      }
      const proposal = isAverage
        ? byAverage(scene, metrics, name, quantityMilli(averageValue))
        : byUtilization(scene, metrics, name, container, averageUtilization ?? 0);
      const kind = isContainer ? 'container resource' : 'resource';
      const metric = isAverage ? `${name} ${kind}` : `${name} ${kind} utilization (percentage of request)`;
      const current = currentOf(proposal);
      const status: MetricStatus = isContainer
        ? { type: 'ContainerResource', containerResource: { name, container, current } }
        : { type: 'Resource', resource: { name, current } };
      return { proposal, metric, status };
    },
  };
}

function podsSource({ metric: { name, selector }, target }: NonNullable<MetricSpec['pods']>): Source {
  return {
    reason: 'FailedGetPodsMetric',
    what: `unable to get metric ${name}`,
    fullWhat: 'failed to get pods metric value',
    async read(client, scene) {
      const labels = selectorText(selector);
      const metrics = await customPodMetrics(client, scene.namespace, scene.selector, name, labels);
      const proposal = byAverage(scene, metrics, undefined, quantityMilli(target.averageValue ?? 0));
      const metric = { name, ...(selector === undefined ? {} : { selector }) };
      const status = { type: 'Pods', pods: { metric, current: currentOf(proposal) } };
      return { proposal, metric: `pods metric ${name}`, status };
    },
  };
}

function objectSource({
  describedObject,
  metric: { name, selector },
  target,
}: NonNullable<MetricSpec['object']>): Source {
  const { apiVersion = 'v1', kind } = describedObject;
  return {
    reason: 'FailedGetObjectMetric',
    what: `unable to get metric ${name}`,
    fullWhat: 'failed to get object metric value',
    async read(client, scene) {
      const resource = scene.kindOf(apiVersion, kind);
      if (resource === undefined) throw new MetricError(`no matches for kind "${kind}" in version "${apiVersion}"`);
      const [group] = apiVersion.includes('/') ? apiVersion.split('/') : [];
      const plural = group === undefined ? resource.plural : `${resource.plural}.${group}`;
      const value = await objectMetric(client, scene.namespace, plural, describedObject, name, selectorText(selector));
      const shared = target.type === 'AverageValue';
      const proposal = shared
        ? byShare(scene.settings, scene.statusReplicas, value, quantityMilli(target.averageValue ?? 0))
        : byValue(scene, value, quantityMilli(target.value ?? 0));
      const amount = formatMilli(proposal.value);
      const current = shared ? { averageValue: amount } : { value: amount };
      const metric = { name, ...(selector === undefined ? {} : { selector }) };
      return {
        proposal,
        metric: shared ? `external metric ${name}(${selectorText(selector)})` : `${kind} metric ${name}`,
        status: { type: 'Object', object: { describedObject, metric, current } },
      };
    },
  };
}

function externalSource({ metric: { name, selector }, target }: NonNullable<MetricSpec['external']>): Source {
  return {
    reason: 'FailedGetExternalMetric',
    what: `unable to get external metric ${name}`,
    fullWhat: `failed to get ${name} external metric value`,
    async read(client, scene) {
      const value = await externalMetric(client, scene.namespace, name, selectorText(selector));
      const shared = target.averageValue !== undefined;
      const proposal = shared
        ? byShare(scene.settings, scene.statusReplicas, value, quantityMilli(target.averageValue ?? 0))
        : byValue(scene, value, quantityMilli(target.value ?? 0));
      const amount = formatMilli(proposal.value);
      const metric = { name, ...(selector === undefined ? {} : { selector }) };
      return {
        proposal,
        metric: `external metric ${name}(${selectorText(selector)})`,
        status: {
          type: 'External',
          external: { metric, current: shared ? { averageValue: amount } : { value: amount } },
        },
      };
    },
  };
}

/** Undefined for a type that there is not, or whose field is absent: the server lets none through. */
function sourceOf({ resource, containerResource, pods, object, external }: MetricSpec): Source | undefined {
  if (resource !== undefined) return resourceSource(resource, undefined);
  if (containerResource !== undefined) return resourceSource(containerResource, containerResource.container);
  if (pods !== undefined) return podsSource(pods);
  if (object !== undefined) return objectSource(object);
  return external === undefined ? undefined : externalSource(external);
}

/** Throws only what is no MetricError: a defect. */
export async function computeReplicas(
  client: Pick<ApiClient, 'get'>,
  specs: readonly MetricSpec[],
  target: Target,
): Promise<Computed> {
  const outcomes: Outcome[] = [];
  const failures: MetricFailure[] = [];
  for (const spec of specs) {
    const source = sourceOf(spec);
    if (source === undefined) {
      const message = `unknown metric source type "${spec.type}"`;
      failures.push({ reason: 'InvalidMetricSourceType', message, full: message });
      continue;
    }
    try {
      outcomes.push(await source.read(client, target));
    } catch (error) {
      if (!(error instanceof MetricError)) throw error;
      const message = `${source.what}: ${error.message}`;
      failures.push({ reason: source.reason, message, full: `${source.fullWhat}: ${message}` });
    }
  }
  const [first, ...others] = outcomes;
  const highest = others.reduce(
    (best, each) => (best !== undefined && each.proposal.replicas > best.proposal.replicas ? each : best),
    first,
  );
  const replicas = highest?.proposal.replicas;
  const isKnown = replicas !== undefined && (failures.length === 0 || replicas >= target.current);
  return {
    replicas: isKnown ? replicas : undefined,
    metric: highest?.metric ?? '',
    statuses: outcomes.map(({ status }) => status),
    failures,
  };
}
