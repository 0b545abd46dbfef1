// How many replicas a metric asks for. Pure: pods and figures in, a number out. All figures are in thousandths.

import type { Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { quantityMilli } from '../../../lib/quantity.ts';
import { type AutoscalerSettings, groupPods, type PodMetrics } from './pod-groups.ts';

/** What a metric proposes. */
export interface Proposal {
  readonly replicas: number;
  /** The average of a pod, or the whole value, as status.currentMetrics has it. */
  readonly value: number;
  /** Percent of what the pods request; for targets in percent alone. */
  readonly utilization?: number;
}

export interface Scene {
  /** spec.replicas of the target. */
  readonly current: number;
  readonly pods: readonly Pod[];
  readonly settings: AutoscalerSettings;
  readonly now: EpochMs;
}

/** A metric that cannot be made use of; the message is upstream's. */
export class MetricError extends Error {
  override readonly name = 'MetricError';
}

const NO_PODS = 'no pods returned by selector while calculating replica count';
const NO_METRICS = 'did not receive metrics for targeted pods (pods might be unready)';

/** A figure for each pod that is to count, and how much more than the target they use together. */
interface Measure {
  readonly ratio: number;
  readonly value: number;
  readonly utilization?: number;
}
type Measuring = (values: ReadonlyMap<string, number>) => Measure;

interface Fallbacks {
  /** Of a pod without a figure when less is used than wanted: it must not make the target smaller. */
  readonly high: (pod: string) => number;
}

/**
 * The rules that all metrics of pods share. Pods without a figure, and unready ones on the way up, count such that they damp the
 * change, and never turn it round.
 */
function propose(
  { current, pods, settings, now }: Scene,
  metrics: PodMetrics,
  resource: string | undefined,
  measure: Measuring,
  { high }: Fallbacks,
  keepsDirection: boolean,
): Proposal {
  if (pods.length === 0) throw new MetricError(NO_PODS);
  const { readyCount, unready, missing, ignored } = groupPods(pods, metrics, resource, settings, now);
  const values = new Map<string, number>();
  for (const [name, { value }] of metrics) if (!unready.has(name) && !ignored.has(name)) values.set(name, value);
  if (values.size === 0) throw new MetricError(NO_METRICS);
  const { ratio, ...seen } = measure(values);
  const isNear = (each: number): boolean => Math.abs(1 - each) <= settings.tolerance;
  const withUnready = unready.size > 0 && ratio > 1;
  if (!withUnready && missing.size === 0) {
    return { ...seen, replicas: isNear(ratio) ? current : Math.ceil(ratio * readyCount) };
  }
  for (const name of missing) values.set(name, ratio < 1 ? high(name) : 0);
  if (withUnready) for (const name of unready) values.set(name, 0);
  const damped = measure(values).ratio;
  if (isNear(damped) || (ratio < 1 && damped > 1) || (ratio > 1 && damped < 1)) return { ...seen, replicas: current };
  const replicas = Math.ceil(damped * values.size);
  const turns = (damped < 1 && replicas > current) || (damped > 1 && replicas < current);
  return { ...seen, replicas: keepsDirection && turns ? current : replicas };
}

/** What a pod requests of a resource. Throws MetricError for a container without a request. */
function requestOf(pod: Pod, resource: string, container: string | undefined): number {
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const counted = [...pod.spec.containers, ...sidecars].filter(
    ({ name }) => container === undefined || name === container,
  );
  if (container !== undefined && counted.length === 0) {
    throw new MetricError(`container ${container} not found in Pod ${pod.metadata.name}`);
  }
  return counted.reduce((sum, { name, resources }) => {
    const requests = new Map(Object.entries(resources?.requests ?? {}));
    const request = requests.get(resource);
    if (request === undefined) {
      throw new MetricError(`missing request for ${resource} in container ${name} of Pod ${pod.metadata.name}`);
    }
    return sum + quantityMilli(request);
  }, 0);
}

/** For a target in percent of what the pods request. `container` of each pod alone, where one is named. */
export function byUtilization(
  scene: Scene,
  metrics: PodMetrics,
  resource: string,
  container: string | undefined,
  targetPercent: number,
): Proposal {
  if (scene.pods.length === 0) throw new MetricError(NO_PODS);
  const requests = new Map(scene.pods.map((pod) => [pod.metadata.name, requestOf(pod, resource, container)]));
  const measure: Measuring = (values) => {
    let [used, requested, count] = [0, 0, 0];
    for (const [name, value] of values) {
      const request = requests.get(name);
      // A figure of a pod that is gone meanwhile.
      if (request === undefined) continue;
      used += value;
      requested += request;
      count++;
    }
    if (requested === 0) throw new MetricError('no metrics returned matched known pods');
    const utilization = Math.trunc((used * 100) / requested);
    return { ratio: utilization / targetPercent, utilization, value: Math.trunc(used / count) };
  };
  const high = (name: string): number => ((requests.get(name) ?? 0) * Math.max(100, targetPercent)) / 100;
  return propose(scene, metrics, resource, measure, { high }, true);
}

/** For a target that is an average of all pods. */
export function byAverage(
  scene: Scene,
  metrics: PodMetrics,
  resource: string | undefined,
  targetMilli: number,
): Proposal {
  const measure: Measuring = (values) => {
    const value = Math.trunc([...values.values()].reduce((sum, each) => sum + each, 0) / values.size);
    return { ratio: value / targetMilli, value };
  };
  return propose(scene, metrics, resource, measure, { high: () => targetMilli }, false);
}

/** For one value, of an object or from outside, that is to be near the target. */
export function byValue({ current, pods, settings }: Scene, value: number, targetMilli: number): Proposal {
  const ratio = value / targetMilli;
  if (current === 0) return { replicas: Math.ceil(ratio), value };
  if (Math.abs(1 - ratio) <= settings.tolerance) return { replicas: current, value };
  if (pods.length === 0) throw new MetricError(`unable to calculate ready pods: ${NO_PODS}`);
  const ready = pods.filter(
    ({ status }) =>
      status?.phase === 'Running' &&
      status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  );
  return { replicas: Math.ceil(ratio * ready.length), value };
}

/** For one value that is to be shared by the pods, so much for each. `replicas`: status.replicas of the target. */
export function byShare(settings: AutoscalerSettings, replicas: number, value: number, targetMilli: number): Proposal {
  const ratio = value / (targetMilli * replicas);
  const isNear = Math.abs(1 - ratio) <= settings.tolerance;
  return {
    replicas: isNear ? replicas : Math.ceil(value / targetMilli),
    value: replicas === 0 ? value : Math.ceil(value / replicas),
  };
}
