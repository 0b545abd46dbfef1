// The IPAddress object of each cluster IP, which is there exactly as long as its Service has the address.

import type { Companion, KubeObject } from '../resource.ts';
import { familyOf } from './families.ts';
import { needsClusterIP, serviceOf } from './shape.ts';

export const NETWORKING = 'networking.k8s.io';
export const MANAGED_BY = 'ipaddress.kubernetes.io/managed-by';
export const ALLOCATOR = 'ipallocator.k8s.io';
const FAMILY = 'ipaddress.kubernetes.io/ip-family';

/** The addresses that a Service has of the cluster. */
export function clusterIPsOf(object: KubeObject): readonly string[] {
  const spec = serviceOf(object).spec ?? {};
  return needsClusterIP(spec) ? (spec.clusterIPs ?? []).filter((address) => address !== '' && address !== 'None') : [];
}

export function ipAddressesOf(object: KubeObject): readonly Companion[] {
  const { namespace = '', name = '' } = object.metadata;
  return clusterIPsOf(object).map((address) => ({
    group: NETWORKING,
    plural: 'ipaddresses',
    name: address,
    labels: { [FAMILY]: familyOf(address), [MANAGED_BY]: ALLOCATOR },
    fields: { spec: { parentRef: { resource: 'services', namespace, name } } },
  }));
}
