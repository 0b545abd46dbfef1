// Which host link belongs to which pod, and a trace span for each that the kernel makes or removes. CNI results name the pod of a
// link, netlink reports the link; the later of both completes the span.

import { routeText } from '../../cni/result.ts';
import type { Attachment, CniResult } from '../../cni/types.ts';
import type { TracePod, Tracer } from '../../lib/trace.ts';
import { hostEnds, podInterfaces } from './interfaces.ts';
import type { KernelTables } from './netlink.ts';
import type { KernelChange, KernelLink } from './rtnetlink.ts';

interface Owner {
  readonly containerId: string;
  readonly ifName: string;
  readonly pod: TracePod | undefined;
  readonly addresses: readonly string[];
  readonly routes: readonly string[];
  /** The kernel showed the link, and the span of that was emitted. */
  seen: boolean;
}

export class PodLinks {
  readonly #owners = new Map<string, Owner>();
  readonly #tables: KernelTables;
  readonly #tracer: Tracer;

  constructor(tables: KernelTables, tracer: Tracer) {
    this.#tables = tables;
    this.#tracer = tracer;
  }

  /** An attachment exists. `announce` false takes it in without a span: it was there before this agent. */
  attached(attachment: Attachment, result: CniResult, pod: TracePod | undefined, announce: boolean): void {
    const inside = podInterfaces(result, attachment.ifName, this.#tables);
    for (const [index, end] of hostEnds(result, this.#tables).entries()) {
      const shown = inside[index];
      const owner: Owner = {
        containerId: attachment.containerId,
        ifName: shown?.name ?? attachment.ifName,
        pod,
        addresses: shown?.addresses ?? [],
        routes: (shown?.routes ?? []).map(routeText),
        seen: !announce,
      };
      this.#owners.set(end.name, owner);
      const link = this.#tables.link(end.name);
      if (link !== undefined) this.#appeared(link, owner);
    }
  }

  /** The attachments of a container are gone; links the kernel has yet to report gone stay known until it does. */
  released(containerId: string): void {
    for (const [name, owner] of this.#owners) {
      if (owner.containerId === containerId && this.#tables.link(name) === undefined) this.#owners.delete(name);
    }
  }

  /** Applies a change from netlink. */
  changed(change: KernelChange): void {
    if (change.what === 'address') return;
    if (change.what === 'route') {
      const link = change.route.oif === undefined ? undefined : this.#tables.link(change.route.oif);
      const owner = link === undefined ? undefined : this.#owners.get(link.name);
      // The kernel's own link-local routes come with every link and say nothing.
      if (link === undefined || owner === undefined || change.route.dst === 'fe80::/64') return;
      const { dst, gw } = change.route;
      this.#emit(`${change.gone ? 'DELROUTE' : 'NEWROUTE'} ${dst}`, owner, { dst, gw, link: link.name });
      return;
    }
    const owner = this.#owners.get(change.link.name);
    if (owner === undefined) return;
    if (!change.gone) {
      this.#appeared(change.link, owner);
      return;
    }
    this.#owners.delete(change.link.name);
    this.#emit(`DELLINK ${change.link.name}`, owner, { link: change.link.name, index: change.link.index });
  }

  #appeared(link: KernelLink, owner: Owner): void {
    if (owner.seen) return;
    owner.seen = true;
    const master = link.master === undefined ? undefined : this.#tables.link(link.master)?.name;
    const [address] = owner.addresses;
    const route = address === undefined ? undefined : this.#tables.routeTo(address);
    const via = route?.oif === undefined ? undefined : this.#tables.link(route.oif)?.name;
    this.#emit(`NEWLINK ${link.name}`, owner, {
      link: link.name,
      index: link.index,
      kind: link.kind,
      mac: link.mac,
      mtu: link.mtu,
      up: link.up,
      master,
      addresses: owner.addresses,
      routes: owner.routes,
      hostRoute: route === undefined ? undefined : `${route.dst} dev ${via ?? '?'}`,
    });
  }

  #emit(
    name: string,
    owner: Owner,
    attributes: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>,
  ): void {
    const context = owner.pod === undefined ? {} : { pod: owner.pod };
    // The body does nothing: what happened, happened in the kernel.
    void this.#tracer.within({ ...context, cause: 'netlink notification' }, () =>
      this.#tracer.span(
        'netlink',
        name,
        { containerId: owner.containerId, ifName: owner.ifName, ...attributes },
        () => undefined,
      ),
    );
  }
}
