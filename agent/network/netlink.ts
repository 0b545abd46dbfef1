// The kernel's view of this machine's links, addresses and routes, kept current by netlink notifications. Reads and
// subscribes only; it never changes the network.
//
// Of the npm package `netlink` only the socket layer is loaded: its message classes contain every rtnetlink attribute
// and would cost memory without a use.

import { createRequire } from 'node:module';
import type { NetlinkMessage, NetlinkSocket } from 'netlink';
import { errorMessage } from '../../lib/errors.ts';
import { prefixContains } from './addresses.ts';
import {
  type KernelAddress,
  type KernelChange,
  type KernelLink,
  type KernelRoute,
  parseChange,
  RTM,
  RTNLGRP,
} from './rtnetlink.ts';

const NETLINK_ROUTE = 0;
const NLM_F_DUMP = 0x300;
const RT_TABLE_MAIN = 254;
/** Bytes. Room for the notifications of a burst of pods; the kernel drops what does not fit and returns ENOBUFS. */
const RECEIVE_BUFFER = 1024 * 1024;
/** For giving up only: the kernel answers at once, and this process may be kept from reading that for a while. */
const DUMP_TIMEOUT_MS = 60_000;
/** From the kernel's numbers, for a dump request's body: struct rtgenmsg padded to the largest of the three headers. */
const DUMP_BODY = Buffer.alloc(16);

export type KernelListener = (change: KernelChange) => void;

type CreateNetlink = typeof import('netlink')['createNetlink'];

function loadSocketLayer(): CreateNetlink {
  const loaded: unknown = createRequire(import.meta.url)('netlink/dist/netlink.js');
  if (!isSocketLayer(loaded)) throw new Error('the package netlink has no createNetlink');
  return loaded.createNetlink;
}

function isSocketLayer(value: unknown): value is { createNetlink: CreateNetlink } {
  return typeof value === 'object' && value !== null && 'createNetlink' in value;
}

const routeKey = (route: KernelRoute): string =>
  `${route.table} ${route.dst} ${route.priority} ${route.gw ?? ''} ${route.oif ?? ''}`;

const prefixLength = (route: KernelRoute): number => Number(route.dst.slice(route.dst.indexOf('/') + 1));

const isBefore = (a: KernelRoute, b: KernelRoute): boolean =>
  prefixLength(a) === prefixLength(b) ? a.priority < b.priority : prefixLength(a) > prefixLength(b);

/** The tables alone: what they are after each change. No I/O. */
export class KernelTables {
  readonly #links = new Map<number, KernelLink>();
  readonly #indexes = new Map<string, number>();
  readonly #addresses = new Map<number, Map<string, KernelAddress>>();
  readonly #routes = new Map<string, KernelRoute>();

