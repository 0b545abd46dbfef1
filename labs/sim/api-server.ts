// An API server in memory, behind the agent's client: pods and the Node, resource versions, optimistic concurrency,
// graceful deletion, watches that lag, break and expire. It checks nothing but what the agent writes.

import type { ApiClient, DeleteOptions, ListOf, PatchType, RequestOptions, WatchEvent } from '../../client/api.ts';
import { UnreachableError } from '../../client/errors.ts';
import { type Query, requestInfo } from '../../client/paths.ts';
import type { ListWatcher } from '../../client/reflector.ts';
import type { Lease, Node, Pod, PodStatus } from '../../client/types.ts';
import { type Clock, type MonotonicMs, plusMs } from '../../lib/clock.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import { problem } from './api-problem.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import { FOREIGN_CONDITION } from './foreign.ts';
import type { Journal } from './journal.ts';
import { Line, type LineFailure } from './line.ts';
import { type NodeWitness, SimNodeObjects } from './node-objects.ts';
import { applyStatusPatch } from './status-patch.ts';
import { RECONNECT_MS, WatchLog } from './watch-log.ts';
import type { Weather } from './weather.ts';

const TIMEOUT_MS = 30_000;

/** What the rules want to know of the agent's writes. */
export interface ApiWitness {
  /** The agent wrote a status. */
  statusWritten(before: Pod, after: Pod): void;
  /** A pod was deleted that is not gone with that. */
  deleted(pod: Pod, graceSeconds: number): void;
  /** The agent let the object of a pod go. */
  finalized(pod: Pod): void;
}

export interface SimApiParts {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly witness: ApiWitness;
  readonly nodeWitness: NodeWitness;
  readonly faults: Faults;
  readonly weather: Weather;
  /** Every change of a pod or the Node, at once. */
  readonly onChange?: (type: 'ADDED' | 'MODIFIED' | 'DELETED', kind: 'Pod' | 'Node', object: unknown) => void;
}

/** What a client sees of a connection that fails it. */
export function lineError(call: string, failure: LineFailure): Error {
  if (failure === 'refused') return problem(500, 'InternalError', `${call}: injected failure`);
  const code = failure === 'deadline' ? 'ETIMEDOUT' : 'ECONNRESET';
  return new UnreachableError(`cannot reach the API server: ${call}: injected failure`, code);
}

/** What a caller asked for by path is of the type that it says, as with JSON off the wire. */
function asRequested<T>(object: unknown): T {
  return object as T;
}

function withoutForeign(status: PodStatus): PodStatus {
  return { ...status, conditions: (status.conditions ?? []).filter(({ type }) => type !== FOREIGN_CONDITION) };
}

export class SimApiServer implements ListWatcher {
  readonly line: Line;
  readonly #parts: SimApiParts;
  /** By namespace/name. */
  readonly pods = new Map<string, Pod>();
  readonly #podLog: WatchLog<Pod>;
  /** The Node and its Lease. */
  readonly nodes: SimNodeObjects;
  #version = 1;
  #uids = 0;

