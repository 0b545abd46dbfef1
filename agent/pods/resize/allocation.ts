// The allocated resources of a pod, by container, and the pod's spec with them (KEP-1287). A resize changes the desired
// resources in the spec at once; the node allocates them when they fit, so until then the two differ. Pure.

import type { Container, Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { podQOSClass, podRequests, type ResourceFigures, resourceFigures } from '../../model/pod-resources.ts';
import { isStaticPod } from '../../model/static-pods.ts';

export type Quantities = Readonly<Record<string, string>>;

/** Requests, limits and claims of one container, in the words of its spec. Claims are never resized. */
export interface Resources {
  readonly limits?: Quantities;
  readonly requests?: Quantities;
  readonly claims?: readonly { readonly name: string; readonly request?: string }[];
}

/** By container name: those that can be resized. */
export type PodAllocation = Readonly<Record<string, Resources>>;

/** Regular containers and sidecars; an init container that ends is never resized. */
export function resizableContainers({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []).filter(isSidecar), ...spec.containers];
}

export function resourcesOf({ resources }: Pick<Container, 'resources'>): Resources {
  const { requests, limits, claims } = resources ?? {};
  return {
    ...(limits === undefined ? {} : { limits }),
    ...(requests === undefined ? {} : { requests }),
    ...(claims === undefined ? {} : { claims }),
  };
}

export function allocationOf(pod: Pod): PodAllocation {
  return Object.fromEntries(resizableContainers(pod).map((container) => [container.name, resourcesOf(container)]));
}

/** What can be changed of a running container: cpu in millicores, memory in bytes; 0 is "not stated". */
export interface Figures {
  readonly cpuRequest: number;
  readonly cpuLimit: number;
  readonly memoryRequest: number;
  readonly memoryLimit: number;
}

export function figuresOf({ requests, limits }: Resources): Figures {
  const requested = resourceFigures(requests);
  const most = resourceFigures(limits);
  return {
    cpuRequest: requested.cpuMilli ?? 0,
    cpuLimit: most.cpuMilli ?? 0,
    memoryRequest: requested.memoryBytes ?? 0,
    memoryLimit: most.memoryBytes ?? 0,
  };
}

const FIGURES = [
  ['requests', 'cpu', 'cpuMilli'],
  ['requests', 'memory', 'memoryBytes'],
  ['limits', 'cpu', 'cpuMilli'],
  ['limits', 'memory', 'memoryBytes'],
] as const;

export function sameResources(a: Resources, b: Resources): boolean {
  return FIGURES.every(([part, name, figure]) => {
    const [left, right] = [a[part]?.[name], b[part]?.[name]];
    // Mostly they are spelled alike: nothing is parsed then.
    if (left === right) return true;
    const amount = (quantity: string | undefined): number =>
      (quantity === undefined ? undefined : resourceFigures({ [name]: quantity })[figure]) ?? 0;
    return amount(left) === amount(right);
  });
}

export function sameAllocation(a: PodAllocation, b: PodAllocation): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => sameResources(getOwn(a, name) ?? {}, getOwn(b, name) ?? {}));
}

/** The pod with each container's resources replaced by what `choose` gives; the same object when nothing differs. */
function withResources(pod: Pod, choose: (container: Container) => Resources | undefined): Pod {
  let differs = false;
  const replaced = (container: Container): Container => {
    const chosen = choose(container);
    if (chosen === undefined || sameResources(chosen, resourcesOf(container))) return container;
    differs = true;
    const { claims } = container.resources ?? {};
    return {
      ...container,
      resources: {
        ...(chosen.requests === undefined ? {} : { requests: { ...chosen.requests } }),
        ...(chosen.limits === undefined ? {} : { limits: { ...chosen.limits } }),
        ...(claims === undefined ? {} : { claims }),
      },
    };
  };
  const containers = pod.spec.containers.map(replaced);
  const initContainers = pod.spec.initContainers?.map((init) => (isSidecar(init) ? replaced(init) : init));
  if (!differs) return pod;
  return {
    ...pod,
    spec: { ...pod.spec, containers, ...(initContainers === undefined ? {} : { initContainers }) },
  };
}

