// What a Corefile says, as values: one server block after the other, each plugin with its options. Types only. Zones are in lower
// case without a dot at the end; '' is the root. Times are in ms, TTLs in seconds.

import type { LabelSelector } from 'kubernetes-types/meta/v1';

/** Names that are passed on to the next plugin where this one has none; undefined: none are. */
export type FallThrough = readonly string[] | undefined;

export interface KubernetesSettings {
  readonly zones: readonly string[];
  readonly pods: 'disabled' | 'insecure' | 'verified';
  readonly endpointPodNames: boolean;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly namespaceLabels: LabelSelector | undefined;
  /** Of Services. */
  readonly labels: LabelSelector | undefined;
  readonly ttl: number;
  readonly noEndpoints: boolean;
  readonly ignoreEmptyService: boolean;
  readonly fallThrough: FallThrough;
  readonly startupTimeoutMs: number;
}

export interface Upstream {
  readonly address: string;
  readonly port: number;
}

/** A server by its address, or those of a file like /etc/resolv.conf. */
export type UpstreamSource = Upstream | { readonly file: string; readonly line: number };

export interface ForwardSettings {
  readonly from: string;
  readonly to: readonly UpstreamSource[];
  readonly except: readonly string[];
  readonly forceTcp: boolean;
  readonly preferUdp: boolean;
  readonly expireMs: number;
  readonly maxIdleConns: number;
  readonly readTimeoutMs: number;
  readonly maxFails: number;
  /** Undefined: twice for each upstream; 0: as often as there is time. */
  readonly maxConnectAttempts: number | undefined;
  readonly policy: 'random' | 'round_robin' | 'sequential';
  readonly healthCheckMs: number;
  readonly healthCheckRecursion: boolean;
  readonly healthCheckDomain: string;
  /** 0: this server's own bound. */
  readonly maxConcurrent: number;
  readonly failFast: boolean;
  /** Codes of answers with which the next upstream is tried. */
  readonly failover: readonly number[];
}

export interface CacheSide {
  readonly capacity: number;
  readonly maxTtl: number;
  readonly minTtl: number;
  /** Zones whose answers are not kept. */
  readonly except: readonly string[];
}

export interface CacheSettings {
  readonly zones: readonly string[];
  readonly success: CacheSide;
  readonly denial: CacheSide;
  /** 0: SERVFAIL is not kept. */
  readonly servfailTtl: number;
  readonly keepTtl: boolean;
}

export interface HostsSettings {
  readonly file: string;
  readonly zones: readonly string[];
  readonly inline: readonly string[];
  readonly ttl: number;
  readonly reverse: boolean;
  /** 0: the file is read once. */
  readonly reloadMs: number;
  readonly fallThrough: FallThrough;
}

export type ResponseClass = 'all' | 'success' | 'denial' | 'error';

export interface LogSettings {
  readonly zones: readonly string[];
  readonly format: string;
  readonly classes: readonly ResponseClass[];
}

/** `host` is '' for the server's own address. */
export interface HttpAddress {
  readonly host: string;
  readonly port: number;
}

export interface ServerSettings {
  readonly line: number;
  readonly zones: readonly { readonly zone: string; readonly port: number }[];
  readonly errors: boolean;
  readonly logs: readonly LogSettings[];
  readonly health: { readonly at: HttpAddress; readonly lameduckMs: number } | undefined;
  readonly ready: HttpAddress | undefined;
  readonly prometheus: HttpAddress | undefined;
  readonly reload: { readonly intervalMs: number; readonly jitterMs: number } | undefined;
  readonly loop: boolean;
  readonly loadbalance: boolean;
  readonly cache: CacheSettings | undefined;
  readonly hosts: HostsSettings | undefined;
  readonly kubernetes: KubernetesSettings | undefined;
  /** In the order in which they are tried. */
  readonly forwards: readonly ForwardSettings[];
}
