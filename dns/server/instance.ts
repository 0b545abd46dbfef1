// One Corefile at work: its server blocks as chains of plugins, by port and zone, in CoreDNS's order. It opens no port.

import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { ClusterView } from '../cluster/index.ts';
import { parseCorefile } from '../corefile/corefile.ts';
import type { HttpAddress, ServerSettings } from '../corefile/settings.ts';
import { Forwarder } from '../forward/forward.ts';
import type { DnsMetrics } from '../metrics.ts';
import { cachePlugin } from '../plugins/cache.ts';
import { hostsPlugin } from '../plugins/hosts.ts';
import { kubernetesPlugin } from '../plugins/kubernetes.ts';
import { loadbalancePlugin } from '../plugins/loadbalance.ts';
import { type LoopDetector, loopDetector } from '../plugins/loop.ts';
import { type Handler, noPlugin } from '../plugins/plugin.ts';
import { Answerer, type Chain } from './answer.ts';
import { followHosts } from './hosts-file.ts';
import { upstreamsOf } from './resolv-conf.ts';

export interface InstanceParts {
  readonly tracer: Tracer;
  readonly cluster: ClusterView;
  /** Where this server listens; the first one is its own name to itself. */
  readonly addresses: readonly string[];
  readonly metrics: DnsMetrics;
  readonly clock: Clock;
  /** 0 ≤ x < 1, unpredictable. */
  readonly random: () => number;
  readonly log: (level: 'info' | 'error', message: string) => void;
  /** An upstream leads back here. */
  readonly onLoop: (words: string) => void;
}

/** The path of an HTTP server of the Corefile. */
export type HttpPath = '/health' | '/ready' | '/metrics';

export interface OpenPort {
  readonly port: number;
  /** By address. */
  readonly answerers: ReadonlyMap<string, Answerer>;
}

export interface Instance {
  readonly settings: readonly ServerSettings[];
  readonly ports: readonly OpenPort[];
  readonly http: readonly { readonly at: HttpAddress; readonly path: HttpPath }[];
  readonly loops: readonly { readonly detector: LoopDetector; readonly port: number }[];
  close(): void;
}

interface Built {
  readonly chain: Chain;
  readonly loop: LoopDetector | undefined;
  readonly names: readonly string[];
}

/** Makes what one server block needs once, for all its zones, addresses and ports. */
class BlockBuilder {
  readonly #settings: ServerSettings;
  readonly #parts: InstanceParts;
  readonly #signal: AbortSignal;
  readonly #forwarders: Forwarder[];

  constructor(settings: ServerSettings, parts: InstanceParts, signal: AbortSignal, forwarders: Forwarder[]) {
    this.#settings = settings;
    this.#parts = parts;
    this.#signal = signal;
    this.#forwarders = forwarders;
  }

