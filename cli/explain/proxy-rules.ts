// What a node's proxy does with the addresses of Services, from the kernel's tables: iptables as `iptables-save -t nat` prints it,
// and nftables as `nft -j list table ip kube-proxy` does. The names are kube-proxy's. Pure; a line that is none of its is skipped.

import type { ProxyFacts, ProxyRule } from './facts.ts';

const PROTOCOLS: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp']);

function words(line: string): readonly string[] {
  return line.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [];
}

function after(parts: readonly string[], flag: string): string | undefined {
  const place = parts.indexOf(flag);
  return place < 0 ? undefined : parts[place + 1];
}

interface Jump {
  readonly parts: readonly string[];
  readonly target: string;
}

/** Undefined: there is no chain KUBE-SERVICES. */
export function iptablesProxy(saved: string): ProxyFacts | undefined {
  const chains = new Map<string, Jump[]>();
  for (const line of saved.split('\n')) {
    const declared = /^:(KUBE-\S+) /.exec(line)?.[1];
    if (declared !== undefined && !chains.has(declared)) chains.set(declared, []);
    const parts = words(line.trim());
    const [append, chain] = parts;
    const target = after(parts, '-j') ?? after(parts, '-g');
    if (append !== '-A' || chain === undefined || target === undefined) continue;
    const jumps = chains.get(chain);
    if (jumps === undefined) chains.set(chain, [{ parts, target }]);
    else jumps.push({ parts, target });
  }
  const services = chains.get('KUBE-SERVICES');
  if (services === undefined) return undefined;
  if (services.some(({ parts }) => parts.includes('KUBE-CLUSTER-IP'))) return { kind: 'ipvs', rules: [] };
  const rules = services.flatMap(({ parts, target }): ProxyRule[] => {
    const [address = ''] = after(parts, '-d')?.split('/') ?? [];
    const protocol = after(parts, '-p') ?? '';
    const port = Number(after(parts, '--dport'));
    if (address === '' || !PROTOCOLS.has(protocol) || !Number.isInteger(port)) return [];
    return [{ address, protocol: protocol.toUpperCase(), port, to: destinations(chains, target, new Set()) }];
  });
  return { kind: 'iptables', rules: unique(rules) };
}

/** The addresses to which a chain leads, through those that it jumps to. */
function destinations(
  chains: ReadonlyMap<string, readonly Jump[]>,
  name: string,
  seen: Set<string>,
): readonly string[] {
  if (seen.has(name)) return [];
  seen.add(name);
  return (chains.get(name) ?? []).flatMap(({ parts, target }) => {
    const to = after(parts, '--to-destination');
    return to === undefined ? destinations(chains, target, seen) : [to];
  });
}

/** One rule for an address and port: several lines lead to the same (masquerading, affinity). */
function unique(rules: readonly ProxyRule[]): readonly ProxyRule[] {
  const found = new Map<string, ProxyRule>();
  for (const rule of rules) {
    const key = `${rule.protocol} ${rule.address} ${rule.port}`;
    const known = found.get(key);
    found.set(key, known === undefined ? rule : { ...rule, to: [...new Set([...known.to, ...rule.to])] });
  }
  return [...found.values()];
}

type Json = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectAt(value: unknown, key: string): Json | undefined {
  const inner = isObject(value) ? new Map(Object.entries(value)).get(key) : undefined;
  return isObject(inner) ? inner : undefined;
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const inner = isObject(value) ? new Map(Object.entries(value)).get(key) : undefined;
  return Array.isArray(inner) ? inner : [];
}

function textAt(value: unknown, key: string): string | undefined {
  const inner = isObject(value) ? new Map(Object.entries(value)).get(key) : undefined;
  return typeof inner === 'string' || typeof inner === 'number' ? String(inner) : undefined;
}

/** All chains to which something below a value jumps. */
function targetsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(targetsIn);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const target = key === 'goto' || key === 'jump' ? textAt(inner, 'target') : undefined;
    return target === undefined ? targetsIn(inner) : [target];
  });
}

/** All addresses to which something below a value translates. */
function translationsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(translationsIn);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const address = key === 'dnat' ? textAt(inner, 'addr') : undefined;
    if (address === undefined) return translationsIn(inner);
    const host = address.includes(':') ? `[${address}]` : address;
    return [`${host}:${textAt(inner, 'port') ?? ''}`];
  });
}

/** `listed`: JSON of nft. Undefined: it is none, or has no map of the proxy's. */
export function nftablesProxy(listed: string): ProxyFacts | undefined {
  let document: unknown;
  try {
    document = JSON.parse(listed);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  const entries = listAt(document, 'nftables');
  const map = (name: string): Json | undefined =>
    entries.map((entry) => objectAt(entry, 'map')).find((each) => textAt(each, 'name') === name);
  const services = map('service-ips');
  if (services === undefined) return undefined;
  const bodies = new Map<string, unknown[]>();
  for (const entry of entries) {
    const rule = objectAt(entry, 'rule');
    const chain = textAt(rule, 'chain');
    if (chain === undefined) continue;
    bodies.set(chain, [...(bodies.get(chain) ?? []), listAt(rule, 'expr')]);
  }
  const leadsTo = (chain: string, seen: Set<string>): readonly string[] => {
    if (seen.has(chain)) return [];
    seen.add(chain);
    const body = bodies.get(chain) ?? [];
    return [...translationsIn(body), ...targetsIn(body).flatMap((next) => leadsTo(next, seen))];
  };
  const rulesOf = (found: Json | undefined): readonly ProxyRule[] =>
    listAt(found, 'elem').flatMap((element): ProxyRule[] => {
      const [key, verdict] = Array.isArray(element) ? element : [];
      // An element that has a comment is wrapped once more.
      const parts = listAt(objectAt(key, 'elem')?.['val'] ?? key, 'concat');
      const [address, protocol, port] = parts.map(String);
      if (address === undefined || protocol === undefined || port === undefined) return [];
      const to = targetsIn(verdict).flatMap((chain) => leadsTo(chain, new Set()));
      return [{ address, protocol: protocol.toUpperCase(), port: Number(port), to: [...new Set(to)] }];
    });
  // Those without endpoints come last: a Service that has some is in the first map alone.
  return { kind: 'nftables', rules: unique([...rulesOf(services), ...rulesOf(map('no-endpoint-services'))]) };
}
