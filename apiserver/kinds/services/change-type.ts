// What an update of a Service drops: fields that its new type has no use for, unless the client changed them, too (which
// validation then refuses).

import type { KubeObject } from '../resource.ts';
import {
  hasNodePorts,
  isExternal,
  needsClusterIP,
  needsHealthCheckPort,
  type ServiceSpec,
  sameClusterIPs,
  sameList,
  serviceOf,
} from './shape.ts';

export function prepareServiceUpdate(object: KubeObject, stored: KubeObject): void {
  const [service, before] = [serviceOf(object), serviceOf(stored)];
  service.status = structuredClone(before.status ?? { loadBalancer: {} });
  const [spec, old] = [service.spec ?? {}, before.spec ?? {}];
  if (needsClusterIP(old) && !needsClusterIP(spec)) dropAddresses(spec, old);
  if (hasNodePorts(old) && !hasNodePorts(spec) && hasNoOtherPorts(spec, old)) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (needsHealthCheckPort(old) && !needsHealthCheckPort(spec)) dropSame(spec, old, 'healthCheckNodePort');
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    dropSame(spec, old, 'allocateLoadBalancerNodePorts');
    dropSame(spec, old, 'loadBalancerClass');
  }
  if (isExternal(old) && !isExternal(spec)) dropSame(spec, old, 'externalTrafficPolicy');
  if (spec.type !== 'LoadBalancer') service.status.loadBalancer = {};
}

function dropAddresses(spec: ServiceSpec, old: ServiceSpec): void {
  if (sameClusterIPs(spec, old)) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (sameList(spec.ipFamilies, old.ipFamilies)) delete spec.ipFamilies;
  dropSame(spec, old, 'ipFamilyPolicy');
}

function dropSame(
  spec: ServiceSpec,
  old: ServiceSpec,
  field:
    | 'ipFamilyPolicy'
    | 'healthCheckNodePort'
    | 'allocateLoadBalancerNodePorts'
    | 'loadBalancerClass'
    | 'externalTrafficPolicy',
): void {
  if (spec[field] === old[field]) delete spec[field];
}

function hasNoOtherPorts(spec: ServiceSpec, old: ServiceSpec): boolean {
  const before = new Set((old.ports ?? []).map((port) => port.nodePort ?? 0));
  return (spec.ports ?? []).every((port) => (port.nodePort ?? 0) === 0 || before.has(port.nodePort ?? 0));
}
