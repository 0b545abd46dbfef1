// The node's own loop: registers the Node, keeps its status and lease current, and reports at once when the node becomes
// ready or stops being so. The Node's content is decided in register.ts, status.ts and conditions.ts.

import type { RequestOptions } from '../../client/api.ts';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Node } from '../../client/types.ts';
import { resolvesWithin, whenAborted } from '../../lib/abort.ts';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import type { MonotonicMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat, retryUntilAborted } from '../../lib/retry.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { nodeReference } from '../model/event-reference.ts';
import type { RuntimeImage } from '../ports/runtime.ts';
import { type NodePressure, notReadyBecause, startEvents, transitionEvent } from './conditions.ts';
import { HealthMonitor } from './health.ts';
import { LeaseKeeper } from './lease.ts';
import type { NodeAgentOptions } from './options.ts';
import { adoptionPatch, newNode } from './register.ts';
import {
  type ComparedStatus,
  type FullNodeStatus,
  nextStatus,
  type StatusFacts,
  statusChanged,
  statusDelayMs,
  statusPatch,
  wasCompared,
} from './status.ts';

/**
 * How often runtime and network are checked. The kubelet checks every 5 s, and writes what changed with a status, every 10 s. What
 * changes here is written at once: checks are as rare as statuses, but where the runtime does not answer, and to be ready sooner.
 */
const HEALTH_INTERVAL_MS = 10_000;
const NO_ANSWER_INTERVAL_MS = 5000;
const UNHEALTHY_INTERVAL_MS = 1000;
/** Registration waits this long for the first answer. */
const FIRST_CHECK_MS = 2000;
/** The kubelet's figures for a Node that cannot be registered. */
const REGISTER_BACKOFF: BackoffPolicy = { initialMs: 100, maxMs: 7000, factor: 2, resetMs: 60_000 };
/** The list of images may be this old in a status. */
const IMAGES_MAX_AGE_MS = 30_000;
/** A status waits this long for the list of images; a runtime that hangs must not keep the Node from saying so. */
const IMAGES_WAIT_MS = 2000;
/** A heartbeat that takes longer is given up; the next one is more use. */
const REQUEST_TIMEOUT_MS = 10_000;
const NO_PRESSURE: NodePressure = { memory: false, disk: false, pid: false };

function isSameVersion({ metadata: a }: Node, { metadata: b }: Node): boolean {
  return a.uid === b.uid && a.resourceVersion !== undefined && a.resourceVersion === b.resourceVersion;
}

