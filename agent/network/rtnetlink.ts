// rtnetlink messages (linux/rtnetlink.h, if_link.h, if_addr.h) read into plain objects: links, addresses, routes.
// Pure; understands only what the agent shows. Integers are in the machine's byte order: every platform we run on is
// little-endian.

import { formatAddress, formatMac, formatPrefix } from './addresses.ts';

export const RTM = {
  NEWLINK: 16,
  DELLINK: 17,
  GETLINK: 18,
  NEWADDR: 20,
  DELADDR: 21,
  GETADDR: 22,
  NEWROUTE: 24,
  DELROUTE: 25,
  GETROUTE: 26,
} as const;

/** Multicast groups (RTNLGRP_*) of what is watched. */
export const RTNLGRP = { LINK: 1, IPV4_IFADDR: 5, IPV4_ROUTE: 7, IPV6_IFADDR: 9, IPV6_ROUTE: 11 } as const;

const AF_INET = 2;
const AF_INET6 = 10;
const AF_BRIDGE = 7;

export interface KernelLink {
  readonly index: number;
  readonly name: string;
  /** "veth", "bridge", "tun", …; undefined for hardware. */
  readonly kind: string | undefined;
  readonly mac: string | undefined;
  /** Bytes. */
  readonly mtu: number;
  readonly up: boolean;
  /** Index of the bridge or bond it is a port of. */
  readonly master: number | undefined;
  /** Index of the other end, in the namespace of `peerNetnsId`. */
  readonly peerIndex: number | undefined;
  readonly peerNetnsId: number | undefined;
}

export interface KernelAddress {
  readonly index: number;
  /** CIDR notation. */
  readonly address: string;
}

export interface KernelRoute {
  /** CIDR notation; 0.0.0.0/0 or ::/0 for a default route. */
  readonly dst: string;
  readonly gw: string | undefined;
  /** Index of the outgoing link. */
  readonly oif: number | undefined;
  readonly table: number;
  readonly priority: number;
}

export type KernelChange =
  | { readonly what: 'link'; readonly gone: boolean; readonly link: KernelLink }
  | { readonly what: 'address'; readonly gone: boolean; readonly address: KernelAddress }
  | { readonly what: 'route'; readonly gone: boolean; readonly route: KernelRoute };

/**
 * The `wanted` attributes by type; a link has some fifty, and a dozen messages while it is being made. Nested and
 * network-order flags are taken off the type.
 */
