// The API of a simulated cluster for experiments: pods and the Node as api-server.ts has them, and beside them ConfigMaps,
// Secrets, Events and what else the agent writes, in collections with watches. What a user does goes through `apply`, `patch`
// and `remove`; every change is reported.

import { addNotReadyTolerations } from '../../apiserver/admission/plugins/default-toleration-seconds.ts';
import { applyPodDefaults } from '../../apiserver/kinds/pods/defaults.ts';
import { as } from '../../apiserver/kinds/shapes.ts';
import { SYSTEM_PRIORITIES } from '../../apiserver/kinds/shared/system-priorities.ts';
import type { ApiClient, DeleteOptions, ListOf, PatchType, RequestOptions, WatchEvent } from '../../client/api.ts';
import { type Query, requestInfo } from '../../client/paths.ts';
import type { ApiObject, Node, Pod, StoredMeta } from '../../client/types.ts';
import { type Clock, plusMs } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { rfc3339, rfc3339Milli } from '../../lib/rfc3339.ts';
import { problem } from './api-problem.ts';
import type { SimApiServer } from './api-server.ts';
import type { Dice } from './dice.ts';
import type { Line } from './line.ts';
import { NODE_NAME } from './node-facts.ts';
import { WatchLog } from './watch-log.ts';
import type { Weather } from './weather.ts';

export type Change = 'ADDED' | 'MODIFIED' | 'DELETED';

export interface UserObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly [field: string]: unknown;
}

export interface SimClusterParts {
  readonly server: SimApiServer;
  readonly clock: Clock;
  readonly dice: Dice;
  readonly weather: Weather;
  readonly onChange: (change: Change, object: UserObject) => void;
}

/** Plural by kind: what a user can have here. */
const PLURALS: ReadonlyMap<string, string> = new Map([
  ['Pod', 'pods'],
  ['ConfigMap', 'configmaps'],
  ['Secret', 'secrets'],
  ['PriorityClass', 'priorityclasses'],
  ['Service', 'services'],
]);
/** Of these the server knows. */
const OWN: ReadonlySet<string> = new Set(['pods', 'nodes', 'leases']);
const KINDS: ReadonlyMap<string, string> = new Map([
  ['configmaps', 'ConfigMap'],
  ['secrets', 'Secret'],
  ['events', 'Event'],
  ['priorityclasses', 'PriorityClass'],
  ['services', 'Service'],
]);
/** In no namespace. */
const OF_CLUSTER: ReadonlySet<string> = new Set(['priorityclasses']);
/** Addresses of services begin here; the first is that of "kubernetes", which is not simulated. */
const SERVICE_NETWORK = '10.96.0.';
const TIMEOUT_MS = 30_000;
const DEFAULT_TOKEN_SECONDS = 3600;

interface Collection {
  readonly objects: Map<string, ApiObject>;
  readonly log: WatchLog<ApiObject>;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A merge patch (RFC 7386), but that lists of named things are merged by name. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (
    Array.isArray(patch) &&
    Array.isArray(target) &&
    [...patch, ...target].every((item) => isFields(item) && 'name' in item)
  ) {
    const merged = new Map(target.map((item: Fields) => [item['name'], item]));
    for (const item of patch as Fields[])
      merged.set(item['name'], mergePatch(merged.get(item['name']), item) as Fields);
    return [...merged.values()];
  }
  if (!isFields(patch)) return patch;
  const result: Record<string, unknown> = { ...(isFields(target) ? target : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, key);
    else setOwn(result, key, mergePatch(getOwn(result, key), value));
  }
  return result;
}

/** What kinds a user may have. */
export function isKnownKind(kind: string): boolean {
  return PLURALS.has(kind);
}

/** What was asked for by path is of the type that the caller names, as with JSON off the wire. */
function asRequested<T>(object: unknown): T {
  return object as T;
}

export class SimCluster {
  /** How many were requested: each has a text of its own. */
  #tokens = 0;
  readonly #parts: SimClusterParts;
  readonly #collections = new Map<string, Collection>();
  #uids = 0;

