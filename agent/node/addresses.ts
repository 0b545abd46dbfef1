// Which address a node goes by: --node-ip, else what its name resolves to, else the address of the interface that the
// default route uses, else any. The kubelet's order (pkg/kubelet/nodestatus/setters.go, NodeAddress). Pure.

import { isIP, isIPv4 } from 'node:net';
import type { NodeAddress } from 'kubernetes-types/core/v1';
import { UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { AddressFacts } from './facts.ts';

/** Loopback, link-local, multicast and unspecified addresses are no use to others. */
export function isUsableAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  if (isIPv4(address)) return !/^(0\.|127\.|169\.254\.|22[4-9]\.|23\d\.|255\.255\.255\.255)/.test(address);
  return !/^(::1?$|fe[89ab]|ff)/i.test(address);
}

/**
 * The node's addresses, primary first; never empty. A machine without any network goes by its loopback address, which
 * is enough for a control plane on the same machine. Throws UserError when --node-ip is not an address of this machine.
 */
export function chooseNodeIPs(configured: readonly string[], nodeName: string, facts: AddressFacts): readonly string[] {
  const own = Object.values(facts.interfaces).flat();
  const explicit = configured.filter((ip) => ip !== '0.0.0.0' && ip !== '::');
  for (const ip of explicit) {
    if (!isUsableAddress(ip)) throw new UserError(`--node-ip ${ip}: not an address that others can reach this node by`);
    if (!own.includes(ip)) throw new UserError(`--node-ip ${ip}: no interface of this machine has this address`);
  }
  if (explicit.length > 0) return explicit;
  // An unspecified --node-ip (0.0.0.0, ::) selects the family.
  const fits = (ip: string): boolean => isUsableAddress(ip) && (configured[0] === '::' ? !isIPv4(ip) : isIPv4(ip));
  const anyFamily = configured.length === 0;
  const pick = (candidates: readonly string[]): string | undefined =>
    candidates.find(fits) ?? (anyFamily ? candidates.find(isUsableAddress) : undefined);
  const found =
    (isIP(nodeName) !== 0 ? nodeName : undefined) ??
    pick(facts.resolved.filter((ip) => own.includes(ip))) ??
    pick(facts.defaultInterfaces.flatMap((name) => getOwn(facts.interfaces, name) ?? [])) ??
    pick(own);
  return [found ?? (configured[0] === '::' ? '::1' : '127.0.0.1')];
}

/** As the Node's status lists them. */
export function nodeAddresses(ips: readonly string[], nodeName: string): NodeAddress[] {
  return [...ips.map((address) => ({ type: 'InternalIP', address })), { type: 'Hostname', address: nodeName }];
}