  /** From the last plugin to the first. */
  async build(server: string, resolve: Answerer['resolve']): Promise<Built> {
    const { clock, random, metrics } = this.#parts;
    const { cache, kubernetes, errors, logs, loadbalance } = this.#settings;
    let handle = await this.#forwards();
    const loop = this.#settings.loop ? this.#loop() : undefined;
    if (loop !== undefined) handle = loop.plugin(handle);
    if (kubernetes !== undefined) {
      const { cluster, addresses } = this.#parts;
      handle = kubernetesPlugin({ cluster, settings: kubernetes, ownAddresses: addresses }, resolve, handle);
    }
    handle = await this.#hosts(handle);
    if (cache !== undefined) handle = cachePlugin(cache, clock, metrics.cache(server, cache.zones), handle);
    if (loadbalance) handle = loadbalancePlugin(random, handle);
    return { chain: { handle, errors, logs }, loop, names: pluginNames(this.#settings) };
  }

  #loop(): LoopDetector {
    const { random, onLoop } = this.#parts;
    return loopDetector(this.#settings.zones[0]?.zone ?? '', random, onLoop);
  }

  async #forwards(): Promise<Handler> {
    const { tracer, clock, random, metrics } = this.#parts;
    const counts = (upstream: string) => metrics.upstream(upstream);
    let handle: Handler = noPlugin;
    for (const settings of [...this.#settings.forwards].reverse()) {
      const parts = { tracer, clock, random, signal: this.#signal, counts, forwardCounts: metrics.forward };
      const forwarder = new Forwarder(settings, await upstreamsOf(settings), parts);
      this.#forwarders.push(forwarder);
      handle = forwarder.plugin(handle);
    }
    return handle;
  }

  async #hosts(next: Handler): Promise<Handler> {
    const { hosts } = this.#settings;
    if (hosts === undefined) return next;
    const { clock, log, metrics } = this.#parts;
    const file = await followHosts(hosts, {
      clock,
      signal: this.#signal,
      log: (message) => log('error', message),
      onRead: (entries) => metrics.hosts(entries, clock.now()),
    });
    return hostsPlugin(hosts, () => file.table(), next);
  }
}

function pluginNames(settings: ServerSettings): readonly string[] {
  const names = ['errors', 'health', 'ready', 'prometheus', 'reload', 'loop', 'loadbalance', 'cache', 'hosts'] as const;
  const own = names.filter((name) => settings[name] !== undefined && settings[name] !== false);
  return [
    ...own,
    ...(settings.logs.length > 0 ? ['log'] : []),
    ...(settings.kubernetes === undefined ? [] : ['kubernetes']),
    ...(settings.forwards.length > 0 ? ['forward'] : []),
  ];
}

export function serverName(address: string, port: number): string {
  return `dns://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

interface Draft {
  readonly chains: Map<string, Chain>;
  readonly answerer: Answerer;
}

/** Rejects with CorefileError where the text is wrong or names files that are not there; then nothing is left running. */
export async function makeInstance(text: string, parts: InstanceParts): Promise<Instance> {
  const settings = parseCorefile(text);
  const stop = new AbortController();
  const forwarders: Forwarder[] = [];
  const close = (): void => {
    stop.abort();
    for (const forwarder of forwarders) forwarder.close();
  };
  const ports = new Map<number, Map<string, Draft>>();
  const loops: { detector: LoopDetector; port: number }[] = [];
  const enabled: { server: string; zone: string; name: string }[] = [];
  const draftAt = (address: string, port: number): Draft => {
    const server = serverName(address, port);
    const chains = new Map<string, Chain>();
    const { clock, log, metrics } = parts;
    return { chains, answerer: new Answerer({ server, local: address, chains, clock, log, counts: metrics }) };
  };
  try {
    for (const block of settings) {
      const builder = new BlockBuilder(block, parts, stop.signal, forwarders);
      for (const port of new Set(block.zones.map((each) => each.port))) {
        const drafts = ports.get(port) ?? new Map(parts.addresses.map((each) => [each, draftAt(each, port)] as const));
        ports.set(port, drafts);
        const [[address, first] = []] = drafts;
        if (address === undefined || first === undefined) continue;
        const server = serverName(address, port);
        const { chain, loop, names } = await builder.build(server, first.answerer.resolve);
        if (loop !== undefined) loops.push({ detector: loop, port });
        for (const { zone } of block.zones.filter((each) => each.port === port)) {
          for (const draft of drafts.values()) draft.chains.set(zone, chain);
          enabled.push(...names.map((name) => ({ server, zone, name })));
        }
      }
    }
  } catch (error) {
    close();
    throw error;
  }
  parts.metrics.pluginsEnabled(enabled);
  const opened = [...ports].map(([port, drafts]) => ({
    port,
    answerers: new Map([...drafts].map(([address, { answerer }]) => [address, answerer] as const)),
  }));
  return { settings, ports: opened, http: httpPaths(settings), loops, close };
}

function httpPaths(settings: readonly ServerSettings[]): Instance['http'] {
  return settings.flatMap(({ health, ready, prometheus }) => [
    ...(health === undefined ? [] : [{ at: health.at, path: '/health' as const }]),
    ...(ready === undefined ? [] : [{ at: ready, path: '/ready' as const }]),
    ...(prometheus === undefined ? [] : [{ at: prometheus, path: '/metrics' as const }]),
  ]);
}