  /** Takes a change in. True when it made a difference. */
  apply(change: KernelChange): boolean {
    switch (change.what) {
      case 'link':
        return this.#applyLink(change.link, change.gone);
      case 'address': {
        const { index, address } = change.address;
        const of = this.#addresses.get(index) ?? new Map<string, KernelAddress>();
        if (change.gone) return of.delete(address);
        if (of.has(address)) return false;
        of.set(address, change.address);
        this.#addresses.set(index, of);
        return true;
      }
      case 'route': {
        if (change.route.table !== RT_TABLE_MAIN) return false;
        const key = routeKey(change.route);
        if (change.gone) return this.#routes.delete(key);
        if (this.#routes.has(key)) return false;
        this.#routes.set(key, change.route);
        return true;
      }
    }
  }

  #applyLink(link: KernelLink, gone: boolean): boolean {
    const before = this.#links.get(link.index);
    // The name may belong to another link before this one's DELLINK arrives.
    if (before !== undefined && this.#indexes.get(before.name) === link.index) this.#indexes.delete(before.name);
    if (!gone) {
      this.#links.set(link.index, link);
      this.#indexes.set(link.name, link.index);
      if (before?.up === true && !link.up) this.#dropRoutesOf(link.index);
      return before === undefined || !sameLink(before, link);
    }
    this.#links.delete(link.index);
    this.#addresses.delete(link.index);
    this.#dropRoutesOf(link.index);
    return before !== undefined;
  }

  /** The kernel drops the IPv4 routes of a link that goes down or away without a word. */
  #dropRoutesOf(index: number): void {
    for (const [key, route] of this.#routes) if (route.oif === index) this.#routes.delete(key);
  }

  clear(): void {
    this.#links.clear();
    this.#indexes.clear();
    this.#addresses.clear();
    this.#routes.clear();
  }

  links(): readonly KernelLink[] {
    return [...this.#links.values()];
  }

  link(nameOrIndex: string | number): KernelLink | undefined {
    const index = typeof nameOrIndex === 'number' ? nameOrIndex : this.#indexes.get(nameOrIndex);
    return index === undefined ? undefined : this.#links.get(index);
  }

  addressesOf(index: number): readonly string[] {
    return [...(this.#addresses.get(index)?.keys() ?? [])];
  }

  routes(): readonly KernelRoute[] {
    return [...this.#routes.values()];
  }

  /** The route of the main table that packets to `address` take: longest prefix, then lowest metric. */
  routeTo(address: string): KernelRoute | undefined {
    const family = address.includes(':');
    let best: KernelRoute | undefined;
    for (const route of this.#routes.values()) {
      // Every link has a route of its own to fe80::/64: a glance is enough for them.
      if (route.dst.includes(':') !== family || !prefixContains(route.dst, address)) continue;
      if (best === undefined || isBefore(route, best)) best = route;
    }
    return best;
  }
}

/** The kernel sends many RTM_NEWLINK for a link while it is being made, mostly without a change. */
function sameLink(a: KernelLink, b: KernelLink): boolean {
  return (
    a.name === b.name &&
    a.kind === b.kind &&
    a.mac === b.mac &&
    a.mtu === b.mtu &&
    a.up === b.up &&
    a.master === b.master &&
    a.peerIndex === b.peerIndex &&
    a.peerNetnsId === b.peerNetnsId
  );
}

function openSocket(): NetlinkSocket {
  return loadSocketLayer()(NETLINK_ROUTE, { ref: false, recvBufferSize: RECEIVE_BUFFER, sendBufferSize: 0 });
}

export class NetlinkWatcher {
  readonly tables = new KernelTables();
  readonly #listeners = new Set<KernelListener>();
  readonly #onError: (what: string, error: unknown) => void;
  #socket: NetlinkSocket | undefined;
  #resync: Promise<void> | undefined;
  /** Notifications that came while the tables were being read; undefined when they are not. */
  #pending: NetlinkMessage[] | undefined;

  constructor(onError: (what: string, error: unknown) => void) {
    this.#onError = onError;
  }

  /** Calls back on every change after `start` that made a difference; returns the function that ends it. */
  subscribe(listener: KernelListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Opens the socket and reads the tables whole. Rejects when the kernel refuses. */
  async start(): Promise<void> {
    const socket = openSocket();
    this.#socket = socket;
    socket.on('message', (messages) => {
      if (this.#pending !== undefined) this.#pending.push(...messages);
      else this.#apply(messages, true);
    });
    // ENOBUFS: notifications were lost; the tables are read anew.
    socket.on('error', (error) => {
      this.#onError('netlink', error);
      this.#resyncTables();
    });
    for (const group of Object.values(RTNLGRP)) socket.addMembership(group);
    await this.#readAll();
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
    this.#listeners.clear();
  }

  /**
   * Reads on a socket of its own: a notification between the parts of an answer would spoil it. Notifications wait
   * until the answer is in, so that the older dump never overwrites them.
   */
  async #readAll(): Promise<void> {
    if (this.#socket === undefined) return;
    this.#pending = [];
    const dumpSocket = openSocket();
    try {
      for (const type of [RTM.GETLINK, RTM.GETADDR, RTM.GETROUTE]) {
        const [messages] = await dumpSocket.request(type, DUMP_BODY, { flags: NLM_F_DUMP, timeout: DUMP_TIMEOUT_MS });
        this.#apply(messages, false);
      }
    } finally {
      dumpSocket.close();
      const pending = this.#pending;
      this.#pending = undefined;
      this.#apply(pending, true);
    }
  }

  #resyncTables(): void {
    if (this.#resync !== undefined) return;
    const before = this.tables.links();
    this.tables.clear();
    this.#resync = this.#readAll()
      .then(() => this.#notifyMissed(before))
      .catch((error: unknown) => this.#onError('resynchronizing links, addresses and routes', error))
      .finally(() => {
        this.#resync = undefined;
      });
  }

  /** Links that came or went while notifications were lost. */
  #notifyMissed(before: readonly KernelLink[]): void {
    const gone = before.filter((link) => this.tables.link(link.index)?.name !== link.name);
    const known = new Set(before.map((link) => `${link.index} ${link.name}`));
    const added = this.tables.links().filter((link) => !known.has(`${link.index} ${link.name}`));
    this.#notify(gone.map((link) => ({ what: 'link', gone: true, link })));
    this.#notify(added.map((link) => ({ what: 'link', gone: false, link })));
  }

  #notify(changes: readonly KernelChange[]): void {
    for (const change of changes) for (const listener of this.#listeners) listener(change);
  }

  #apply(messages: readonly NetlinkMessage[], notify: boolean): void {
    for (const message of messages) {
      let change: KernelChange | undefined;
      try {
        change = parseChange(message.type, message.data);
      } catch (error) {
        this.#onError(`netlink message of type ${message.type}`, errorMessage(error));
        continue;
      }
      if (change === undefined || !this.tables.apply(change) || !notify) continue;
      this.#notify([change]);
    }
  }
}
