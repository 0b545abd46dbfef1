// The address of a server in the endpoints of the service `kubernetes`. It is of the family of that service's own address:
// what leads from one to the other does not change the family.

import { isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { UserError } from '../lib/errors.ts';
import type { IPFamily } from './kinds/resource.ts';

export interface AdvertiseOptions {
  /** Where the server listens. */
  readonly address: string;
  readonly advertiseHost?: string;
  readonly advertiseAddress?: string;
}

/** An address of the machine. */
export interface OwnAddress {
  readonly address: string;
  readonly internal: boolean;
}

export const isUnspecified = (address: string): boolean => address === '0.0.0.0' || address === '::';

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';
const isLinkLocal = (address: string): boolean => address.startsWith('169.254.') || /^fe[89ab]/i.test(address);
const familyOf = (address: string): IPFamily => (isIPv6(address) ? 'IPv6' : 'IPv4');

function machineAddresses(): readonly OwnAddress[] {
  return Object.values(networkInterfaces()).flatMap((found) => found ?? []);
}

/**
 * The address that pods reach the server at: the advertised one, or the one that it listens on, and as upstream the machine's
 * first one where those are none, a name, loopback, or of another family. Undefined where there is none. Throws UserError.
 */
export function reachableAddress(
  { address, advertiseHost = '', advertiseAddress }: AdvertiseOptions,
  serviceCidr: string,
  family: IPFamily,
  own: readonly OwnAddress[] = machineAddresses(),
): string | undefined {
  if (advertiseAddress !== undefined) {
    if (familyOf(advertiseAddress) === family) return advertiseAddress;
    throw new UserError(`service IP family "${serviceCidr}" must match public address family "${advertiseAddress}"`);
  }
  const isGood = (one: string): boolean =>
    isIP(one) !== 0 && familyOf(one) === family && !isUnspecified(one) && !isLoopback(one) && !isLinkLocal(one);
  const others = own.filter(({ internal }) => !internal).map((one) => one.address);
  return [advertiseHost, address, ...others].find(isGood);
}
