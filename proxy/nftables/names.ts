// The names of kube-proxy's table, sets and maps, and those of the chains of a service. Pure.

import { shortHash } from '../../lib/short-hash.ts';
import type { ServicePort } from '../service-ports.ts';

export const TABLE = 'ip kube-proxy';
export const SERVICE_IPS = 'service-ips';
export const SERVICE_NODE_PORTS = 'service-nodeports';
export const NO_ENDPOINT_SERVICES = 'no-endpoint-services';
export const NO_ENDPOINT_NODE_PORTS = 'no-endpoint-nodeports';
export const FIREWALL_IPS = 'firewall-ips';
export const CLUSTER_IPS = 'cluster-ips';
export const NODE_PORT_IPS = 'nodeport-ips';
export const MARK = 'mark-for-masquerade';
export const REJECT = 'reject-chain';

/** 256 bytes with the longest prefix. */
const MAX_LENGTH = 240;

function hashed(name: string): string {
  const full = `${shortHash(name, 8)}-${name}`;
  return full.length > MAX_LENGTH ? `${full.slice(0, MAX_LENGTH - 3)}...` : full;
}

export interface NftChains {
  readonly cluster: string;
  readonly local: string;
  readonly external: string;
  readonly firewall: string;
}

const base = ({ service, protocol, port }: ServicePort): string => `${service}/${protocol}/${port}`;

export function serviceChains(port: ServicePort): NftChains {
  const name = hashed(base(port));
  return {
    cluster: `service-${name}`,
    local: `local-${name}`,
    external: `external-${name}`,
    firewall: `firewall-${name}`,
  };
}

/** `address`: "10.0.0.1:8080". */
export function endpointName(port: ServicePort, address: string): string {
  return hashed(`${base(port)}__${address.replace(':', '/')}`);
}
