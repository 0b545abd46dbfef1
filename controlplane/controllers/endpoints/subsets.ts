// The subsets of a service's Endpoints: addresses by readiness, and ports that the same addresses have together. Pure.

import { isIPv6 } from 'node:net';
import type { EndpointAddress, EndpointPort, EndpointSubset } from 'kubernetes-types/core/v1';
import type { Pod, Service } from '../../../client/types.ts';
import { isReady } from '../shared/pods.ts';
import { findPort, hasEndpoint, hostnameFor, isHeadless } from '../shared/service-pods.ts';

/** Addresses in one object; beyond, it is cut short, and says so in an annotation. */
export const MAX_ADDRESSES = 1000;

interface Entry {
  readonly address: EndpointAddress;
  readonly ready: boolean;
}

/** The pods of a service as Endpoints have them; not cut short yet. */
export function subsetsOf(service: Service, pods: readonly Pod[]): readonly EndpointSubset[] {
  const unready = service.spec?.publishNotReadyAddresses === true;
  const { ports = [] } = service.spec ?? {};
  /** By port; '' stands for none, which a headless service may have. */
  const byPort = new Map<string, { readonly port: EndpointPort | undefined; readonly entries: Map<string, Entry> }>();
  const add = (port: EndpointPort | undefined, entry: Entry): void => {
    const key = port === undefined ? '' : portKey(port);
    const known = byPort.get(key) ?? { port, entries: new Map<string, Entry>() };
    known.entries.set(entryKey(entry), entry);
    byPort.set(key, known);
  };
  for (const pod of pods) {
    if (!hasEndpoint(pod, unready)) continue;
    const address = addressOf(pod, service);
    if (address === undefined) continue;
    const entry = { address, ready: unready || isReady(pod) };
    if (ports.length === 0 && isHeadless(service)) add(undefined, entry);
    for (const port of ports) {
      const number = findPort(pod, port);
      if (number === undefined) continue;
      const { name = '', protocol = 'TCP', appProtocol } = port;
      add(
        {
          ...(name === '' ? {} : { name }),
          port: number,
          protocol,
          ...(appProtocol === undefined ? {} : { appProtocol }),
        },
        entry,
      );
    }
  }
  return pack([...byPort.values()]);
}

/** Ports with the same addresses become one subset; in an order that does not depend on that of the pods. */
function pack(
  byPort: readonly { readonly port: EndpointPort | undefined; readonly entries: ReadonlyMap<string, Entry> }[],
): readonly EndpointSubset[] {
  const groups = new Map<string, { readonly ports: EndpointPort[]; readonly entries: readonly Entry[] }>();
  for (const { port, entries } of byPort) {
    const key = [...entries.keys()].sort().join();
    const group = groups.get(key) ?? { ports: [], entries: [...entries.values()] };
    if (port !== undefined) group.ports.push(port);
    groups.set(key, group);
  }
  const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([, { ports, entries }]) => {
    const of = (ready: boolean): EndpointAddress[] =>
      entries
        .filter((entry) => entry.ready === ready)
        .map(({ address }) => address)
        .sort((a, b) => (addressKey(a) < addressKey(b) ? -1 : 1));
    const [addresses, notReadyAddresses] = [of(true), of(false)];
    return {
      ...(addresses.length === 0 ? {} : { addresses }),
      ...(notReadyAddresses.length === 0 ? {} : { notReadyAddresses }),
      ...(ports.length === 0 ? {} : { ports: ports.sort((a, b) => (portKey(a) < portKey(b) ? -1 : 1)) }),
    };
  });
}

function portKey({ name = '', port, protocol = '', appProtocol = '' }: EndpointPort): string {
  return JSON.stringify([name, port, protocol, appProtocol]);
}

function addressKey({ ip, targetRef }: EndpointAddress): string {
  const parts = ip.includes(':') ? [ip] : ip.split('.').map((part) => part.padStart(3, '0'));
  return `${parts.join('.')} ${targetRef?.uid ?? ''}`;
}

function entryKey({ address, ready }: Entry): string {
  return `${addressKey(address)} ${address.hostname ?? ''} ${ready}`;
}

/** Endpoints have one family: that of the service. */
function addressOf(pod: Pod, service: Service): EndpointAddress | undefined {
  const { ipFamilies = [], clusterIP = '' } = service.spec ?? {};
  const wants6 = ipFamilies[0] === undefined ? isIPv6(clusterIP) : ipFamilies[0] === 'IPv6';
  const { podIP = '', podIPs = [] } = pod.status ?? {};
  const all = podIPs.length > 0 ? podIPs.map(({ ip = '' }) => ip) : [podIP];
  const ip = all.find((each) => each !== '' && isIPv6(each) === wants6);
  if (ip === undefined) return undefined;
  const { namespace, name, uid } = pod.metadata;
  const hostname = hostnameFor(pod, service);
  const { nodeName = '' } = pod.spec;
  return {
    ip,
    ...(hostname === undefined ? {} : { hostname }),
    ...(nodeName === '' ? {} : { nodeName }),
    targetRef: { kind: 'Pod', namespace, name, uid },
  };
}

const count = (subsets: readonly EndpointSubset[], list: 'addresses' | 'notReadyAddresses'): number =>
  subsets.reduce((sum, subset) => sum + (subset[list] ?? []).length, 0);

/** No more than `max` addresses: of each subset its share, and ready ones before others. */
export function truncate(
  subsets: readonly EndpointSubset[],
  max = MAX_ADDRESSES,
): { readonly subsets: readonly EndpointSubset[]; readonly truncated: boolean } {
  const [ready, unready] = [count(subsets, 'addresses'), count(subsets, 'notReadyAddresses')];
  if (ready + unready <= max) return { subsets, truncated: false };
  const cutReady = ready > max;
  const [list, total, room] = cutReady
    ? (['addresses', ready, max] as const)
    : (['notReadyAddresses', unready, max - ready] as const);
  let left = room;
  const shortened = subsets.map((subset): EndpointSubset => {
    const all = subset[list] ?? [];
    const some = all.slice(0, Math.min(left, Math.ceil((all.length / total) * room)));
    left -= some.length;
    const base: EndpointSubset = { ...subset };
    if (cutReady) delete base.notReadyAddresses;
    delete base[list];
    return some.length > 0 ? { ...base, [list]: some } : base;
  });
  const filled = shortened.filter(
    ({ addresses = [], notReadyAddresses = [] }) => addresses.length + notReadyAddresses.length > 0,
  );
  return { subsets: filled, truncated: true };
}
