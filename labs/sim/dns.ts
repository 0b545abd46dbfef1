// Name lookups of simulated containers: a resolver that searches as glibc's does (resolv.conf(5)), and the name servers that
// answer it. The file that it reads is the agent's own, as the runtime writes it; how containers ask and who answers is
// modelled. It keeps count of nothing: every query is reported.

import { parseResolvConf } from '../../agent/runtime/config/dns.ts';
import type { Clock } from '../../lib/clock.ts';
import type { DNSConfig__Output } from '../../proto/gen/runtime/v1/DNSConfig.ts';
import type { Dice } from './dice.ts';

/** The resolver that the simulated node itself uses, and the domain that it searches: what is in its /etc/resolv.conf. */
export const NODE_RESOLVER = '192.0.2.53';
export const NODE_RESOLV_CONF = `nameserver ${NODE_RESOLVER}\nsearch nodes.example\n`;

/** Names outside of the cluster that there are. */
const PUBLIC: ReadonlyMap<string, string> = new Map([
  ['example.com', '203.0.113.10'],
  ['www.example.com', '203.0.113.11'],
]);

/** glibc's own figures (resolv.conf(5)); a lookup is for addresses of both families. */
const DEFAULTS = { ndots: 1, timeout: 5, attempts: 2 } as const;
const MAX_NDOTS = 15;
const TYPES = ['A', 'AAAA'] as const;
/** How long an answer takes at most, ms. */
const ANSWER_MS = 3;

/** NODATA: the name has no address of that family. `none`: there is no answer. */
export type DnsAnswer = 'NOERROR' | 'NODATA' | 'NXDOMAIN' | 'SERVFAIL' | 'none';

/** One query on the wire. */
export interface DnsQuery {
  /** "namespace/name" */
  readonly pod: string;
  /** Without the dot at its end. */
  readonly name: string;
  readonly type: (typeof TYPES)[number];
  readonly server: string;
  readonly answer: DnsAnswer;
  /** Until it was answered, or given up. */
  readonly durationMs: number;
}

/** What becomes of a query on purpose. */
export interface DnsInjection {
  readonly answer?: DnsAnswer;
  readonly delayMs?: number;
}

export interface SimDnsParts {
  readonly clock: Clock;
  readonly dice: Dice;
  /** KubeletConfiguration.clusterDNS: these servers know the cluster's services, and pass on the rest. */
  readonly clusterServers: readonly string[];
  readonly clusterDomain: string;
  /** The address of a service; undefined where there is none. */
  readonly serviceAddress: (namespace: string, name: string) => string | undefined;
  readonly onQuery: (query: DnsQuery) => void;
}

/** /etc/resolv.conf as containerd writes it from a sandbox's DNSConfig; the node's own where that is empty. Pure. */
export function resolvConfText(config: DNSConfig__Output | undefined): string {
  const { servers = [], searches = [], options = [] } = config ?? {};
  if (servers.length + searches.length + options.length === 0) return NODE_RESOLV_CONF;
  const lines = [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * The names that a resolver tries for one, in order: with as many dots as ndots it is tried as it is first, with fewer last;
 * with a dot at its end, nothing else is tried. Pure.
 */
export function candidates(name: string, searches: readonly string[], ndots: number): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = searches.filter((search) => search !== '.').map((search) => `${name}.${search}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

function optionOf(options: readonly string[], name: keyof typeof DEFAULTS): number {
  const text = options.findLast((option) => option.startsWith(`${name}:`))?.slice(name.length + 1);
  const value = Number(text ?? DEFAULTS[name]);
  return Number.isInteger(value) && value >= 0 ? value : DEFAULTS[name];
}

interface Resolver {
  readonly pod: string;
  readonly servers: readonly string[];
  readonly timeoutMs: number;
  readonly attempts: number;
}

export class SimDns {
  readonly #parts: SimDnsParts;
  /** Chooses queries that go wrong on purpose. */
  inject: ((name: string, type: string, pod: string) => DnsInjection | undefined) | undefined;

  constructor(parts: SimDnsParts) {
    this.#parts = parts;
  }

  /** Looks a name up as getaddrinfo(3) does. Resolves to its addresses; none where it is not known, or no server answers. */
  async lookUp(pod: string, resolvConf: string, name: string): Promise<readonly string[]> {
    const { servers, searches, options } = parseResolvConf(resolvConf);
    const resolver = {
      pod,
      servers,
      timeoutMs: optionOf(options, 'timeout') * 1000,
      attempts: optionOf(options, 'attempts'),
    };
    for (const candidate of candidates(name, searches, Math.min(MAX_NDOTS, optionOf(options, 'ndots')))) {
      const answers = await this.#query(resolver, candidate);
      if (answers.includes('NOERROR')) return [this.#addressOf(candidate) ?? ''];
      // The search goes on after a name that does not exist, and ends where no server answers.
      if (answers.includes('none')) return [];
    }
    return [];
  }

  /** Both families at the same time; the next server, and the next attempt, follow where no answer comes. */
  async #query(resolver: Resolver, name: string): Promise<readonly DnsAnswer[]> {
    let answers: readonly DnsAnswer[] = ['none'];
    for (let attempt = 0; attempt < resolver.attempts; attempt++) {
      for (const server of resolver.servers) {
        answers = await Promise.all(TYPES.map((type) => this.#ask(resolver, server, name, type)));
        if (!answers.includes('none')) return answers;
      }
    }
    return answers;
  }

  async #ask({ pod, timeoutMs }: Resolver, server: string, name: string, type: DnsQuery['type']): Promise<DnsAnswer> {
    const { clock, dice, onQuery } = this.#parts;
    const { answer = this.#answerOf(server, name, type), delayMs = 1 + dice.below(ANSWER_MS) } =
      this.inject?.(name, type, pod) ?? {};
    const isLate = answer === 'none' || delayMs >= timeoutMs;
    const durationMs = isLate ? timeoutMs : delayMs;
    await clock.sleep(durationMs);
    const seen = isLate ? 'none' : answer;
    onQuery({ pod, name, type, server, answer: seen, durationMs });
    return seen;
  }

  #answerOf(server: string, name: string, type: DnsQuery['type']): DnsAnswer {
    const { clusterServers } = this.#parts;
    const isCluster = clusterServers.includes(server);
    if (!isCluster && server !== NODE_RESOLVER) return 'none';
    if (!isCluster && this.#isOfCluster(name)) return 'NXDOMAIN';
    if (this.#addressOf(name) === undefined) return 'NXDOMAIN';
    return type === 'A' ? 'NOERROR' : 'NODATA';
  }

  #isOfCluster(name: string): boolean {
    return name.endsWith(`.${this.#parts.clusterDomain}`);
  }

  #addressOf(name: string): string | undefined {
    const { clusterDomain, serviceAddress } = this.#parts;
    if (!this.#isOfCluster(name)) return PUBLIC.get(name);
    const labels = name.slice(0, -clusterDomain.length - 1).split('.');
    const [service = '', namespace = '', kind] = labels;
    return kind === 'svc' && labels.length === 3 ? serviceAddress(namespace, service) : undefined;
  }
}
