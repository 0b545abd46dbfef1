// Which address of the pool a Service of type LoadBalancer gets, and which changes of a Service concern its load balancer. Pure.

import { isIPv4 } from 'node:net';
import type { Service } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';

export const LB_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

/** The addresses of a range, as numbers; both ends can be given away. */
export interface AddressPool {
  readonly range: string;
  readonly first: number;
  readonly last: number;
}

const numberOf = (ip: string): number => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const textOf = (number: number): string => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');

/**
 * "10.244.0.240/28": all of its addresses but the first and the last, which are those of the network and of its broadcasts. Throws Error for
 * what is no range of IPv4 addresses, or too small a one.
 */
export function addressPool(range: string): AddressPool {
  const [base = '', bits = ''] = range.split('/');
  const prefix = Number(bits);
  if (!isIPv4(base) || !/^\d+$/.test(bits) || prefix > 30) {
    throw new Error(`"${range}" is no range of IPv4 addresses such as 10.244.0.240/28`);
  }
  const size = 2 ** (32 - prefix);
  const network = Math.floor(numberOf(base) / size) * size;
  return { range, first: network + 1, last: network + size - 2 };
}

export function inPool({ first, last }: AddressPool, ip: string): boolean {
  if (!isIPv4(ip)) return false;
  const number = numberOf(ip);
  return number >= first && number <= last;
}

/** A load balancer of another class is another controller's. */
export function wantsLoadBalancer({ spec }: Service): boolean {
  return spec?.type === 'LoadBalancer' && spec.loadBalancerClass === undefined;
}

/** The Service has a load balancer that it should not have any more. */
export function needsCleanup({ metadata, spec }: Service): boolean {
  if (metadata.finalizers?.includes(LB_FINALIZER) !== true) return false;
  return metadata.deletionTimestamp !== undefined || spec?.type !== 'LoadBalancer';
}

/** The address in the status of a Service. */
export function currentAddress({ status }: Service): string | undefined {
  return status?.loadBalancer?.ingress?.[0]?.ip;
}

/** An address, or why there is none. */
export type Choice = { readonly address: string } | { readonly problem: string };

/** `taken`: addresses of other Services, and whose they are ("namespace/name"). */
export function chooseAddress(pool: AddressPool, service: Service, taken: ReadonlyMap<string, string>): Choice {
  const { loadBalancerIP: requested = '', ipFamilies = ['IPv4'] } = service.spec ?? {};
  if (!ipFamilies.includes('IPv4')) {
    return { problem: `the addresses of ${pool.range} are IPv4, and the Service is not` };
  }
  if (requested !== '') {
    if (!inPool(pool, requested)) return { problem: `the requested address ${requested} is not one of ${pool.range}` };
    const owner = taken.get(requested);
    if (owner === undefined) return { address: requested };
    return { problem: `the requested address ${requested} is in use by the Service ${owner}` };
  }
  const current = currentAddress(service);
  if (current !== undefined && inPool(pool, current) && !taken.has(current)) return { address: current };
  for (let number = pool.first; number <= pool.last; number++) {
    const address = textOf(number);
    if (!taken.has(address)) return { address };
  }
  return { problem: `no address of ${pool.range} is free: all ${pool.last - pool.first + 1} are in use` };
}

/** The events by which upstream's controller reports a change of a Service: reason and message. */
export type ChangeEvent = readonly [reason: string, message: string];

/** As Go prints a list of texts. */
const listed = (texts: readonly string[] = []): string => `[${texts.join(' ')}]`;

/** undefined: nothing that concerns a load balancer has changed. */
export function changeEvent(old: Service, now: Service): ChangeEvent | 'silent' | undefined {
  const [wanted, wants] = [wantsLoadBalancer(old), wantsLoadBalancer(now)];
  if (!wanted && !wants) return undefined;
  const [a, b] = [old.spec ?? {}, now.spec ?? {}];
  if (wanted !== wants) return ['Type', `${a.type ?? ''} -> ${b.type ?? ''}`];
  if (!sameJson(a.loadBalancerSourceRanges ?? [], b.loadBalancerSourceRanges ?? [])) {
    const [from, to] = [listed(a.loadBalancerSourceRanges), listed(b.loadBalancerSourceRanges)];
    return ['LoadBalancerSourceRanges', `${from} -> ${to}`];
  }
  if (!sameJson([a.ports, a.sessionAffinity], [b.ports, b.sessionAffinity])) return 'silent';
  if (!sameJson(a.sessionAffinityConfig ?? {}, b.sessionAffinityConfig ?? {})) return 'silent';
  if ((a.loadBalancerIP ?? '') !== (b.loadBalancerIP ?? '')) {
    return ['LoadbalancerIP', `${a.loadBalancerIP ?? ''} -> ${b.loadBalancerIP ?? ''}`];
  }
  const [before, after] = [a.externalIPs ?? [], b.externalIPs ?? []];
  if (before.length !== after.length) return ['ExternalIP', `Count: ${before.length} -> ${after.length}`];
  const other = after.find((ip, index) => ip !== before[index]);
  if (other !== undefined) return ['ExternalIP', `Added: ${other}`];
  if (!sameJson(old.metadata.annotations ?? {}, now.metadata.annotations ?? {})) return 'silent';
  if (old.metadata.uid !== now.metadata.uid) return ['UID', `${old.metadata.uid} -> ${now.metadata.uid}`];
  const [policy, nextPolicy] = [a.externalTrafficPolicy ?? '', b.externalTrafficPolicy ?? ''];
  if (policy !== nextPolicy) return ['ExternalTrafficPolicy', `${policy} -> ${nextPolicy}`];
  const [port, nextPort] = [a.healthCheckNodePort ?? 0, b.healthCheckNodePort ?? 0];
  return port === nextPort ? undefined : ['HealthCheckNodePort', `${port} -> ${nextPort}`];
}
