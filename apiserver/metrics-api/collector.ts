// Reads /metrics/resource of every node's kubelet while clients read metrics.k8s.io, whose objects are made of the last readings.
// The first request waits for two readings a second apart; after that every node is read every 15 s, as metrics-server does, until
// there has been no request for some minutes.

import { resolvesWithin } from '../../lib/abort.ts';
import { type Clock, elapsedMs, type MonotonicMs, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { readText } from '../../lib/read-body.ts';
import { singleFlight } from '../../lib/single-flight.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import { isObject } from '../patch/json-value.ts';
import type { KubeletClient } from '../proxy/kubelet.ts';
import { addressOf } from '../proxy/node-address.ts';
import { nodeMetrics, podMetrics } from './objects.ts';
import { type NodePoints, parseResourceMetrics } from './resource-text.ts';
import { nextReadings, type Readings, usageOf } from './usage.ts';

/** metrics-server's --metric-resolution. */
const PERIOD_MS = 15_000;
/** Between the two readings of the first request. */
const FIRST_MS = 1_000;
/** For how long the first request waits for nodes that do not answer. */
const PATIENCE_MS = 2_000;
/** Of one kubelet. */
const TIMEOUT_MS = 10_000;
/** Reading ends after so long without a request. ms. */
const UNUSED_MS = 300_000;
/** A page of a full node has some 100 kB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const PATH = '/metrics/resource';

export interface MetricsCollectorOptions {
  readonly lookup: ObjectLookup;
  readonly kubelets: Pick<KubeletClient, 'request'>;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

interface NodeReadings {
  readonly node: Readings | undefined;
  /** By `namespace/name` and container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Readings>>;
}

export class MetricsCollector {
  readonly #options: MetricsCollectorOptions;
  /** By node. */
  readonly #readings = new Map<string, NodeReadings>();
  /** Nodes that are being read. */
  readonly #underWay = new Map<string, Promise<void>>();
  #requestedAt: MonotonicMs | undefined;
  #timer: Timer | undefined;
  readonly #stopped = new AbortController();
  readonly #begin = singleFlight(() => this.#readTwice());

  constructor(options: MetricsCollectorOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stopped.abort(new Error('the server stops'));
  }

  /** A client reads metrics: resolves once there are figures. */
  async requested(): Promise<void> {
    this.#requestedAt = this.#options.clock.monotonic();
    if (this.#timer === undefined) await this.#begin();
  }

  nodes(): readonly KubeObject[] {
    const now = this.#options.clock.now();
    return this.#options.lookup.list('', 'nodes').flatMap((node) => {
      const readings = this.#readings.get(node.metadata.name ?? '')?.node;
      const usage = readings === undefined ? undefined : usageOf(readings);
      return usage === undefined ? [] : [nodeMetrics(node, usage, now)];
    });
  }

  /** `namespace` undefined: of all. Only pods that run, and of whose containers all figures are there. */
  pods(namespace: string | undefined): readonly KubeObject[] {
    const { clock, lookup } = this.#options;
    const now = clock.now();
    const all = namespace === undefined ? lookup.list('', 'pods') : Array.from(lookup.each('', 'pods', namespace));
    return all.flatMap((pod) => {
      const { status, spec } = pod;
      if (!isObject(status) || status['phase'] !== 'Running' || !isObject(spec)) return [];
      const node = spec['nodeName'];
      const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
      const readings = typeof node === 'string' ? this.#readings.get(node)?.pods.get(key) : undefined;
      if (readings === undefined || readings.size === 0) return [];
      const usages = [...readings].flatMap(([container, of]) => {
        const usage = usageOf(of);
        return usage === undefined ? [] : [[container, usage] as const];
      });
      return usages.length < readings.size ? [] : [podMetrics(pod, usages, now)];
    });
  }

  async #readTwice(): Promise<void> {
    const { clock } = this.#options;
    // What was read before the pause says nothing about now.
    this.#readings.clear();
    await resolvesWithin(clock, PATIENCE_MS, this.#readAll());
    await clock.sleep(FIRST_MS, this.#stopped.signal);
    await resolvesWithin(clock, PATIENCE_MS, this.#readAll());
    this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped.signal.aborted) return;
    const { clock } = this.#options;
    this.#timer = clock.after(PERIOD_MS, () => {
      this.#timer = undefined;
      const unused = this.#requestedAt === undefined || elapsedMs(this.#requestedAt, clock.monotonic()) >= UNUSED_MS;
      if (unused) return;
      this.#timer = { cancel: () => undefined };
      void this.#readAll().finally(() => this.#schedule());
    });
  }

  /** All nodes side by side; none waits for another. Never rejects. */
  async #readAll(): Promise<void> {
    const nodes = this.#options.lookup.list('', 'nodes');
    const names = new Set(nodes.map(({ metadata }) => metadata.name));
    for (const name of this.#readings.keys()) if (!names.has(name)) this.#readings.delete(name);
    await Promise.all(nodes.map((node) => this.#readNode(node)));
  }

  /** One that does not answer has no figures until it does. */
  #readNode(node: KubeObject): Promise<void> {
    const { name = '' } = node.metadata;
    let reading = this.#underWay.get(name);
    if (reading === undefined) {
      reading = this.#read(node)
        .then((points) => {
          if (points === undefined) this.#readings.delete(name);
          else this.#readings.set(name, merged(this.#readings.get(name), points));
        })
        .finally(() => this.#underWay.delete(name));
      this.#underWay.set(name, reading);
    }
    return reading;
  }

  async #read(node: KubeObject): Promise<NodePoints | undefined> {
    const { kubelets, log, clock } = this.#options;
    const limit = new AbortController();
    const timer = clock.after(TIMEOUT_MS, () => limit.abort(new Error('i/o timeout')));
    const signal = AbortSignal.any([limit.signal, this.#stopped.signal]);
    try {
      const response = await kubelets.request(addressOf(node), 'GET', PATH, {}, undefined, signal);
      const text = await readText(response, MAX_PAGE_BYTES, 'the page of metrics is too large');
      const { statusCode = 0 } = response;
      if (statusCode !== 200)
        throw new Error(`request failed, status: "${statusCode} ${response.statusMessage ?? ''}"`);
      return parseResourceMetrics(text);
    } catch (error) {
      if (!this.#stopped.signal.aborted) {
        log(`metrics.k8s.io: Failed to scrape node ${node.metadata.name}: ${errorMessage(error)}`);
      }
      return undefined;
    } finally {
      timer.cancel();
    }
  }
}

function merged(known: NodeReadings | undefined, { node, pods }: NodePoints): NodeReadings {
  return {
    node: node === undefined ? undefined : nextReadings(known?.node, node, PERIOD_MS),
    pods: new Map(
      [...pods].map(([key, { containers }]) => {
        const before = known?.pods.get(key);
        const readings = [...containers].map(
          ([name, point]) => [name, nextReadings(before?.get(name), point, PERIOD_MS)] as const,
        );
        return [key, new Map(readings)];
      }),
    ),
  };
}