function attributes(data: Buffer, start: number, wanted: ReadonlySet<number>): ReadonlyMap<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = start; at + 4 <= data.length; ) {
    const length = data.readUInt16LE(at);
    if (length < 4 || at + length > data.length) break;
    const type = data.readUInt16LE(at + 2) & 0x3fff;
    if (wanted.has(type)) found.set(type, data.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
  return found;
}

const u32 = (value: Buffer | undefined): number | undefined =>
  value === undefined || value.length < 4 ? undefined : value.readUInt32LE(0);

const text = (value: Buffer | undefined): string | undefined => value?.toString('utf8').replace(/\0.*$/s, '');

/** The change that a message reports, or undefined when it is not used here. */
export function parseChange(type: number, data: Buffer): KernelChange | undefined {
  switch (type) {
    case RTM.NEWLINK:
    case RTM.DELLINK: {
      const link = parseLink(data);
      return link === undefined ? undefined : { what: 'link', gone: type === RTM.DELLINK, link };
    }
    case RTM.NEWADDR:
    case RTM.DELADDR: {
      const address = parseAddress(data);
      return address === undefined ? undefined : { what: 'address', gone: type === RTM.DELADDR, address };
    }
    case RTM.NEWROUTE:
    case RTM.DELROUTE: {
      const route = parseRoute(data);
      return route === undefined ? undefined : { what: 'route', gone: type === RTM.DELROUTE, route };
    }
    default:
      return undefined;
  }
}

const IFINFOMSG_BYTES = 16;
const IFF_UP = 1;
const IFLA = { ADDRESS: 1, IFNAME: 3, MTU: 4, LINK: 5, MASTER: 10, LINKINFO: 18, LINK_NETNSID: 37 } as const;
const IFLA_WANTED: ReadonlySet<number> = new Set(Object.values(IFLA));
const IFLA_INFO_KIND = 1;
const IFLA_INFO_WANTED: ReadonlySet<number> = new Set([IFLA_INFO_KIND]);

function parseLink(data: Buffer): KernelLink | undefined {
  // A bridge reports its ports in messages of its own family; a port that leaves is not a link that is gone.
  if (data.length < IFINFOMSG_BYTES || data.readUInt8(0) === AF_BRIDGE) return undefined;
  const attrs = attributes(data, IFINFOMSG_BYTES, IFLA_WANTED);
  const name = text(attrs.get(IFLA.IFNAME));
  if (name === undefined) return undefined;
  const info = attrs.get(IFLA.LINKINFO);
  const mac = attrs.get(IFLA.ADDRESS);
  return {
    index: data.readInt32LE(4),
    name,
    kind: info === undefined ? undefined : text(attributes(info, 0, IFLA_INFO_WANTED).get(IFLA_INFO_KIND)),
    mac: mac === undefined || mac.length !== 6 ? undefined : formatMac(mac),
    mtu: u32(attrs.get(IFLA.MTU)) ?? 0,
    up: (data.readUInt32LE(8) & IFF_UP) !== 0,
    master: u32(attrs.get(IFLA.MASTER)),
    peerIndex: u32(attrs.get(IFLA.LINK)),
    peerNetnsId: attrs.get(IFLA.LINK_NETNSID)?.readInt32LE(0),
  };
}

const IFADDRMSG_BYTES = 8;
const IFA = { ADDRESS: 1, LOCAL: 2 } as const;
const IFA_WANTED: ReadonlySet<number> = new Set(Object.values(IFA));

function parseAddress(data: Buffer): KernelAddress | undefined {
  if (data.length < IFADDRMSG_BYTES) return undefined;
  const attrs = attributes(data, IFADDRMSG_BYTES, IFA_WANTED);
  // On a point-to-point link ADDRESS is the other end's; LOCAL is always this end's, where it is present.
  const own = attrs.get(IFA.LOCAL) ?? attrs.get(IFA.ADDRESS);
  if (own === undefined) return undefined;
  return { index: data.readUInt32LE(4), address: formatPrefix(own, data.readUInt8(1)) };
}

const RTMSG_BYTES = 12;
const RTA = { DST: 1, OIF: 4, GATEWAY: 5, PRIORITY: 6, TABLE: 15 } as const;
const RTA_WANTED: ReadonlySet<number> = new Set(Object.values(RTA));
const RTN_UNICAST = 1;
/** Entries that the kernel made for its own use (path MTU and redirect exceptions). */
const RTM_F_CLONED = 0x200;

function parseRoute(data: Buffer): KernelRoute | undefined {
  if (data.length < RTMSG_BYTES) return undefined;
  const family = data.readUInt8(0);
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  if (data.readUInt8(7) !== RTN_UNICAST || (data.readUInt32LE(8) & RTM_F_CLONED) !== 0) return undefined;
  const attrs = attributes(data, RTMSG_BYTES, RTA_WANTED);
  const gateway = attrs.get(RTA.GATEWAY);
  const destination = attrs.get(RTA.DST) ?? Buffer.alloc(family === AF_INET ? 4 : 16);
  return {
    dst: formatPrefix(destination, data.readUInt8(1)),
    gw: gateway === undefined ? undefined : formatAddress(gateway),
    oif: u32(attrs.get(RTA.OIF)),
    table: u32(attrs.get(RTA.TABLE)) ?? data.readUInt8(4),
    priority: u32(attrs.get(RTA.PRIORITY)) ?? 0,
  };
}
