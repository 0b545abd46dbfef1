// What one object uses of the resources that quotas limit (pkg/quota/v1/evaluator/core): compute resources of pods, node
// ports and load balancers of services, storage of claims by class, and the count of objects of any kind. Pure.

import { getOwn } from '../own-property.ts';
import { isNative } from '../resource-names.ts';
import { type Amount, type Amounts, amountOf, amountsOf, whole } from './amounts.ts';
import type { Counted, CountedClaim, CountedContainer, CountedPod, CountedService } from './objects.ts';
import { podResources } from './pod-resources.ts';

/** The class of claims of old. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const UNIT = 1_000_000_000n;
const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'];
/** Core kinds that quotas could count before there were names like count/secrets. */
const OLD_COUNTS = ['configmaps', 'secrets', 'replicationcontrollers', 'resourcequotas'];
const CLASS_SUFFIX = '.storageclass.storage.k8s.io/';
/** What every container must state when a quota limits it. */
const MUST_STATE = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];

export interface CountedResource {
  readonly group: string;
  readonly plural: string;
}

/** "count/pods", "count/deployments.apps" */
export function countName({ group, plural }: CountedResource): string {
  return group === '' ? `count/${plural}` : `count/${plural}.${group}`;
}

/** The resource whose objects use what `name` limits; undefined where it is a pod's resource. */
export function countedBy(name: string): CountedResource | undefined {
  const count = /^count\/([^.]+)\.?(.*)$/.exec(name);
  if (count !== null) return { group: count[2] ?? '', plural: count[1] ?? '' };
  if (OLD_COUNTS.includes(name)) return { group: '', plural: name };
  if (name === 'services' || name.startsWith('services.')) return { group: '', plural: 'services' };
  if (name === 'persistentvolumeclaims' || name === 'requests.storage' || name.includes(CLASS_SUFFIX)) {
    return { group: '', plural: 'persistentvolumeclaims' };
  }
  return { group: '', plural: 'pods' };
}

function compute(requests: Amounts, limits: Amounts): Map<string, Amount> {
  const result = new Map<string, Amount>([['pods', whole(1)]]);
  for (const [name, amount] of requests) {
    const hugePages = name.startsWith('hugepages-');
    if (COMPUTE.includes(name) || hugePages) result.set(name, amount);
    if (COMPUTE.includes(name) || hugePages || !isNative(name)) result.set(`requests.${name}`, amount);
  }
  for (const [name, amount] of limits) if (COMPUTE.includes(name)) result.set(`limits.${name}`, amount);
  return result;
}

function podUsage({ spec = {}, status }: CountedPod): Amounts {
  const counted: [string, Amount] = ['count/pods', whole(1)];
  // One that has ended is an object still, and uses nothing.
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return new Map([counted]);
  return compute(podResources(spec, 'requests'), podResources(spec, 'limits')).set(...counted);
}

function serviceUsage({ spec = {} }: CountedService): Amounts {
  const { type, ports = [], allocateLoadBalancerNodePorts } = spec;
  const explicit = type === 'LoadBalancer' && allocateLoadBalancerNodePorts === false;
  const nodePorts = explicit ? ports.filter(({ nodePort = 0 }) => nodePort !== 0).length : ports.length;
  return new Map([
    ['count/services', whole(1)],
    ['services', whole(1)],
    ['services.nodeports', whole(type === 'NodePort' || type === 'LoadBalancer' ? nodePorts : 0)],
    ['services.loadbalancers', whole(type === 'LoadBalancer' ? 1 : 0)],
  ]);
}

function claimUsage({ metadata, spec = {}, status }: CountedClaim): Amounts {
  const result = new Map([
    ['count/persistentvolumeclaims', whole(1)],
    ['persistentvolumeclaims', whole(1)],
  ]);
  const storageClass = getOwn(metadata?.annotations, CLASS_ANNOTATION) ?? spec.storageClassName ?? '';
  if (storageClass !== '') result.set(`${storageClass}${CLASS_SUFFIX}persistentvolumeclaims`, whole(1));
  const requested = spec.resources?.requests?.['storage'];
  if (requested === undefined) return result;
  const [wanted, allocated] = [amountOf(requested), amountOf(status?.allocatedResources?.['storage'])];
  const larger = allocated.nano > wanted.nano ? allocated : wanted;
  // In whole bytes.
  const storage = { ...larger, nano: ((larger.nano + UNIT - 1n) / UNIT) * UNIT };
  result.set('requests.storage', storage);
  if (storageClass !== '') result.set(`${storageClass}${CLASS_SUFFIX}requests.storage`, storage);
  return result;
}

export function usageOf(resource: CountedResource, object: Counted): Amounts {
  if (object.kind === 'pod') return podUsage(object.pod);
  if (object.kind === 'service') return serviceUsage(object.service);
  if (object.kind === 'claim') return claimUsage(object.claim);
  const counts = new Map([[countName(resource), whole(1)]]);
  if (resource.group === '' && OLD_COUNTS.includes(resource.plural)) counts.set(resource.plural, whole(1));
  return counts;
}

/** Which of a quota's resources objects of this resource can use. */
export function resourcesLimited(resource: CountedResource, hard: readonly string[]): string[] {
  return hard.filter((name) => {
    const counted = countedBy(name);
    return counted?.group === resource.group && counted.plural === resource.plural;
  });
}

/** The containers that do not state what a quota limits: "requests.cpu for: a,b"; undefined when all do. */
export function unstated(object: Counted, limited: readonly string[]): string | undefined {
  if (object.kind !== 'pod') return undefined;
  const { containers = [], initContainers = [] } = object.pod.spec ?? {};
  const states = ({ resources }: CountedContainer): Amounts =>
    compute(amountsOf(resources?.requests), amountsOf(resources?.limits));
  const missing = limited
    .filter((name) => MUST_STATE.includes(name))
    .sort()
    .flatMap((name) => {
      const without = [...containers, ...initContainers].filter((container) => !states(container).has(name));
      const names = [...new Set(without.map((container) => container.name ?? ''))].sort();
      return names.length === 0 ? [] : [`${name} for: ${names.join(',')}`];
    });
  return missing.length === 0 ? undefined : missing.join('; ');
}
