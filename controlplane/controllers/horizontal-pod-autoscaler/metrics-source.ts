// Reads metrics where autoscalers have them from: metrics.k8s.io, custom.metrics.k8s.io, external.metrics.k8s.io. The server, or an
// API service behind it, has them. Decides nothing.

import type { CrossVersionObjectReference } from 'kubernetes-types/autoscaling/v2';
import type { ApiClient } from '../../../client/api.ts';
import { type EpochMs, epochMs } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodMetric } from './pod-groups.ts';
import { MetricError } from './replicas.ts';

type Client = Pick<ApiClient, 'get'>;

interface PodMetricsList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly timestamp?: string;
    readonly window?: string;
    readonly containers?: readonly { readonly name: string; readonly usage?: Readonly<Record<string, string>> }[];
  }[];
}

/** Of custom.metrics.k8s.io and external.metrics.k8s.io. */
interface MetricValueList {
  readonly items: readonly {
    readonly describedObject?: { readonly name?: string };
    readonly timestamp?: string;
    readonly windowSeconds?: number;
    readonly value: string;
  }[];
}

const MINUTE_MS = 60_000;

/** "30s", "1m0s"; a minute where there is none. */
function windowMs(text: string | undefined): number {
  const [, minutes = '0', seconds = '0'] = /^(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$/.exec(text ?? '') ?? [];
  const ms = (Number(minutes) * 60 + Number(seconds)) * 1000;
  return ms === 0 ? MINUTE_MS : ms;
}

const momentOf = (text: string | undefined): EpochMs => parseRfc3339(text) ?? epochMs(0);

async function read<T>(client: Client, api: string, path: string, query: Readonly<Record<string, string>>): Promise<T> {
  try {
    return await client.get<T>(path, query);
  } catch (error) {
    throw new MetricError(`unable to fetch metrics from ${api} metrics API: ${errorMessage(error)}`, { cause: error });
  }
}

/** What pods use of a resource, or their containers of one name. A pod with a container that has no figure is left out. */
export async function resourceMetrics(
  client: Client,
  namespace: string,
  labelSelector: string,
  resource: string,
  container: string | undefined,
): Promise<ReadonlyMap<string, PodMetric>> {
  const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${namespace}/pods`;
  const { items } = await read<PodMetricsList>(client, 'resource', path, { labelSelector });
  if (items.length === 0) throw new MetricError('no metrics returned from resource metrics API');
  const found = new Map<string, PodMetric>();
  for (const { metadata, timestamp, window, containers = [] } of items) {
    const counted = containers.filter(({ name }) => container === undefined || name === container);
    const values = counted.map(({ usage }) => new Map(Object.entries(usage ?? {})).get(resource));
    if (values.length === 0 || values.includes(undefined)) continue;
    const value = values.reduce((sum, each) => sum + quantityMilli(each ?? 0), 0);
    found.set(metadata.name, { value, at: momentOf(timestamp), windowMs: windowMs(window) });
  }
  return found;
}

/** A metric of one's own of each pod. `metricSelector`: labels of the metric, as text. */
export async function customPodMetrics(
  client: Client,
  namespace: string,
  labelSelector: string,
  metric: string,
  metricLabelSelector: string,
): Promise<ReadonlyMap<string, PodMetric>> {
  const path = `/apis/custom.metrics.k8s.io/v1beta2/namespaces/${namespace}/pods/*/${metric}`;
  const { items } = await read<MetricValueList>(client, 'custom', path, { labelSelector, metricLabelSelector });
  if (items.length === 0) throw new MetricError('no metrics returned from custom metrics API');
  return new Map(
    items.map(({ describedObject, timestamp, windowSeconds, value }) => [
      describedObject?.name ?? '',
      {
        value: quantityMilli(value),
        at: momentOf(timestamp),
        windowMs: windowSeconds === undefined ? MINUTE_MS : windowSeconds * 1000,
      },
    ]),
  );
}

/** A metric of one object of the namespace, in thousandths. `resource`: plural and group of its kind. */
export async function objectMetric(
  client: Client,
  namespace: string,
  resource: string,
  { name }: CrossVersionObjectReference,
  metric: string,
  metricLabelSelector: string,
): Promise<number> {
  const path = `/apis/custom.metrics.k8s.io/v1beta2/namespaces/${namespace}/${resource}/${name}/${metric}`;
  const { items } = await read<MetricValueList>(client, 'custom', path, { metricLabelSelector });
  const [first] = items;
  if (first === undefined) throw new MetricError('no metrics returned from custom metrics API');
  return quantityMilli(first.value);
}

/** The sum of all series of a metric from outside, in thousandths. */
export async function externalMetric(
  client: Client,
  namespace: string,
  metric: string,
  labelSelector: string,
): Promise<number> {
  const path = `/apis/external.metrics.k8s.io/v1beta1/namespaces/${namespace}/${metric}`;
  const { items } = await read<MetricValueList>(client, 'external', path, { labelSelector });
  if (items.length === 0) throw new MetricError('no metrics returned from external metrics API');
  return items.reduce((sum, { value }) => sum + quantityMilli(value), 0);
}
