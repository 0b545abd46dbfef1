// The cluster's DNS in one process: list-watches of Services, slices, namespaces and, where they are needed, pods; the Corefile and the
// server. An ordinary client of an API server.

import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { resourcePath } from '../client/paths.ts';
import { Reflector } from '../client/reflector.ts';
import type { Identified, StoreListener } from '../client/store.ts';
import type { EndpointSlice, Pod, Service } from '../client/types.ts';
import { logWatch } from '../client/watch-log.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, UserError } from '../lib/errors.ts';
import { poll, retryUntilAborted, steadyPauses } from '../lib/retry.ts';
import type { Tracer } from '../lib/trace.ts';
import { ClusterIndex } from './cluster/index.ts';
import { CorefileError } from './corefile/blocks.ts';
import { parseCorefile } from './corefile/corefile.ts';
import type { ServerSettings } from './corefile/settings.ts';
import { DnsMetrics } from './metrics.ts';
import { DnsServer } from './server/server.ts';
import { type CorefileSource, configMapSource, fileSource } from './source.ts';

/** What a random number is divided by, to be below 1. */
const RANDOM_RANGE = 2 ** 47;
const LOOK_MS = 100;
/** Where the address is not there, or taken. */
const LISTEN_AGAIN_MS = 250;

export interface DnsOptions {
  readonly access: ClusterAccess;
  /** Where it listens, for questions and for HTTP. */
  readonly addresses: readonly string[];
  /** A file, or "namespace/name" of a ConfigMap. */
  readonly corefile: { readonly file: string } | { readonly configMap: string };
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: (level: 'info' | 'error', message: string) => void;
  readonly signal: AbortSignal;
  /** Called once questions are answered. */
  readonly onReady?: () => void;
}

/** The watches and their index. */
class Cluster {
  readonly index: ClusterIndex;
  readonly #options: DnsOptions;
  readonly #client: ApiClient;
  readonly #running: Promise<void>[] = [];
  #waiting = 0;
  #hasPods = false;

  constructor(options: DnsOptions, client: ApiClient) {
    this.#options = options;
    this.#client = client;
    this.index = new ClusterIndex(options.clock.now());
  }

  start(): void {
    const { index } = this;
    const { clock } = this.#options;
    this.#watch<Service>('services', 'v1', slim, (changes) => {
      for (const change of changes) index.serviceChanged(change, clock.now());
    });
    this.#watch<EndpointSlice>('endpointslices', 'discovery.k8s.io/v1', slim, (changes) => {
      for (const change of changes) index.sliceChanged(change, clock.now());
    });
    this.#watch<Identified>('namespaces', 'v1', slim, (changes) => {
      for (const change of changes) index.namespaceChanged(change, clock.now());
    });
  }

  /** From the first Corefile on that has `pods verified`. */
  watchPods(): void {
    if (this.#hasPods) return;
    this.#hasPods = true;
    const { clock } = this.#options;
    this.#watch<Pod>('pods', 'v1', slimPod, (changes) => {
      for (const change of changes) this.index.podChanged(change, clock.now());
    });
  }

  #watch<T extends Identified>(
    kind: string,
    apiVersion: string,
    transform: (object: T) => T,
    listener: StoreListener<T>,
  ): void {
    const { clock, log, signal } = this.#options;
    const reflector = new Reflector<T>({
      client: this.#client,
      path: resourcePath(apiVersion, kind),
      clock,
      transform,
      ...logWatch(kind, (line) => log('info', line)),
    });
    reflector.store.onChange(listener);
    this.#waiting++;
    this.index.synced = false;
    void reflector.store.whenSynced().then(() => {
      this.index.synced = --this.#waiting === 0;
    });
    this.#running.push(reflector.run(signal));
  }

  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }
}

