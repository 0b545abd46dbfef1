// The endpoints that a service should have, from its pods: grouped by the ports that they serve it on, since a slice has one list of
// ports for all its endpoints. Pure.

import { isIPv6 } from 'node:net';
import type { EndpointPort } from 'kubernetes-types/discovery/v1';
import type { Endpoint, Node, Pod, Service } from '../../../client/types.ts';
import { endpointKey, portsKey } from '../shared/endpoint-keys.ts';
import { isReady } from '../shared/pods.ts';
import { findPort, hasEndpoint, hostnameFor, isHeadless } from '../shared/service-pods.ts';

export type AddressType = 'IPv4' | 'IPv6';
export const ZONE_LABEL = 'topology.kubernetes.io/zone';

export interface EndpointGroup {
  readonly ports: readonly EndpointPort[];
  /** By endpointKey. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

export interface Desired {
  /** By portsKey. */
  readonly groups: ReadonlyMap<string, EndpointGroup>;
  /** Pods that were left out because there is no such node; the service is synced again for them. */
  readonly withoutNode: readonly { readonly pod: string; readonly node: string }[];
}

/** The families of addresses that a service has slices for. */
export function addressTypesOf({ spec }: Service): readonly AddressType[] {
  const families = (spec?.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6');
  if (families.length > 0) return families;
  const { clusterIP = '' } = spec ?? {};
  if (clusterIP === '' || clusterIP === 'None') return ['IPv4', 'IPv6'];
  return [isIPv6(clusterIP) ? 'IPv6' : 'IPv4'];
}

export function desiredEndpoints(
  service: Service,
  pods: readonly Pod[],
  nodeOf: (name: string) => Node | undefined,
  addressType: AddressType,
): Desired {
  const groups = new Map<string, { ports: readonly EndpointPort[]; endpoints: Map<string, Endpoint> }>();
  const withoutNode: { pod: string; node: string }[] = [];
  for (const pod of pods) {
    if (!hasEndpoint(pod, true)) continue;
    const ports = portsIn(service, pod);
    const key = portsKey(ports);
    const group = groups.get(key) ?? { ports, endpoints: new Map<string, Endpoint>() };
    groups.set(key, group);
    const { nodeName = '' } = pod.spec;
    const node = nodeName === '' ? undefined : nodeOf(nodeName);
    if (node === undefined && service.spec?.publishNotReadyAddresses !== true) {
      withoutNode.push({ pod: pod.metadata.name, node: nodeName });
      continue;
    }
    const endpoint = endpointOf(pod, node, service, addressType);
    if (endpoint.addresses.length > 0) group.endpoints.set(endpointKey(endpoint), endpoint);
  }
  return { groups, withoutNode };
}

function portsIn(service: Service, pod: Pod): readonly EndpointPort[] {
  const { ports = [] } = service.spec ?? {};
  if (ports.length === 0 && isHeadless(service)) return [];
  return ports.flatMap((port): EndpointPort[] => {
    const number = findPort(pod, port);
    if (number === undefined) return [];
    const { name = '', protocol = 'TCP', appProtocol } = port;
    return [{ name, port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
}

function endpointOf(pod: Pod, node: Node | undefined, service: Service, addressType: AddressType): Endpoint {
  const serving = isReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const { namespace, name, uid } = pod.metadata;
  const { nodeName = '' } = pod.spec;
  const zone = node?.metadata.labels?.[ZONE_LABEL] ?? '';
  const hostname = hostnameFor(pod, service);
  return {
    addresses: addressesOf(pod, addressType),
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(nodeName === '' ? {} : { nodeName }),
    ...(zone === '' ? {} : { zone }),
  };
}

function addressesOf({ status }: Pod, addressType: AddressType): string[] {
  const { podIP, podIPs = [] } = status ?? {};
  const all = podIPs.length > 0 ? podIPs.map(({ ip = '' }) => ip) : [podIP ?? ''];
  return all.filter((ip) => ip !== '' && isIPv6(ip) === (addressType === 'IPv6'));
}
