// A pod's interfaces: what CNI reported, joined with what the kernel shows of the host's side. Pure.

import { effectiveRoutes } from '../../cni/result.ts';
import type { CniInterface, CniResult } from '../../cni/types.ts';
import type { PodInterface } from '../ports/node.ts';
import type { KernelLink } from './rtnetlink.ts';

export interface LinkLookup {
  link(name: string): KernelLink | undefined;
}

/** The host's ends of the pod's interfaces, in the order of the result. */
export function hostEnds(result: CniResult, kernel: LinkLookup): readonly CniInterface[] {
  const host = result.interfaces.filter((entry) => (entry.sandbox ?? '') === '');
  const veths = host.filter((entry) => kernel.link(entry.name)?.kind === 'veth');
  if (veths.length > 0) return veths;
  // The netlink messages may not be here yet. The bridge plugin can still be recognized: it names the bridge first.
  if (host.every((entry) => kernel.link(entry.name) === undefined)) return host.length > 1 ? host.slice(1) : host;
  return host.filter((entry) => kernel.link(entry.name)?.kind !== 'bridge');
}

/** `ifName` is the requested interface; routes and addresses that name no interface are its. */
export function podInterfaces(result: CniResult, ifName: string, kernel: LinkLookup): readonly PodInterface[] {
  const ends = hostEnds(result, kernel);
  const inside = result.interfaces.flatMap((entry, index) => ((entry.sandbox ?? '') === '' ? [] : [{ entry, index }]));
  // Results before 0.3.0 know addresses but no interfaces.
  const pod = inside.length > 0 ? inside : [{ entry: { name: ifName }, index: -1 }];
  const main = pod.find(({ entry }) => entry.name === ifName) ?? pod[0];
  return pod.map(({ entry, index }: { entry: CniInterface; index: number }, position): PodInterface => {
    const isMain = index === main?.index;
    const end = ends[position];
    const link = end === undefined ? undefined : kernel.link(end.name);
    const mtu = entry.mtu ?? link?.mtu;
    return {
      name: entry.name,
      ...(end === undefined ? {} : { hostName: end.name }),
      ...(entry.mac === undefined ? {} : { mac: entry.mac }),
      ...(mtu === undefined || mtu === 0 ? {} : { mtu }),
      addresses: result.ips
        .filter((ip) => (ip.interface === undefined ? isMain : ip.interface === index))
        .map((ip) => ip.address),
      routes: isMain ? effectiveRoutes(result).map(({ dst, gw }) => (gw === undefined ? { dst } : { dst, gw })) : [],
    };
  });
}

const NO_LINKS: LinkLookup = { link: () => undefined };

/** The addresses of the requested interface, without their prefix lengths. */
export function podAddresses(result: CniResult, ifName: string): readonly string[] {
  const requested = podInterfaces(result, ifName, NO_LINKS).find(({ name }) => name === ifName);
  return (requested?.addresses ?? []).map((address) => address.replace(/\/\d+$/, ''));
}
