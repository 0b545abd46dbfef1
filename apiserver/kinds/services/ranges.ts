// Ranges that the addresses of Services come from, as kube-apiserver's allocator divides them: the first addresses are for
// hand-picked ones, the others are given out first (KEP-3070). Pure.

import type { IPFamily, KubeObject } from '../resource.ts';
import { addressText, legacyAddress, parseRange } from '../shared/addresses.ts';

/** Where there is no ServiceCIDR yet. */
export const DEFAULT_SERVICE_CIDR = '10.96.0.0/16';

/** A cluster whose Services have addresses of IPv4 alone. */
export const IPV4_ONLY: readonly IPFamily[] = ['IPv4'];

/** The families of the ranges of --service-cluster-ip-range, the first one's for Services that name none. */
export function familiesOf(cidrs: readonly string[]): readonly IPFamily[] {
  return cidrs.map((cidr) => (serviceRange(cidr)?.family === 6 ? 'IPv6' : 'IPv4'));
}

const MIN_STATIC = 16n;
const MAX_STATIC = 256n;

export interface ServiceRange {
  readonly family: 4 | 6;
  /** The first and the last address that may be used. */
  readonly first: bigint;
  readonly last: bigint;
  /** The first that is given out while there are others. */
  readonly dynamic: bigint;
}

/** Undefined for a text that is no range. */
export function serviceRange(cidr: string): ServiceRange | undefined {
  const range = parseRange(cidr);
  if (range === undefined) return undefined;
  const { family, address, prefix } = range;
  const hostBits = BigInt((family === 4 ? 32 : 128) - prefix);
  const size = 1n << hostBits;
  const network = (address >> hostBits) << hostBits;
  const wanted = size / MIN_STATIC;
  const offset = size <= MIN_STATIC ? 0n : wanted < MIN_STATIC ? MIN_STATIC : wanted > MAX_STATIC ? MAX_STATIC : wanted;
  // The network's own address is not used, nor is IPv4's broadcast address.
  const last = network + size - (family === 4 ? 2n : 1n);
  return { family, first: network + 1n, last, dynamic: network + 1n + offset };
}

/** The address of the service `kubernetes`. */
export function firstServiceAddress(cidr: string): string {
  return addressIn(cidr, 0n);
}

/** The tenth address, which is usual for the cluster's DNS. */
export function dnsServiceAddress(cidr: string): string {
  return addressIn(cidr, 9n);
}

function addressIn(cidr: string, place: bigint): string {
  const range = serviceRange(cidr);
  if (range === undefined) throw new RangeError(`${cidr} is no range of addresses`);
  return addressText(range.first + place, range.family);
}

export function inRange({ family, first, last }: ServiceRange, text: string): boolean {
  const address = legacyAddress(text);
  return address !== undefined && address.family === family && address.number >= first && address.number <= last;
}

/** An address that is not taken, from the dynamic part first. `seed` says where the search begins. */
export function freeAddress(
  range: ServiceRange,
  seed: number,
  isTaken: (address: string) => boolean,
): string | undefined {
  const { family, first, last, dynamic } = range;
  const search = (from: bigint, to: bigint): string | undefined => {
    const size = to - from + 1n;
    for (let step = 0n; step < size; step++) {
      const text = addressText(from + ((BigInt(seed) + step) % size), family);
      if (!isTaken(text)) return text;
    }
    return undefined;
  };
  return search(dynamic, last) ?? search(first, dynamic - 1n);
}

/** Whether addresses may be taken from a ServiceCIDR. */
export function isReady({ metadata, status }: Readonly<KubeObject>): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const conditions: unknown =
    typeof status === 'object' && status !== null ? Reflect.get(status, 'conditions') : undefined;
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  const ready = list.find((one) => typeof one === 'object' && one !== null && Reflect.get(one, 'type') === 'Ready');
  return typeof ready !== 'object' || ready === null || Reflect.get(ready, 'status') === 'True';
}

/** The ranges of a ServiceCIDR. */
export function cidrsOf({ spec }: Readonly<KubeObject>): readonly string[] {
  const cidrs: unknown = typeof spec === 'object' && spec !== null ? Reflect.get(spec, 'cidrs') : undefined;
  return Array.isArray(cidrs) ? cidrs.filter((cidr) => typeof cidr === 'string') : [];
}