function slim<T extends Identified>(object: T): T {
  const { managedFields, annotations, ownerReferences, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function slimPod({ metadata, status = {}, ...pod }: Pod): Pod {
  const { name, namespace, uid, resourceVersion } = metadata;
  const { phase, podIP } = status;
  const own = { ...(phase === undefined ? {} : { phase }), ...(podIP === undefined ? {} : { podIP }) };
  return { ...pod, metadata: { name, namespace, uid, resourceVersion }, spec: { containers: [] }, status: own };
}

/** Unpredictable: ids of questions and the order of addresses come from it. */
function secureRandom(): number {
  return randomInt(RANDOM_RANGE) / RANDOM_RANGE;
}

function sourceOf(options: DnsOptions, client: ApiClient, server: DnsServer): CorefileSource {
  const { corefile, clock, log } = options;
  if ('file' in corefile) {
    return fileSource(corefile.file, {
      clock,
      random: secureRandom,
      reload: () => reloadOf(server),
      onFailure: (error) => log('error', `plugin/reload: ${corefile.file}: ${errorMessage(error)}`),
    });
  }
  const [namespace = '', name = ''] = corefile.configMap.split('/');
  return configMapSource(client, {
    namespace,
    name,
    clock,
    onMissing: () => log('error', `there is no ConfigMap ${corefile.configMap} with a Corefile`),
    ...logWatch('configmaps', (line) => log('info', line)),
  });
}

function reloadOf({ instance }: DnsServer) {
  return instance?.settings.find(({ reload }) => reload !== undefined)?.reload;
}

/** Puts one Corefile after the other to work. */
class Loader {
  readonly #options: DnsOptions;
  readonly #server: DnsServer;
  readonly #cluster: Cluster;
  readonly #metrics: DnsMetrics;
  #latest = '';
  #applying: Promise<void> = Promise.resolve();

  constructor(options: DnsOptions, server: DnsServer, cluster: Cluster, metrics: DnsMetrics) {
    this.#options = options;
    this.#server = server;
    this.#cluster = cluster;
    this.#metrics = metrics;
  }

  /** Rejects with UserError where the first one, of a file, is wrong. */
  readonly take = (text: string): Promise<void> => {
    this.#latest = text;
    this.#applying = this.#applying.then(() =>
      this.#server.instance === undefined ? this.#first(text) : this.#next(text),
    );
    return this.#applying;
  };

  async #first(text: string): Promise<void> {
    const { log, clock, signal, corefile } = this.#options;
    try {
      await this.#clusterKnown(parseCorefile(text));
      await retryUntilAborted(() => this.#server.apply(text), {
        clock,
        signal,
        policy: steadyPauses(LISTEN_AGAIN_MS),
        // An address may come later; what is written stays wrong until something else is.
        mends: (error) => !(error instanceof CorefileError) && this.#latest === text,
        onFailure: (error) => log('error', `not listening yet: ${errorMessage(error)}`),
      });
    } catch (error) {
      if ('file' in corefile) throw new UserError(errorMessage(error));
      log('error', errorMessage(error));
      return;
    }
    if (signal.aborted) return;
    this.#follow();
    log('info', 'the Corefile is loaded');
    this.#options.onReady?.();
  }

  async #next(text: string): Promise<void> {
    const { log } = this.#options;
    if (reloadOf(this.#server) === undefined) {
      log('info', 'the Corefile has changed; without the plugin reload it is read at the next start');
      return;
    }
    try {
      await this.#server.apply(text);
    } catch (error) {
      this.#metrics.reloadFailed();
      log('error', `plugin/reload: ${errorMessage(error)}: the old Corefile stays in use`);
      return;
    }
    this.#follow();
    log('info', 'plugin/reload: the new Corefile is loaded');
  }

  /** CoreDNS's start: what is not known is denied, so the cluster comes first, for a while. */
  async #clusterKnown(settings: readonly ServerSettings[]): Promise<void> {
    const { clock, signal, log } = this.#options;
    const limits = settings.flatMap(({ kubernetes }) => kubernetes?.startupTimeoutMs ?? []);
    if (limits.length === 0) return;
    const limitMs = Math.max(...limits);
    const known = (): boolean => this.#cluster.index.synced || signal.aborted;
    if (await poll(known, { clock, everyMs: LOOK_MS, firstMs: 5, limitMs })) return;
    log('info', 'plugin/kubernetes: starting server with unsynced Kubernetes API');
  }

  #follow(): void {
    const settings = this.#server.instance?.settings ?? [];
    if (settings.some(({ kubernetes }) => kubernetes?.pods === 'verified')) this.#cluster.watchPods();
  }
}

/** Runs until the signal aborts. Rejects with UserError for a file that is wrong at the start, and for a loop. */
export async function runDns(options: DnsOptions): Promise<void> {
  const { clock, log, signal: outer } = options;
  const over = new AbortController();
  const signal = AbortSignal.any([outer, over.signal]);
  setMaxListeners(0, signal);
  const client = new ApiClient(options.access, { tracer: options.tracer, clock, userAgent: 'nodelet-dns' });
  const own = { ...options, signal };
  const cluster = new Cluster(own, client);
  const metrics = new DnsMetrics();
  const usesCluster = (): boolean => server.instance?.settings.some((each) => each.kubernetes !== undefined) === true;
  const server: DnsServer = new DnsServer({
    cluster: cluster.index,
    addresses: options.addresses,
    metrics,
    tracer: options.tracer,
    clock,
    random: secureRandom,
    log,
    signal,
    notReady: () => (usesCluster() && !cluster.index.synced ? ['kubernetes'] : []),
    onLoop: (words) => {
      log('error', `plugin/loop: ${words}`);
      over.abort(new UserError(words));
    },
  });
  const loader = new Loader(own, server, cluster, metrics);
  cluster.start();
  try {
    await sourceOf(options, client, server)(loader.take, signal);
    // Health checks find it well until it ends.
    server.leave();
    if (outer.aborted && server.lameduckMs > 0) await clock.sleep(server.lameduckMs);
    if (over.signal.aborted) throw over.signal.reason;
  } finally {
    over.abort();
    server.close();
    await cluster.ended();
    client.close();
  }
}
