// What the proxy needs of the two ways to program the kernel. Types only.

import type { RuleOptions } from './options.ts';
import type { Reachable } from './reachable.ts';
import type { ServicePort } from './service-ports.ts';

/** A port of a service with the endpoints that this node's traffic may reach. */
export interface ServicePortEndpoints {
  readonly port: ServicePort;
  readonly reachable: Reachable;
}

/** All ports of Services by name and protocol, in the order of their rules. The same object for a port means: nothing changed. */
export type ServicePortMap = ReadonlyMap<string, ServicePortEndpoints>;

export interface Applied {
  /** Rules (iptables) or rules and elements (nftables) that are there now, by table. */
  readonly total: Readonly<Record<string, number>>;
  /** Those that were written this time. */
  readonly written: Readonly<Record<string, number>>;
  readonly withoutLocal: { readonly internal: number; readonly external: number };
}

export interface Backend {
  /** Writes what differs from the last call's; all of it where `full`. Rejects when the kernel refuses, and nothing is changed then. */
  apply(portMap: ServicePortMap, options: RuleOptions, full: boolean): Promise<Applied>;
  /** What someone else has changed, in words; undefined where everything is as it was written. */
  damage(): Promise<string | undefined>;
}
