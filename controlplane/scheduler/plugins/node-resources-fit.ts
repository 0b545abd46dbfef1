// NodeResourcesFit (Filter, Score): the pod's requests fit into what the node can allocate and has not given to others; of the
// nodes where they do, one is better by how much would be requested then. Pure.

import type { Pod } from '../../../client/types.ts';
import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import { isNodeChange } from '../events.ts';
import type { Plugin } from '../framework/plugin.ts';
import { type Rejection, unresolvable, unschedulable } from '../framework/status.ts';
import { amountsOf, podRequests } from '../requests.ts';
import {
  leastAllocated,
  mostAllocated,
  type ResourceWeight,
  requestedToCapacityRatio,
  type ShapePoint,
  usages,
} from './resource-scoring.ts';

export interface NodeResourcesFitArgs {
  /** Extended resources that are not filtered by, and prefixes of their names. */
  readonly ignoredResources: readonly string[];
  readonly ignoredResourceGroups: readonly string[];
  readonly strategy: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio';
  readonly resources: readonly ResourceWeight[];
  readonly shape: readonly ShapePoint[];
}

export const CPU_AND_MEMORY: readonly ResourceWeight[] = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
];

export const FIT_DEFAULTS: NodeResourcesFitArgs = {
  ignoredResources: [],
  ignoredResourceGroups: [],
  strategy: 'LeastAllocated',
  resources: CPU_AND_MEMORY,
  shape: [],
};

/** Every resource that is short; one of which the node has too little even when empty makes it hopeless. */
function shortages(pod: PodInfo, node: NodeInfo, ignored: (name: string) => boolean): Rejection | undefined {
  const reasons: string[] = [];
  let hopeless = false;
  if (node.pods.size + 1 > node.allowedPods) reasons.push('Too many pods');
  const check = (name: string, wanted: number, allocatable: number, requested: number): void => {
    if (wanted === 0 || wanted <= allocatable - requested) return;
    reasons.push(`Insufficient ${name}`);
    if (wanted > allocatable) hopeless = true;
  };
  const { requests } = pod;
  const { allocatable, requested } = node;
  check('cpu', requests.cpu, allocatable.cpu, requested.cpu);
  check('memory', requests.memory, allocatable.memory, requested.memory);
  check('ephemeral-storage', requests.ephemeralStorage, allocatable.ephemeralStorage, requested.ephemeralStorage);
  for (const [name, wanted] of requests.scalars) {
    if (!ignored(name)) check(name, wanted, allocatable.amountOf(name), requested.amountOf(name));
  }
  if (reasons.length === 0) return undefined;
  return hopeless ? unresolvable(...reasons) : unschedulable(...reasons);
}

/** Whether an empty node of these resources would do. */
function fitsEmpty(pod: PodInfo, allocatable: Readonly<Record<string, string>> | undefined): boolean {
  const amounts = amountsOf(allocatable);
  return [...podRequests(pod.pod)].every(([name, wanted]) => wanted === 0 || wanted <= (amounts.get(name) ?? 0));
}

function sharesResource(pod: PodInfo, other: Pod): boolean {
  const freed = podRequests(other);
  const wants = [...podRequests(pod.pod)];
  // Every pod takes one of the node's places for pods.
  return wants.length === 0 || wants.some(([name, wanted]) => wanted > 0 && (freed.get(name) ?? 0) > 0);
}

export function nodeResourcesFit(args: NodeResourcesFitArgs = FIT_DEFAULTS): Plugin {
  const { ignoredResources, ignoredResourceGroups, strategy, resources, shape } = args;
  const ignored = (name: string): boolean =>
    ignoredResources.includes(name) || ignoredResourceGroups.includes(name.split('/')[0] ?? '');
  return {
    name: 'NodeResourcesFit',
    filter: (_state, pod, node) => shortages(pod, node, ignored),
    score: (_state, pod, node) => {
      const of = usages(pod, node, resources, true);
      switch (strategy) {
        case 'LeastAllocated':
          return leastAllocated(of);
        case 'MostAllocated':
          return mostAllocated(of);
        case 'RequestedToCapacityRatio':
          return requestedToCapacityRatio(shape, of);
      }
    },
    worthRetrying: (event, pod) => {
      switch (event.resource) {
        case 'AssignedPod':
          if (event.action === 'delete') return true;
          return event.action === 'update' && event.changed.has('requests') && sharesResource(pod, event.old);
        case 'Self':
          return event.changed.has('requests');
        case 'Node':
          return isNodeChange(event, 'allocatable') && fitsEmpty(pod, event.object.status?.allocatable);
        default:
          return false;
      }
    },
  };
}
