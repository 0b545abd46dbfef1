// Ranges of IPv4 addresses. Pure.

import { BlockList, isIPv4 } from 'node:net';

/** Whether "10.0.0.0/8", or a single address, contains an address. False where either is not IPv4. */
export function containsAddress(range: string, address: string): boolean {
  const [base = '', bits = '32'] = range.split('/');
  const prefix = Number(bits);
  if (!isIPv4(base) || !isIPv4(address) || !/^\d+$/.test(bits) || prefix > 32) return false;
  const list = new BlockList();
  list.addSubnet(base, prefix, 'ipv4');
  return list.check(address, 'ipv4');
}
