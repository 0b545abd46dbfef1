// A sandbox's resolv.conf: the node's, the cluster's or the pod's own, by dnsPolicy and dnsConfig. Pure; reads no file.

import type { Pod } from '../../../client/types.ts';

/** A resolv.conf in CRI's form. */
export interface ResolvConf {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** The limits of the API (and of glibc): the rest is cut off, as the kubelet cuts it. */
const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARS = 2048;
/** Some resolvers abort at a longer one. */
const MAX_SEARCH_LENGTH = 253;

/** Reads resolv.conf(5): servers add up, the last `search` and the last `options` line hold. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/);
    const [first] = values;
    if (keyword === 'nameserver' && first !== undefined) servers.push(first);
    else if (keyword === 'search' || (keyword === 'domain' && searches.length === 0))
      // A trailing dot has no meaning in a search path, and musl's resolver trips over it.
      searches = values.map((value) => (value === '.' ? value : value.replace(/\.$/, '')));
    else if (keyword === 'options') options = values;
  }
  return { servers, searches, options };
}

export interface ClusterDNS {
  /** KubeletConfiguration.clusterDNS and clusterDomain. */
  readonly servers: readonly string[];
  readonly domain: string;
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

/** The later list wins by option name: "ndots:2" replaces "ndots:5". */
function mergeOptions(base: readonly string[], more: readonly string[]): string[] {
  const byName = new Map<string, string>();
  for (const option of [...base, ...more]) byName.set(option.split(':', 1)[0] ?? option, option);
  return [...byName.values()];
}

/** Whether the pod uses the cluster's DNS. */
function wantsCluster({ spec }: Pod): boolean {
  const policy = spec.dnsPolicy ?? 'ClusterFirst';
  return policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && spec.hostNetwork !== true);
}

/** `host` is the node's resolv.conf, undefined when the agent runs with resolvConf: ''. */
function byPolicy(pod: Pod, cluster: ClusterDNS, host: ResolvConf | undefined): ResolvConf {
  // Without a node resolv.conf the runtime would fill in its own; a loopback server keeps it from that.
  const inherited = host ?? { servers: ['127.0.0.1'], searches: ['.'], options: [] };
  if (pod.spec.dnsPolicy === 'None') return { servers: [], searches: [], options: [] };
  // A cluster without DNS: the node's own resolver is the best there is.
  if (!wantsCluster(pod) || cluster.servers.length === 0) return inherited;
  const suffixes =
    cluster.domain === ''
      ? []
      : [`${pod.metadata.namespace}.svc.${cluster.domain}`, `svc.${cluster.domain}`, cluster.domain];
  return {
    servers: cluster.servers,
    searches: unique([...suffixes, ...(host?.searches ?? [])]),
    options: ['ndots:5'],
  };
}

function fitSearches(searches: readonly string[]): string[] {
  const kept: string[] = [];
  let chars = -1;
  for (const search of searches.slice(0, MAX_SEARCHES)) {
    if (search.length > MAX_SEARCH_LENGTH) continue;
    chars += search.length + 1;
    if (chars > MAX_SEARCH_CHARS) break;
    kept.push(search);
  }
  return kept;
}

/** The pod's resolv.conf: by policy, with dnsConfig added, cut to what a resolver reads. */
export function podResolvConf(pod: Pod, cluster: ClusterDNS, host: ResolvConf | undefined): ResolvConf {
  const { servers, searches, options } = wholeResolvConf(pod, cluster, host);
  return { servers: servers.slice(0, MAX_SERVERS), searches: fitSearches(searches), options };
}

export interface DnsWarning {
  readonly of: 'pod' | 'node';
  readonly reason: 'DNSConfigForming' | 'MissingClusterDNS';
  readonly message: string;
}

/** What the kubelet warns of when it makes a pod's resolv.conf: what was cut off, and a cluster that has no DNS. */
export function dnsWarnings(pod: Pod, cluster: ClusterDNS, host: ResolvConf | undefined): readonly DnsWarning[] {
  const whole = wholeResolvConf(pod, cluster, host);
  const { servers, searches } = podResolvConf(pod, cluster, host);
  const warnings: DnsWarning[] = [];
  const cut = (what: string, omitted: string, applied: readonly string[]): void => {
    const message = `${what} limits were exceeded, some ${omitted} have been omitted, the applied`;
    const line = `${what.toLowerCase().replace(/ line$/, '')} line is: ${applied.join(' ')}`;
    warnings.push({ of: 'pod', reason: 'DNSConfigForming', message: `${message} ${line}` });
  };
  if (wantsCluster(pod) && cluster.servers.length === 0) {
    const message =
      'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
      'Falling back to "Default" policy.';
    warnings.push({ of: 'node', reason: 'MissingClusterDNS', message });
  }
  if (servers.length < whole.servers.length) cut('Nameserver', 'nameservers', servers);
  if (searches.length < whole.searches.length) cut('Search Line', 'search paths', searches);
  return warnings;
}

function wholeResolvConf(pod: Pod, cluster: ClusterDNS, host: ResolvConf | undefined): ResolvConf {
  const base = byPolicy(pod, cluster, host);
  const own = pod.spec.dnsConfig;
  const options = (own?.options ?? []).flatMap(({ name, value }) =>
    name === undefined ? [] : [value === undefined || value === '' ? name : `${name}:${value}`],
  );
  return {
    servers: unique([...base.servers, ...(own?.nameservers ?? [])]),
    searches: unique([...base.searches, ...(own?.searches ?? [])]),
    options: mergeOptions(base.options, options),
  };
}
