// The names of kube-proxy's chains. Those of services and endpoints end in a hash, as a name has 28 characters at most. Pure.

import { shortHash } from '../../lib/short-hash.ts';
import type { ServicePort } from '../service-ports.ts';

export const SERVICES = 'KUBE-SERVICES';
export const EXTERNAL_SERVICES = 'KUBE-EXTERNAL-SERVICES';
export const NODE_PORTS = 'KUBE-NODEPORTS';
export const POSTROUTING = 'KUBE-POSTROUTING';
export const MARK_MASQ = 'KUBE-MARK-MASQ';
export const FORWARD = 'KUBE-FORWARD';
export const PROXY_FIREWALL = 'KUBE-PROXY-FIREWALL';
export const FIREWALL = 'KUBE-FIREWALL';
/** There for nothing but to be missed when someone empties the tables. */
export const CANARY = 'KUBE-PROXY-CANARY';

const FIXED: ReadonlySet<string> = new Set([
  SERVICES,
  EXTERNAL_SERVICES,
  NODE_PORTS,
  POSTROUTING,
  MARK_MASQ,
  FORWARD,
  PROXY_FIREWALL,
  FIREWALL,
  CANARY,
]);
const OF_SERVICES = /^KUBE-(?:SVC|SVL|SEP|EXT|FW)-[A-Z2-7]{16}$/;

/** A chain of one service or endpoint. */
export function isServiceChain(name: string): boolean {
  return OF_SERVICES.test(name);
}

export function isProxyChain(name: string): boolean {
  return FIXED.has(name) || isServiceChain(name);
}

/** All chains of one port of a service end in the same hash. */
export interface ServiceChains {
  /** To all endpoints. */
  readonly cluster: string;
  /** To those of this node. */
  readonly local: string;
  /** Traffic from outside. */
  readonly external: string;
  /** Which sources may use a load balancer's address. */
  readonly firewall: string;
}

export function serviceChains({ name, protocol }: Pick<ServicePort, 'name' | 'protocol'>): ServiceChains {
  const hash = shortHash(`${name}${protocol}`);
  return {
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  };
}

/** `address`: "10.0.0.1:8080". */
export function endpointChain({ name, protocol }: Pick<ServicePort, 'name' | 'protocol'>, address: string): string {
  return `KUBE-SEP-${shortHash(`${name}${protocol}${address}`)}`;
}