/** The pod with its allocated resources instead of the desired ones. */
export function withAllocation(pod: Pod, allocation: PodAllocation): Pod {
  return withResources(pod, ({ name }) => getOwn(allocation, name));
}

const RESIZABLE = ['cpu', 'memory'] as const;

/** The larger of each figure. A limit is kept only where both have one: without one there is no most. */
function larger(a: Resources, b: Resources): Resources {
  const pick = (from: Quantities | undefined, or: Quantities | undefined, both: boolean): Record<string, string> => {
    const picked: Record<string, string> = {};
    for (const resource of RESIZABLE) {
      const [left, right] = [from?.[resource], or?.[resource]];
      if (left === undefined || right === undefined) {
        const one = left ?? right;
        if (one !== undefined && !both) picked[resource] = one;
        continue;
      }
      const figure = (quantity: string): number => {
        const { cpuMilli, memoryBytes } = resourceFigures({ [resource]: quantity });
        return cpuMilli ?? memoryBytes ?? 0;
      };
      picked[resource] = figure(left) >= figure(right) ? left : right;
    }
    return picked;
  };
  return { requests: pick(a.requests, b.requests, false), limits: pick(a.limits, b.limits, true) };
}

/**
 * The pod as large as it may be at any moment of a resize: its cgroup is made that large before any container grows, and
 * set to the allocated size when the last has shrunk. `actual`: actuated resources, where they differ.
 */
export function roomFor(pod: Pod, actual: PodAllocation): Pod {
  return withResources(pod, (container) => {
    const now = getOwn(actual, container.name);
    return now === undefined ? undefined : larger(now, resourcesOf(container));
  });
}

/**
 * The allocation of a pod whose recorded one may be incomplete: a status has resources only of containers that were
 * started. A container that is missing has the resources of the spec, as in the kubelet; one that cannot be resized is left out.
 */
export function completeAllocation(pod: Pod, recorded: PodAllocation = {}): PodAllocation {
  const allocated = (container: Container): Resources => getOwn(recorded, container.name) ?? resourcesOf(container);
  return Object.fromEntries(resizableContainers(pod).map((container) => [container.name, allocated(container)]));
}

/** The allocated resources that an earlier agent reported in the status, for pods without a checkpoint. */
export function allocationFromStatus(pod: Pod): PodAllocation | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const reported = [...initContainerStatuses, ...containerStatuses].filter((status) => status.resources !== undefined);
  if (reported.length === 0) return undefined;
  return Object.fromEntries(
    reported.map(({ name, allocatedResources, resources }) => {
      const requests = allocatedResources ?? resources?.requests;
      const limits = resources?.limits;
      return [name, { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) }];
    }),
  );
}

export type Infeasibility = { readonly reason: 'Infeasible' | 'Deferred'; readonly message: string };

/** Resources of the pod as a whole, where the spec has them (KEP-2837). */
function hasPodLevelResources(pod: Pod): boolean {
  return 'resources' in pod.spec && pod.spec['resources'] !== undefined;
}

/** Why a resize cannot be allocated: never on this node (Infeasible), or not now (Deferred). undefined: it can. */
export function checkResize(
  pod: Pod,
  others: readonly Pod[],
  allocatable: Quantities,
  isStatic: boolean,
): Infeasibility | undefined {
  if (isStatic) return { reason: 'Infeasible', message: 'In-place resize of static-pods is not supported' };
  if (hasPodLevelResources(pod)) {
    return { reason: 'Infeasible', message: 'In-place resize of pods with pod-level resources is not supported' };
  }
  const capacity = resourceFigures(allocatable);
  const requested = podRequests(pod, { withOverhead: true });
  const rows = [
    { resource: 'memory', figure: 'memoryBytes' },
    { resource: 'cpu', figure: 'cpuMilli' },
  ] as const;
  for (const { resource, figure } of rows) {
    const most = capacity[figure];
    if (most !== undefined && requested[figure] > most) {
      const message = `Node didn't have enough capacity: ${resource}, requested: ${requested[figure]}, capacity: ${most}`;
      return { reason: 'Infeasible', message };
    }
  }
  for (const { resource, figure } of rows.toReversed()) {
    const most = capacity[figure];
    const used = others.reduce((sum, other) => sum + podRequests(other, { withOverhead: true })[figure], 0);
    if (most !== undefined && requested[figure] > 0 && requested[figure] > most - used) {
      const message =
        `Node didn't have enough resource: ${resource}, requested: ${requested[figure]}, used: ${used}, ` +
        `capacity: ${most}`;
      return { reason: 'Deferred', message };
    }
  }
  return undefined;
}

