// Whether a pod fits among the others on this node: pods, cpu, memory, ephemeral storage, and whatever else the node
// offers. The scheduler has checked the same before; the node decides. Pure.

import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { amountOf, podRequest, requestedResources } from './requests.ts';

/** One resource of which there is not enough. cpu in millicores, everything else in whole units. */
export interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

const FIRST = ['cpu', 'memory', 'ephemeral-storage'];

/** A resource with a domain that is not Kubernetes' own. */
function isExtended(name: string): boolean {
  const [domain, ...rest] = name.split('/');
  return rest.length > 0 && domain !== 'kubernetes.io' && !(domain ?? '').endsWith('.kubernetes.io');
}

/** Everything that the node lacks for the pod, in the kubelet's order. */
export function shortages(
  pod: Pod,
  others: readonly Pod[],
  allocatable: Readonly<Record<string, string>>,
): readonly Shortage[] {
  const found: Shortage[] = [];
  const check = (resource: string): void => {
    const requested = podRequest(pod, resource);
    const capacity = amountOf(resource, getOwn(allocatable, resource));
    const used = others.reduce((sum, other) => sum + podRequest(other, resource), 0);
    if (requested > 0 && requested > capacity - used) found.push({ resource, requested, used, capacity });
  };
  check('pods');
  for (const resource of FIRST) check(resource);
  for (const resource of [...requestedResources(pod)].sort()) {
    if (FIRST.includes(resource) || resource === 'pods') continue;
    // An extended resource that this node does not report is managed by another component.
    if (isExtended(resource) && getOwn(allocatable, resource) === undefined) continue;
    check(resource);
  }
  return found;
}

export function shortageRefusal(shortage: Shortage): { readonly reason: string; readonly message: string } {
  const { resource, requested, used, capacity } = shortage;
  return {
    reason: `OutOf${resource}`,
    message:
      `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, ` +
      `capacity: ${capacity}`,
  };
}