  constructor(parts: SimApiParts) {
    this.#parts = parts;
    const { clock, dice, journal, weather } = parts;
    this.line = new Line({
      name: 'api',
      clock,
      dice,
      journal,
      weather,
      error: lineError,
      usualMs: 40,
      dropsAbandoned: true,
    });
    this.#podLog = new WatchLog<Pod>(clock, dice, weather, (type, object) => parts.onChange?.(type, 'Pod', object));
    const nodeLog = new WatchLog<Node>(clock, dice, weather, (type, object) => parts.onChange?.(type, 'Node', object));
    const leaseLog = (): WatchLog<Lease> => new WatchLog<Lease>(clock, dice, weather);
    this.nodes = new SimNodeObjects({ log: nodeLog, leaseLog }, parts.nodeWitness, () => String(++this.#version));
  }

  // ---------------------------------------------------------------- what users do, which never fails

  podNamed(name: string): Pod | undefined {
    for (const pod of this.pods.values()) if (pod.metadata.name === name) return pod;
    return undefined;
  }

  podOfUid(uid: string): Pod | undefined {
    for (const pod of this.pods.values()) if (pod.metadata.uid === uid) return pod;
    return undefined;
  }

  /** Creates an object under a new uid, or throws AlreadyExists. */
  createPod(pod: Omit<Pod, 'metadata'> & { metadata: Partial<Pod['metadata']> & { name: string } }): Pod {
    const namespace = pod.metadata.namespace ?? 'demo';
    const key = `${namespace}/${pod.metadata.name}`;
    if (this.pods.has(key)) throw problem(409, 'AlreadyExists', `pods "${pod.metadata.name}" already exists`);
    const metadata = {
      ...pod.metadata,
      namespace,
      uid: `uid-${++this.#uids}-${pod.metadata.name}`,
      resourceVersion: '',
      generation: 1,
      creationTimestamp: rfc3339Milli(this.#parts.clock.now()),
    };
    return this.#store({ ...pod, metadata, status: { phase: 'Pending' } }, 'ADDED');
  }

  /** Changes an object as a user's write does. A changed spec gets a new generation. */
  updatePod(pod: Pod): Pod {
    const before = this.pods.get(`${pod.metadata.namespace}/${pod.metadata.name}`);
    const changed = before !== undefined && before.spec !== pod.spec;
    const generation = (pod.metadata.generation ?? 1) + (changed ? 1 : 0);
    return this.#store({ ...pod, metadata: { ...pod.metadata, generation } }, 'MODIFIED');
  }

  /** kubectl delete. A second one may only shorten the time; none at all lets the object go at once. */
  deletePod(pod: Pod, graceSeconds: number): void {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
    if (graceSeconds === 0) {
      this.#remove(pod);
      return;
    }
    if (deletionTimestamp !== undefined && graceSeconds >= deletionGracePeriodSeconds) return;
    const at = rfc3339Milli(plusMs(this.#parts.clock.now(), graceSeconds * 1000));
    const metadata = { ...pod.metadata, deletionTimestamp: at, deletionGracePeriodSeconds: graceSeconds };
    this.#parts.witness.deleted(pod, graceSeconds);
    this.#store({ ...pod, metadata }, 'MODIFIED');
  }

  /** Connections break; with `forget`, the server has compacted its history, too. */
  breakWatches(forget: boolean): void {
    for (const log of [this.#podLog, ...this.nodes.logs]) log.break(forget);
  }

  /** The version of the next object that is stored elsewhere. */
  nextVersion(): string {
    return String(++this.#version);
  }

  get version(): number {
    return this.#version;
  }

  /** How many watch events of a hundred come late. */
  set watchTrouble(percent: number) {
    this.#podLog.trouble = percent;
    this.nodes.log.trouble = percent;
  }

  goDown(): void {
    this.line.cut();
    this.breakWatches(false);
  }

  // ---------------------------------------------------------------- the agent's client

  async list<T>(path: string): Promise<ListOf<T>> {
    return await this.#follow('LIST', path, () => this.#listed<T>(path));
  }

  async *watch<T>(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    await this.#follow('WATCH', path, () => undefined);
    yield* this.#events<T>(path, query, signal);
  }

  async get<T>(path: string, _query?: Query, options?: RequestOptions): Promise<T> {
    return await this.#request('GET', path, options, () => this.#found<T>(path));
  }

  async create<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const sentAt = this.#parts.clock.monotonic();
    return await this.#request('POST', path, options, () => {
      if (SimNodeObjects.has(path)) return asRequested<T>(this.nodes.create(path, body, sentAt));
      const { namespace = 'demo' } = requestInfo(path);
      const pod = body as Pod;
      return asRequested<T>(this.createPod({ ...pod, metadata: { ...pod.metadata, namespace } }));
    });
  }

  async replace<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const sentAt = this.#parts.clock.monotonic();
    return await this.#request('PUT', path, options, () => asRequested<T>(this.nodes.replace(path, body, sentAt)));
  }

  /** A list or the beginning of a watch; a client that follows a collection may wait for long after one that failed. */
  async #follow<T>(verb: string, path: string, effect: () => T): Promise<T> {
    try {
      return await this.line.perform(verb, path, TIMEOUT_MS, effect);
    } catch (error) {
      this.#parts.weather.bad(RECONNECT_MS);
      throw error;
    }
  }

  /** One request; its caller gives up after the time that it says. */
  #request<T>(verb: string, path: string, { timeoutMs = TIMEOUT_MS, signal }: RequestOptions = {}, effect: () => T) {
    return this.line.perform(verb, path, timeoutMs, effect, signal === undefined ? {} : { signal });
  }

  async patch<T>(path: string, body: unknown, _type: PatchType, options?: RequestOptions): Promise<T> {
    const sentAt = this.#parts.clock.monotonic();
    return await this.#request('PATCH', path, options, () => asRequested<T>(this.#patched(path, body, sentAt)));
  }

  async delete<T = unknown>(path: string, options: DeleteOptions = {}): Promise<T> {
    return await this.line.perform('DELETE', path, TIMEOUT_MS, () => asRequested<T>(this.#deleted(path, options)));
  }

  /** A client with a line of its own, for the control plane: the agent's may be cut while this one is not. */
  via(line: Line): ListWatcher & Pick<ApiClient, 'get' | 'patch' | 'delete'> {
    const { clock } = this.#parts;
    const sent = <T>(verb: string, path: string, effect: () => unknown): Promise<T> =>
      line.perform(verb, path, TIMEOUT_MS, () => asRequested<T>(effect()));
    const events = <T>(path: string, query: Query, signal: AbortSignal) => this.#events<T>(path, query, signal);
    return {
      list: (path) => sent('LIST', path, () => this.#listed(path)),
      get: (path) => sent('GET', path, () => this.#found(path)),
      patch: (path, body) => sent('PATCH', path, () => this.#patched(path, body, clock.monotonic())),
      delete: (path, options = {}) => sent('DELETE', path, () => this.#deleted(path, options)),
      async *watch<T>(path: string, query: Query, signal: AbortSignal) {
        await sent('WATCH', path, () => undefined);
        yield* events<T>(path, query, signal);
      },
    };
  }

  // ---------------------------------------------------------------- inside

  #listed<T>(path: string): ListOf<T> {
    const { resource } = requestInfo(path);
    const items: readonly unknown[] =
      resource === 'pods' ? [...this.pods.values()].map((pod) => this.#shown(pod)) : this.nodes.list(resource);
    const kind = resource === 'pods' ? 'PodList' : resource === 'leases' ? 'LeaseList' : 'NodeList';
    return { apiVersion: 'v1', kind, metadata: { resourceVersion: String(this.#version) }, items: items as T[] };
  }

  #events<T>(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const { resource } = requestInfo(path);
    const log: WatchLog<unknown> = resource === 'pods' ? this.#podLog : this.nodes.logOf(resource);
    const expired = (): WatchEvent<T> => ({ type: 'ERROR', object: problem(410, 'Expired', 'too old').status });
    const [version, seconds] = [Number(query['resourceVersion'] ?? 0), Number(query['timeoutSeconds'] ?? 300)];
    return log.follow<T>(version, seconds, expired, signal);
  }

  #found<T>(path: string): T {
    return asRequested<T>(SimNodeObjects.has(path) ? this.nodes.get(path) : this.#podAt(path));
  }

  #patched(path: string, body: unknown, sentAt: MonotonicMs): unknown {
    if (SimNodeObjects.has(path)) return this.nodes.patch(path, body, sentAt);
    const { metadata, status } = body as { metadata: { uid: string }; status: PodStatus };
    const before = this.#podAt(path);
    this.#expectUid(before, metadata.uid);
    const after = { ...before, status: applyStatusPatch(before.status ?? {}, { ...status }) };
    const { witness, faults } = this.#parts;
    if (faults.has('the API server drops what others wrote')) after.status = withoutForeign(after.status);
    witness.statusWritten(before, after);
    if (
      faults.has('the API server says that it wrote a status and did not') &&
      before.status?.startTime !== undefined
    ) {
      return after;
    }
    return this.#store(after, 'MODIFIED');
  }

  #deleted(path: string, options: DeleteOptions): undefined {
    const pod = this.#podAt(path);
    const { uid } = options.preconditions ?? {};
    if (uid !== undefined) this.#expectUid(pod, uid);
    if (options.gracePeriodSeconds === 0) {
      this.#parts.witness.finalized(pod);
      if (!this.#parts.faults.has('the API server says that it let a pod go and did not')) this.#remove(pod);
    } else this.deletePod(pod, options.gracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 30);
    return undefined;
  }

  #podAt(path: string): Pod {
    const { namespace, name } = requestInfo(path);
    const pod = this.pods.get(`${namespace}/${name}`);
    if (pod === undefined) throw problem(404, 'NotFound', `pods "${name}" not found`);
    return pod;
  }

  #expectUid(pod: Pod, uid: string): void {
    if (pod.metadata.uid === uid) return;
    const { name } = pod.metadata;
    throw problem(409, 'Conflict', `Operation cannot be fulfilled on pods "${name}": the UID in the precondition`);
  }

  #store(pod: Pod, type: 'ADDED' | 'MODIFIED'): Pod {
    const metadata = { ...pod.metadata, resourceVersion: String(++this.#version) };
    const stored = this.#spoilt({ ...pod, metadata });
    this.pods.set(`${metadata.namespace}/${metadata.name}`, stored);
    this.#podLog.append(type, this.#shown(stored));
    return stored;
  }

  /** As it is, unless the world was given a fault. */
  #spoilt(pod: Pod): Pod {
    const { faults } = this.#parts;
    const { status } = pod;
    if (faults.has('the API server takes a phase back') && status?.phase === 'Running' && this.#version % 7 === 0) {
      return { ...pod, status: { ...status, phase: 'Pending' } };
    }
    if (faults.has('the API server takes a restart count back') && this.#version % 7 === 0) {
      const containerStatuses = status?.containerStatuses?.map((each) => ({ ...each, restartCount: 0 })) ?? [];
      return { ...pod, status: { ...status, containerStatuses } };
    }
    return pod;
  }

  /** As the agent sees it. */
  #shown(pod: Pod): Pod {
    if (!this.#parts.faults.has('the API server hides deadlines')) return pod;
    const { activeDeadlineSeconds: _hidden, ...spec } = pod.spec;
    return { ...pod, spec };
  }

  #remove(pod: Pod): void {
    const metadata = { ...pod.metadata, resourceVersion: String(++this.#version) };
    this.pods.delete(`${metadata.namespace}/${metadata.name}`);
    this.#podLog.append('DELETED', { ...pod, metadata });
  }
}