/** The input of a decision about a resize. */
export interface ResizeInput {
  /** As its source has it. */
  readonly pod: Pod;
  readonly allocated: PodAllocation;
  /** Why the resize is pending, as last reported. */
  readonly pending: Infeasibility | undefined;
  /** The running instances are known by their ids. */
  readonly observed: boolean;
  /** The other pods that use the node, with their allocated resources, and the node's allocatable. Called only where it matters. */
  readonly node: () => { readonly others: readonly Pod[]; readonly allocatable: Quantities };
}

export type ResizeDecision =
  | { readonly kind: 'unchanged' }
  /** The desired resources are the allocated ones again: nothing is pending any more. */
  | { readonly kind: 'withdrawn' }
  /** `since`: the resize is pending for another reason than before, and waits from now on. */
  | { readonly kind: 'pending'; readonly why: Infeasibility; readonly since: 'before' | 'now' }
  /** The desired resources fit and are allocated. */
  | { readonly kind: 'allocated'; readonly allocated: PodAllocation };

/** Decides about the desired resources of the pod. Pure, if `node` is. */
export function decideResize({ pod, allocated, pending, observed, node }: ResizeInput): ResizeDecision {
  const desired = allocationOf(pod);
  if (sameAllocation(desired, allocated)) return { kind: pending === undefined ? 'unchanged' : 'withdrawn' };
  if (!observed || pod.metadata.deletionTimestamp !== undefined) return { kind: 'unchanged' };
  const { others, allocatable } = node();
  const why = checkResize(pod, others, allocatable, isStaticPod(pod));
  if (why === undefined) return { kind: 'allocated', allocated: desired };
  if (pending?.reason !== why.reason) return { kind: 'pending', why, since: 'now' };
  return pending.message === why.message ? { kind: 'unchanged' } : { kind: 'pending', why, since: 'before' };
}

/** Whether the pod requests more than is allocated to it. */
export function requestsMore(pod: Pod, effective: Pod): boolean {
  const [now, before] = [pod, effective].map((one) => podRequests(one, { withOverhead: true }));
  return (now?.cpuMilli ?? 0) > (before?.cpuMilli ?? 0) || (now?.memoryBytes ?? 0) > (before?.memoryBytes ?? 0);
}

export interface WaitingResize {
  readonly pod: Pod;
  readonly effective: Pod;
  /** Since when (epoch ms) it waits. */
  readonly since: EpochMs;
}

/** The order of deferred resizes: those that request no more, then by priority, QoS class, and time of waiting. */
export function inResizeOrder<T extends WaitingResize>(waiting: readonly T[]): T[] {
  const rank = ({ pod, effective, since }: WaitingResize): readonly number[] => [
    requestsMore(pod, effective) ? 1 : 0,
    -(pod.spec.priority ?? 0),
    podQOSClass(pod) === 'Guaranteed' ? 0 : 1,
    since,
  ];
  return [...waiting].sort((a, b) => {
    const [left, right] = [rank(a), rank(b)];
    for (const [index, value] of left.entries()) {
      const difference = value - (right[index] ?? 0);
      if (difference !== 0) return difference;
    }
    return 0;
  });
}

export type { ResourceFigures };