export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #health: HealthMonitor;
  readonly #lease: LeaseKeeper;
  readonly #path: string;
  readonly #random: () => number;
  #node: Node | undefined;
  #images: { readonly list: readonly RuntimeImage[]; readonly at: MonotonicMs } | undefined;
  /** The call for images that is under way. */
  #imagesCall: Promise<void> | undefined;
  /** The last status that needed no writing. */
  #compared: ComparedStatus | undefined;
  /** Monotonic ms of the last status written. */
  #reportedAt: MonotonicMs | undefined;
  /** What each part last failed with, so that it is logged once and not at every try. */
  readonly #trouble = new Map<'lease' | 'status', string>();
  #nodeKnown: () => void = () => undefined;
  #wake: (() => void) | undefined;
  /** Ends the request for the status that is under way. */
  #attempt = new AbortController();
  #woken = false;
  // As in StatusPace.
  #urgent = false;
  #reportedReady = false;
  /** `spec.unschedulable` at the last look. */
  #unschedulable = false;
  /** The watched Node may be older than what the server has: it is read. */
  #mayBeStale = true;

  constructor(options: NodeAgentOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#health = new HealthMonitor(options);
    this.#path = resourcePath('v1', 'nodes', { name: options.nodeName });
    this.#lease = new LeaseKeeper({
      nodeName: options.nodeName,
      durationSeconds: options.config.nodeLeaseDurationSeconds,
      client: options.client,
      clock: options.clock,
      random: this.#random,
      nodeUid: () => this.#node?.metadata.uid,
      onFailure: (error) => this.#troubled('lease', `cannot renew the node's lease: ${errorMessage(error)}`),
      onRenewed: () => {
        if (!this.#recovered('lease', "the node's lease is renewed again")) return;
        // The node may have been declared Unknown meanwhile: its status waits neither for its period nor for a dead connection.
        this.#mayBeStale = true;
        this.#attempt.abort(new Error('the API server answers again'));
        this.wake(true);
      },
    });
  }

  /** The Node as last seen on the server; undefined before it is registered. */
  get node(): Node | undefined {
    return this.#node;
  }

  /** Whether the runtime and the network are fit to run pods. */
  get ready(): boolean {
    return this.#health.ready;
  }

  /** Runs until `signal` aborts. Never throws for a server or a runtime that is away. */
  async run(signal: AbortSignal): Promise<void> {
    // Checked first, so that a healthy node is Ready from its first status on; one that hangs must still be registered.
    const first = this.#checkHealth();
    await resolvesWithin(this.#options.clock, FIRST_CHECK_MS, first, signal);
    const known = new Promise<void>((resolve) => {
      this.#nodeKnown = resolve;
      void whenAborted(signal).then(resolve);
    });
    const lease = known.then(() => this.#lease.run(signal));
    await Promise.all([first.then(() => this.#healthLoop(signal)), this.#statusLoop(signal), lease]);
  }

  /** Checks runtime and network now instead of at the next interval, after a change of one of them. */
  async checkNow(): Promise<void> {
    await this.#checkHealth();
  }

  /**
   * Something in the status has changed: it is written now, or when the last one is nodeStatusUpdateFrequency old.
   * `urgent`: now in any case, for a mount that waits until its volume is reported as in use.
   */
  wake(urgent = false): void {
    this.#woken = true;
    if (urgent) this.#urgent = true;
    this.#wake?.();
  }

  async #healthLoop(signal: AbortSignal): Promise<void> {
    const interval = (): number => {
      if (!this.#health.ready) return UNHEALTHY_INTERVAL_MS;
      return this.#health.answers ? HEALTH_INTERVAL_MS : NO_ANSWER_INTERVAL_MS;
    };
    const check = async (): Promise<number> => {
      await this.#checkHealth();
      return interval();
    };
    await repeat(check, { clock: this.#options.clock, firstMs: interval(), everyMs: HEALTH_INTERVAL_MS, signal });
  }

  async #checkHealth(): Promise<void> {
    const change = await this.#health.check();
    if (change === 'none') return;
    const because = notReadyBecause(this.#health.health);
    if (because.length === 0) this.#options.log('info', 'the node is ready');
    else this.#options.log('warn', `the node is not ready: ${because.join(', ')}`);
    // Another reason for the same state can wait for the next status.
    if (change === 'readiness') this.wake();
  }

  async #statusLoop(signal: AbortSignal): Promise<void> {
    const { config } = this.#options;
    if (config.registerNode) await this.#register(signal);
    // One signal for many requests: AbortSignal.any for each is most of what a request costs here.
    signal.addEventListener('abort', () => this.#attempt.abort(signal.reason), { once: true });
    // Not `repeat`: what ends a pause, and how long the rest of it is, changes while it lasts.
    while (!signal.aborted) {
      this.#woken = false;
      this.#urgent = false;
      if (this.#attempt.signal.aborted) this.#attempt = new AbortController();
      const attempt = this.#attempt.signal;
      try {
        await this.#syncStatus(attempt);
        this.#recovered('status', 'the API server takes the status of the node again');
      } catch (error) {
        if (signal.aborted) return;
        if (attempt.aborted) continue;
        this.#mayBeStale = true;
        const why = isNotFound(error) ? `there is no Node ${this.#options.nodeName}` : errorMessage(error);
        this.#troubled('status', `cannot update the node's status: ${why}`);
      }
      // A change that has come already is not waited for.
      if (!this.#woken) await this.#sleepUntilWoken(config.nodeStatusUpdateFrequency, signal);
      for (let rest = this.#statusDelayMs(); rest > 0 && !signal.aborted; rest = this.#statusDelayMs()) {
        await this.#sleepUntilWoken(rest, signal);
      }
    }
  }

  #statusDelayMs(): number {
    return statusDelayMs({
      urgent: this.#urgent,
      reportedReady: this.#reportedReady,
      reportedAt: this.#reportedAt,
      now: this.#options.clock.monotonic(),
      updateFrequency: this.#options.config.nodeStatusUpdateFrequency,
    });
  }

  /** Waits until `wake`, for at most `ms`. */
  #sleepUntilWoken(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', end);
        this.#wake = undefined;
        resolve();
      };
      const timer = this.#options.clock.after(ms, end);
      this.#wake = end;
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) end();
    });
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { clock, log, nodeName } = this.#options;
    const register = async (): Promise<void> => {
      const status = this.#statusAfter(undefined, await this.#facts());
      this.#saw(await this.#createOrAdopt(status, signal));
      this.#trouble.clear();
      log('info', `Successfully registered node ${nodeName}`);
      this.#event('Starting', 'Starting kubelet.');
      for (const { reason, message } of startEvents(status.conditions ?? [], nodeName)) this.#event(reason, message);
    };
    const onFailure = (error: unknown): void =>
      this.#troubled('status', `cannot register node ${nodeName}: ${errorMessage(error)}`);
    await retryUntilAborted(register, { clock, policy: REGISTER_BACKOFF, onFailure, signal });
  }

  async #createOrAdopt(status: FullNodeStatus, signal: AbortSignal): Promise<Node> {
    const { client, facts, config, nodeLabels, nodeName } = this.#options;
    const input = { facts, config, nodeLabels, nodeName };
    const request = { timeoutMs: REQUEST_TIMEOUT_MS, signal };
    try {
      return await client.create<Node>(resourcePath('v1', 'nodes'), newNode(input, status), request);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const existing = await client.get<Node>(this.#path, undefined, request);
    const patch = adoptionPatch(existing, input);
    return patch === undefined ? existing : await client.patch<Node>(this.#path, patch, 'merge', request);
  }

  /**
   * The Node as it was last read or written, while the watch shows that version. Otherwise the watch is behind, or others have
   * written: versions have no order for clients, so the Node is read. So it is after a failure, and without a watch.
   */
  async #currentNode(request: RequestOptions): Promise<Node> {
    const { client, watched } = this.#options;
    const known = this.#node;
    const seen = this.#mayBeStale ? undefined : watched?.();
    if (known !== undefined && seen !== undefined && isSameVersion(seen, known)) return known;
    return await client.get<Node>(this.#path, undefined, request);
  }

  /** Writes the status of the Node when it has changed or has not been written for long. */
  async #syncStatus(signal: AbortSignal): Promise<void> {
    const { client, clock, config } = this.#options;
    const request = { timeoutMs: REQUEST_TIMEOUT_MS, signal };
    const node = await this.#currentNode(request);
    this.#mayBeStale = false;
    this.#saw(node);
    this.#tellSchedulable(node.spec?.unschedulable === true);
    const facts = await this.#facts();
    if (this.#health.ready) this.#reportedReady = true;
    const age = this.#reportedAt === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - this.#reportedAt;
    const isDue = age >= config.nodeStatusReportFrequency;
    if (!isDue && wasCompared(this.#compared, node.status, facts)) return;
    const next = this.#statusAfter(node, facts);
    if (!isDue && !statusChanged(node.status, next)) {
      this.#compared = { status: node.status, facts };
      return;
    }
    const path = resourcePath('v1', 'nodes', { name: this.#options.nodeName, subresource: 'status' });
    this.#saw(await client.patch<Node>(path, statusPatch(node.status, next), 'strategic', request));
    this.#reportedAt = clock.monotonic();
    this.#tellTransitions(node, next);
  }

  #statusAfter(known: Node | undefined, facts: StatusFacts): FullNodeStatus {
    return nextStatus(known?.status, { ...facts, now: rfc3339(this.#options.clock.now()) });
  }

  async #facts(): Promise<StatusFacts> {
    const { config, facts, kubeletPort, kubeletVersion, nodeIPs, nodeName, pressure, volumesInUse } = this.#options;
    const images = await this.#currentImages();
    return {
      nodeName,
      nodeIPs,
      kubeletPort,
      kubeletVersion,
      config,
      facts,
      health: this.#health.health,
      pressure: pressure?.() ?? NO_PRESSURE,
      runtimeVersion: this.#health.runtimeVersion,
      runtimeStatus: this.#health.runtimeStatus,
      images,
      volumesInUse: volumesInUse?.() ?? [],
    };
  }

  /** The runtime's images, listed at most every 30 s; the last list while it does not respond. */
  async #currentImages(): Promise<readonly RuntimeImage[]> {
    const { clock } = this.#options;
    const fresh = this.#images !== undefined && clock.monotonic() - this.#images.at < IMAGES_MAX_AGE_MS;
    if (!fresh && this.#health.health.runtimeDown === undefined) {
      this.#imagesCall ??= this.#listImages().finally(() => {
        this.#imagesCall = undefined;
      });
      await resolvesWithin(clock, IMAGES_WAIT_MS, this.#imagesCall);
    }
    return this.#images?.list ?? [];
  }

  async #listImages(): Promise<void> {
    const { clock, runtime, log } = this.#options;
    try {
      this.#images = { list: await runtime.listImages(), at: clock.monotonic() };
    } catch (error) {
      // The health check reports it to the user; the status is correct without images.
      log('debug', `cannot list images for the node's status: ${errorMessage(error)}`);
    }
  }

  #tellTransitions(before: Node, next: FullNodeStatus): void {
    const { nodeName } = this.#options;
    const [boot, booted] = [before.status?.nodeInfo?.bootID ?? '', next.nodeInfo?.bootID];
    if (boot !== '' && boot !== booted) {
      this.#event('Rebooted', `Node ${nodeName} has been rebooted, boot id: ${booted}`, 'Warning');
    }
    for (const condition of next.conditions ?? []) {
      const old = before.status?.conditions?.find(({ type }) => type === condition.type);
      if (old?.status === condition.status) continue;
      const { reason, message } = transitionEvent(condition, this.#options.nodeName);
      this.#event(reason, message);
    }
  }

  #tellSchedulable(unschedulable: boolean): void {
    if (unschedulable === this.#unschedulable) return;
    this.#unschedulable = unschedulable;
    const reason = unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable';
    this.#event(reason, `Node ${this.#options.nodeName} status is now: ${reason}`);
  }

  #event(reason: string, message: string, type: 'Normal' | 'Warning' = 'Normal'): void {
    const { nodeName, recorder } = this.#options;
    recorder.event(nodeReference(nodeName), type, reason, message);
  }

  #saw(node: Node): void {
    this.#node = node;
    this.#options.onVolumesWritten?.(node.status?.volumesInUse ?? []);
    this.#nodeKnown();
  }

  #troubled(part: 'lease' | 'status', what: string): void {
    if (this.#trouble.get(part) === what) return;
    this.#trouble.set(part, what);
    this.#options.log('warn', what);
  }

  /** Whether there was trouble. */
  #recovered(part: 'lease' | 'status', what: string): boolean {
    const was = this.#trouble.delete(part);
    if (was) this.#options.log('info', what);
    return was;
  }
}
