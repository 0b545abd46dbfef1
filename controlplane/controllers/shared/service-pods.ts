// What the controllers of endpoints ask of services and pods: which services select a pod, whether a change of a pod can
// change endpoints, which port a service means in a pod. Pure.

import type { ServicePort } from 'kubernetes-types/core/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import { type Change, objectKey } from '../../../client/store.ts';
import type { Pod, Service } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { isReady } from './pods.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';
export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';
export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
export const LEADER_ANNOTATION = 'control-plane.alpha.kubernetes.io/leader';

/** Its endpoints are these controllers' business: not those of an ExternalName, nor of a service without a selector. */
export function hasOwnEndpoints({ spec }: Service): boolean {
  return spec?.type !== 'ExternalName' && Object.keys(spec?.selector ?? {}).length > 0;
}

export function isHeadless({ spec }: Service): boolean {
  const { clusterIP = '' } = spec ?? {};
  return clusterIP === '' || clusterIP === 'None';
}

function selectsPod({ metadata, spec }: Service, pod: Pod): boolean {
  const matchLabels = spec?.selector ?? {};
  return (
    metadata.namespace === pod.metadata.namespace &&
    Object.keys(matchLabels).length > 0 &&
    matchesLabelSelector({ matchLabels }, pod.metadata.labels ?? {})
  );
}

export function podsOf(service: Service, pods: readonly Pod[]): readonly Pod[] {
  return pods.filter((pod) => selectsPod(service, pod));
}

/** Keys of the services whose endpoints a change of a pod may change. */
export function servicesOfChange(change: Change<Pod>, services: readonly Service[]): readonly string[] {
  const { object: pod } = change;
  const keysOf = (one: Pod): ReadonlySet<string> =>
    new Set(services.filter((service) => selectsPod(service, one)).map(objectKey));
  if (change.type !== 'modified') return [...keysOf(pod)];
  const { old } = change;
  const member = !sameJson(old.metadata.labels, pod.metadata.labels) || !sameName(old, pod);
  const endpoint = endpointChanged(old, pod);
  if (!member) return endpoint ? [...keysOf(pod)] : [];
  const [now, before] = [keysOf(pod), keysOf(old)];
  // Of a pod whose labels alone have changed, the services that selected it before and after need nothing.
  const all = [...new Set([...now, ...before])];
  return endpoint || !sameName(old, pod) ? all : all.filter((key) => now.has(key) !== before.has(key));
}

function sameName({ spec: a }: Pod, { spec: b }: Pod): boolean {
  return a.hostname === b.hostname && a.subdomain === b.subdomain;
}

function endpointChanged(old: Pod, now: Pod): boolean {
  const view = (pod: Pod): readonly unknown[] => [
    pod.metadata.deletionTimestamp !== undefined,
    isReady(pod),
    isTerminal(pod),
    pod.status?.podIP,
    pod.status?.podIPs,
    pod.spec.nodeName,
  ];
  return !sameJson(view(old), view(now));
}

function isTerminal({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Whether a pod has an endpoint at all. */
export function hasEndpoint(pod: Pod, includeTerminating: boolean): boolean {
  if (isTerminal(pod)) return false;
  if ((pod.status?.podIP ?? '') === '' && (pod.status?.podIPs ?? []).length === 0) return false;
  return includeTerminating || pod.metadata.deletionTimestamp === undefined;
}

/** The name that DNS has for a pod of a service whose subdomain the pod names. */
export function hostnameFor(pod: Pod, { metadata }: Service): string | undefined {
  const { hostname = '', subdomain } = pod.spec;
  return hostname !== '' && subdomain === metadata.name ? hostname : undefined;
}

/** The number that a service's targetPort is in this pod; undefined where no container has a port of that name. */
export function findPort(pod: Pod, { targetPort, protocol = 'TCP', port }: ServicePort): number | undefined {
  if (typeof targetPort === 'number') return targetPort;
  if (targetPort === undefined) return port;
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports = [] } of [...pod.spec.containers, ...sidecars]) {
    const found = ports.find((each) => each.name === targetPort && (each.protocol ?? 'TCP') === protocol);
    if (found !== undefined) return found.containerPort;
  }
  return undefined;
}
