// A pod's resources as a whole: its QoS class, and its summed requests and limits. Pure. The rules are those of
// the API (Pod QoS; effective init container request, KEP-753 for restartable init containers; KEP-2837 for
// resources at pod level).

import type { Container, Pod } from '../../client/types.ts';
import { computePodQOS, type QOSClass } from '../../lib/qos-class.ts';
import { quantityMilli, quantityValue } from '../../lib/quantity.ts';
import { isSidecar } from '../../lib/sidecar.ts';

export type { QOSClass };

/** cpu in millicores, memory in bytes; absent when not stated. */
export interface ResourceFigures {
  readonly cpuMilli?: number | undefined;
  readonly memoryBytes?: number | undefined;
}

type Quantities = Readonly<Record<string, string>> | undefined;

export function resourceFigures(quantities: Quantities): ResourceFigures {
  const cpu = quantities?.['cpu'];
  const memory = quantities?.['memory'];
  return {
    ...(cpu === undefined ? {} : { cpuMilli: quantityMilli(cpu) }),
    ...(memory === undefined ? {} : { memoryBytes: quantityValue(memory) }),
  };
}

/** Resources of the pod as a whole, where the spec has them (PodLevelResources). */
function podLevel(pod: Pod): { requests?: Quantities; limits?: Quantities } | undefined {
  const spec: Pod['spec'] & { resources?: { requests?: Quantities; limits?: Quantities } } = pod.spec;
  return spec.resources;
}

const QOS_CLASSES: readonly QOSClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];

/** The class in the pod's status when the server has set it (it never changes), else computed from the spec. */
export function podQOSClass(pod: Pod): QOSClass {
  return QOS_CLASSES.find((qos) => qos === pod.status?.qosClass) ?? computePodQOS(pod.spec);
}

type Figure = 'cpuMilli' | 'memoryBytes';

/**
 * The sum over a pod of one figure: containers and sidecars run together; each plain init container runs alone with
 * the sidecars before it. Undefined when `of` returns undefined for a container that runs for good (a limit is then
 * not bounded) and `needAll` is set.
 */
function sum(
  pod: Pod,
  figure: Figure,
  of: (container: Container) => ResourceFigures,
  needAll: boolean,
): number | undefined {
  let sidecars = 0;
  let initPeak = 0;
  let unbounded = false;
  for (const container of pod.spec.initContainers ?? []) {
    const value = of(container)[figure];
    if (value === undefined) unbounded = true;
    if (isSidecar(container)) {
      sidecars += value ?? 0;
      initPeak = Math.max(initPeak, sidecars);
    } else initPeak = Math.max(initPeak, sidecars + (value ?? 0));
  }
  let together = sidecars;
  for (const container of pod.spec.containers) {
    const value = of(container)[figure];
    if (value === undefined) unbounded = true;
    together += value ?? 0;
  }
  return needAll && unbounded ? undefined : Math.max(together, initPeak);
}

function overhead(pod: Pod): ResourceFigures {
  return resourceFigures(pod.spec.overhead);
}

/** Limits of the pod as a whole, where the spec has them (KEP-2837). */
export function podLevelLimits(pod: Pod): Readonly<Record<string, string>> {
  return podLevel(pod)?.limits ?? {};
}

/**
 * The sums of the requests or limits that containers state, without overhead: a figure is absent only where no container
 * states it. For the runtime; what bounds a pod is `podLimits`.
 */
export function statedSums(pod: Pod, part: 'requests' | 'limits'): ResourceFigures {
  const whole = resourceFigures(podLevel(pod)?.[part]);
  const of = ({ resources }: Container): ResourceFigures => resourceFigures(resources?.[part]);
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(of);
  const stated = (figure: Figure): number | undefined =>
    whole[figure] ?? (all.some((one) => one[figure] !== undefined) ? sum(pod, figure, of, false) : undefined);
  return { cpuMilli: stated('cpuMilli'), memoryBytes: stated('memoryBytes') };
}

/** What a container requests; one that states only a limit requests that limit. */
function requestsOf({ resources }: Container): ResourceFigures {
  return { ...resourceFigures(resources?.limits), ...resourceFigures(resources?.requests) };
}

/** The memory that the pod as a whole requests beyond what its containers do, shared out evenly among them. Bytes. */
export function unclaimedMemoryPerContainer(pod: Pod): number {
  const whole = resourceFigures(podLevel(pod)?.requests).memoryBytes ?? 0;
  if (whole === 0) return 0;
  const claimed = sum(pod, 'memoryBytes', requestsOf, false) ?? 0;
  return Math.trunc((whole - claimed) / (pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0)));
}

/** Limits of one container: what it has none of itself is limited to what the pod as a whole may use (KEP-2837). */
export function effectiveLimits(pod: Pod, { resources }: Pick<Container, 'resources'>): ResourceFigures {
  const own = resourceFigures(resources?.limits);
  const whole = resourceFigures(podLevel(pod)?.limits);
  return {
    cpuMilli: own.cpuMilli || whole.cpuMilli || own.cpuMilli,
    memoryBytes: own.memoryBytes || whole.memoryBytes || own.memoryBytes,
  };
}

/** Requests of the pod with its overhead. */
export function podRequests(
  pod: Pod,
  options: { readonly withOverhead: boolean },
): { readonly cpuMilli: number; readonly memoryBytes: number } {
  const extra = options.withOverhead ? overhead(pod) : {};
  const level = resourceFigures(podLevel(pod)?.requests);
  return {
    cpuMilli: (level.cpuMilli ?? sum(pod, 'cpuMilli', requestsOf, false) ?? 0) + (extra.cpuMilli ?? 0),
    memoryBytes: (level.memoryBytes ?? sum(pod, 'memoryBytes', requestsOf, false) ?? 0) + (extra.memoryBytes ?? 0),
  };
}

/** Limits of the pod with its overhead; a figure is absent unless every container limits it. */
export function podLimits(pod: Pod, options: { readonly withOverhead: boolean }): ResourceFigures {
  const extra = options.withOverhead ? overhead(pod) : {};
  const level = resourceFigures(podLevel(pod)?.limits);
  // A limit of 0 is no limit.
  const of = (container: Container): ResourceFigures => {
    const { cpuMilli, memoryBytes } = resourceFigures(container.resources?.limits);
    return { cpuMilli: cpuMilli || undefined, memoryBytes: memoryBytes || undefined };
  };
  const cpu = level.cpuMilli ?? sum(pod, 'cpuMilli', of, true);
  const memory = level.memoryBytes ?? sum(pod, 'memoryBytes', of, true);
  return {
    ...(cpu === undefined ? {} : { cpuMilli: cpu + (extra.cpuMilli ?? 0) }),
    ...(memory === undefined ? {} : { memoryBytes: memory + (extra.memoryBytes ?? 0) }),
  };
}

/** cgroup v1 cpu.shares for millicores: 1024 per core, at least 2, at most 262144. */
export function cpuShares(milli: number): number {
  return Math.min(262_144, Math.max(2, Math.floor((milli * 1024) / 1000)));
}

/** CFS quota in µs for a limit in millicores over `periodUs`; at least 1000 µs; 0 (no quota) for a limit of 0. */
export function cpuQuotaUs(milli: number, periodUs: number): number {
  return milli === 0 ? 0 : Math.max(1000, Math.floor((milli * periodUs) / 1000));
}