  constructor(parts: SimClusterParts) {
    this.#parts = parts;
  }

  #collection(resource: string): Collection {
    let found = this.#collections.get(resource);
    if (found === undefined) {
      const { clock, dice, weather, onChange } = this.#parts;
      const kind = KINDS.get(resource) ?? resource;
      const log = new WatchLog<ApiObject>(clock, dice.fork(), weather, (change, object) =>
        onChange(change, { ...asRequested<UserObject>(object), kind }),
      );
      found = { objects: new Map(), log };
      this.#collections.set(resource, found);
    }
    return found;
  }

  /** Every watch breaks, and nothing answers. */
  goDown(): void {
    this.#parts.server.goDown();
    for (const { log } of this.#collections.values()) log.break(false);
  }

  comeBack(): void {
    this.#parts.server.line.down = false;
  }

  // ---------------------------------------------------------------- what a user does

  /** Creates or replaces. Throws UserError for a kind that is not simulated. */
  apply(manifest: UserObject): void {
    const plural = PLURALS.get(manifest.kind);
    if (plural === undefined)
      throw new UserError(`${manifest.kind} is not simulated; ${[...PLURALS.keys()].join(', ')} are`);
    const object = structuredClone(manifest);
    const namespace = manifest.metadata.namespace ?? 'default';
    if (plural !== 'pods') {
      const given = plural === 'services' ? this.#withAddress(object) : object;
      this.#store(plural, given);
      return;
    }
    const pod = this.#admitted(podOf({ ...object, apiVersion: 'v1', metadata: { ...object.metadata, namespace } }));
    const { server } = this.#parts;
    const before = server.pods.get(`${namespace}/${pod.metadata.name}`);
    if (before === undefined) server.createPod(pod);
    else
      server.updatePod({
        ...before,
        metadata: { ...before.metadata, ...pod.metadata, uid: before.metadata.uid },
        spec: pod.spec,
      });
  }

  /** Its priority, and how long it tolerates a node that is not ready, as the API server's admission gives them. */
  #admitted(pod: Pod): Pod {
    const { priorityClassName = '', tolerations } = pod.spec;
    const spec = {
      ...pod.spec,
      priority: this.#priorityOf(priorityClassName),
      ...(tolerations === undefined ? {} : { tolerations: [...tolerations] }),
    };
    addNotReadyTolerations(spec);
    return { ...pod, spec };
  }

  #priorityOf(name: string): number {
    if (name === '') return 0;
    const own = getOwn(SYSTEM_PRIORITIES, name);
    if (own !== undefined) return own;
    const found = this.#collection('priorityclasses').objects.get(`default/${name}`);
    if (found === undefined) throw new UserError(`no PriorityClass with name ${name} was found`);
    return Number(getOwn(asRequested<Fields>(found), 'value') ?? 0);
  }

  #withAddress(service: UserObject): UserObject {
    const { spec } = service;
    const fields: Fields = isFields(spec) ? spec : {};
    if (fields['clusterIP'] !== undefined) return service;
    const { objects } = this.#collection('services');
    const key = `${service.metadata.namespace ?? 'default'}/${service.metadata.name}`;
    const known = addressOf(objects.get(key));
    return { ...service, spec: { ...fields, clusterIP: known ?? `${SERVICE_NETWORK}${objects.size + 2}` } };
  }

  /** Undefined where there is no such service. */
  serviceAddress(namespace: string, name: string): string | undefined {
    return addressOf(this.#collection('services').objects.get(`${namespace}/${name}`));
  }

  /** `graceMs`: undefined is the pod's own. Throws UserError where there is no such object. */
  remove(kind: string, name: string, namespace: string, graceMs: number | undefined): void {
    const plural = PLURALS.get(kind) ?? '';
    const key = `${namespace}/${name}`;
    if (plural === 'pods') {
      const pod = this.#podOf(key);
      const seconds =
        graceMs === undefined ? (pod.spec.terminationGracePeriodSeconds ?? 30) : Math.ceil(graceMs / 1000);
      this.#parts.server.deletePod(pod, seconds);
      return;
    }
    const { objects, log } = this.#collection(plural);
    const object = objects.get(key);
    if (object === undefined) throw new UserError(`there is no ${kind} ${key}`);
    objects.delete(key);
    log.append('DELETED', this.#stamped(object));
  }

  /** Throws UserError where there is no such object. */
  patchObject(kind: string, name: string, namespace: string, patch: unknown): void {
    if (kind === 'Node') {
      this.#parts.server.nodes.updateNode((node) => asRequested<Node>(mergePatch(node, patch)));
      return;
    }
    const plural = PLURALS.get(kind) ?? '';
    const key = `${namespace}/${name}`;
    if (plural === 'pods') {
      const pod = this.#podOf(key);
      this.#parts.server.updatePod(asRequested<Pod>(mergePatch(pod, patch)));
      return;
    }
    const object = this.#collection(plural).objects.get(key);
    if (object === undefined) throw new UserError(`there is no ${kind} ${key}`);
    this.#store(plural, asRequested<UserObject>(mergePatch(object, patch)));
  }

  #podOf(key: string): Pod {
    const pod = this.#parts.server.pods.get(key);
    if (pod === undefined) throw new UserError(`there is no Pod ${key}`);
    return pod;
  }

  #stamped(object: ApiObject): ApiObject {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#parts.server.nextVersion() } };
  }

  #store(resource: string, object: UserObject): ApiObject {
    const { objects, log } = this.#collection(resource);
    const namespace = object.metadata.namespace ?? 'default';
    const key = `${namespace}/${object.metadata.name}`;
    const before = objects.get(key);
    const { namespace: _given, ...named } = object.metadata;
    const metadata: StoredMeta = {
      ...named,
      ...(OF_CLUSTER.has(resource) ? {} : { namespace }),
      uid: before?.metadata.uid ?? `uid-${resource}-${++this.#uids}`,
      creationTimestamp: before?.metadata.creationTimestamp ?? rfc3339Milli(this.#parts.clock.now()),
      resourceVersion: '',
    };
    const kind = KINDS.get(resource) ?? resource;
    const stored = this.#stamped({ ...object, apiVersion: 'v1', kind, metadata });
    objects.set(key, stored);
    log.append(before === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  // ---------------------------------------------------------------- the agent's client

  async list<T>(path: string, query?: Query): Promise<ListOf<T>> {
    const { resource, namespace } = requestInfo(path);
    const { server } = this.#parts;
    if (OWN.has(resource)) return await server.list<T>(path);
    const wanted = selector(namespace, query);
    return await server.line.perform('LIST', path, TIMEOUT_MS, () => ({
      apiVersion: 'v1',
      kind: 'List',
      metadata: { resourceVersion: String(server.version) },
      items: [...this.#collection(resource).objects.values()].filter(wanted).map((each) => asRequested<T>(each)),
    }));
  }

  async *watch<T>(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const { resource, namespace } = requestInfo(path);
    const { server } = this.#parts;
    if (OWN.has(resource)) {
      yield* server.watch<T>(path, query, signal);
      return;
    }
    await server.line.perform('WATCH', path, TIMEOUT_MS, () => undefined);
    const wanted = selector(namespace, query);
    const expired = (): WatchEvent<T> => ({ type: 'ERROR', object: problem(410, 'Expired', 'too old').status });
    const { log } = this.#collection(resource);
    const version = Number(query['resourceVersion'] ?? 0);
    for await (const event of log.follow<T>(version, Number(query['timeoutSeconds'] ?? 300), expired, signal)) {
      if (event.type === 'ERROR' || wanted(asRequested<ApiObject>(event.object))) yield event;
    }
  }

  async get<T>(path: string, query?: Query, options?: RequestOptions): Promise<T> {
    const { resource } = requestInfo(path);
    const { server } = this.#parts;
    if (OWN.has(plain(resource))) return await server.get<T>(path, query, options);
    return await server.line.perform('GET', path, TIMEOUT_MS, () => asRequested<T>(this.#at(path)));
  }

  async create<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const { resource } = requestInfo(path);
    const { server, clock } = this.#parts;
    if (OWN.has(plain(resource))) return await server.create<T>(path, body, options);
    return await server.line.perform('POST', path, TIMEOUT_MS, () => {
      if (resource === 'serviceaccounts/token') {
        const { spec = {} } = asRequested<{ spec?: { expirationSeconds?: number } }>(body);
        const { expirationSeconds = DEFAULT_TOKEN_SECONDS } = spec;
        const expirationTimestamp = rfc3339(plusMs(clock.now(), expirationSeconds * 1000));
        return asRequested<T>({ status: { token: `simulated-${++this.#tokens}`, expirationTimestamp } });
      }
      const object = asRequested<UserObject>(body);
      const key = `${object.metadata.namespace ?? 'default'}/${object.metadata.name}`;
      if (this.#collection(resource).objects.has(key)) throw problem(409, 'AlreadyExists', `${path} already exists`);
      return asRequested<T>(this.#store(resource, object));
    });
  }

  async replace<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const { server } = this.#parts;
    if (OWN.has(plain(requestInfo(path).resource))) return await server.replace<T>(path, body, options);
    return await server.line.perform('PUT', path, TIMEOUT_MS, () =>
      asRequested<T>(this.#store(requestInfo(path).resource, asRequested<UserObject>(body))),
    );
  }

  async patch<T>(path: string, body: unknown, type: PatchType, options?: RequestOptions): Promise<T> {
    const { resource } = requestInfo(path);
    const { server } = this.#parts;
    if (OWN.has(plain(resource))) return await server.patch<T>(path, body, type, options);
    return await server.line.perform('PATCH', path, TIMEOUT_MS, () =>
      asRequested<T>(this.#store(resource, asRequested<UserObject>(mergePatch(this.#at(path), body)))),
    );
  }

  /** Where other clients than the agent record events, over a line of their own. */
  eventsVia(line: Line): Pick<ApiClient, 'create' | 'patch'> {
    const sent = <T>(verb: string, path: string, effect: () => unknown): Promise<T> =>
      line.perform(verb, path, TIMEOUT_MS, () => asRequested<T>(effect()));
    return {
      create: (path, body) => sent('POST', path, () => this.#store('events', asRequested<UserObject>(body))),
      patch: (path, body) =>
        sent('PATCH', path, () => this.#store('events', asRequested<UserObject>(mergePatch(this.#at(path), body)))),
    };
  }

  async delete<T = unknown>(path: string, options: DeleteOptions = {}): Promise<T> {
    return await this.#parts.server.delete<T>(path, options);
  }

  #at(path: string): ApiObject {
    const { resource, namespace = 'default', name = '' } = requestInfo(path);
    const object = this.#collection(resource).objects.get(`${namespace}/${name}`);
    if (object === undefined) throw problem(404, 'NotFound', `${resource} "${name}" not found`);
    return object;
  }
}

function addressOf(service: ApiObject | undefined): string | undefined {
  if (service === undefined) return undefined;
  const spec = getOwn(asRequested<Fields>(service), 'spec');
  const address = isFields(spec) ? spec['clusterIP'] : undefined;
  return typeof address === 'string' ? address : undefined;
}

/** Without the subresource. */
function plain(resource: string): string {
  return resource.split('/')[0] ?? '';
}

/** Of what a path and a field selector by name ask for. */
function selector(namespace: string | undefined, query: Query | undefined): (object: ApiObject) => boolean {
  const [, name] = /metadata\.name=([^,]+)/.exec(String(query?.['fieldSelector'] ?? '')) ?? [];
  return ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) && (name === undefined || metadata.name === name);
}

/** With the API's defaults, and on the node: there is one. Only a manifest's own fields are given. */
function podOf(manifest: UserObject & { readonly apiVersion: string }): Pod {
  const object = { ...manifest, metadata: { ...manifest.metadata } };
  const pod = as(asRequested<Parameters<typeof as>[0]>(object), 'Pod');
  applyPodDefaults(pod);
  const whole = asRequested<Pod>(pod);
  return { ...whole, spec: { ...whole.spec, nodeName: NODE_NAME } };
}
