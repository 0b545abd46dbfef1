// Versions of API objects, as watches of the experiment's own client deliver them; and objects by kind, as files name them.

import type { ApiClient } from '../../../client/api.ts';
import { isGone, isTransient } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { ApiObject } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { repeat } from '../../../lib/retry.ts';
import type { ObjectObservation } from '../observation.ts';

/** What is watched: the collections that experiments ask for. */
export const WATCHED: readonly (readonly [apiVersion: string, plural: string, kind: string])[] = [
  ['v1', 'nodes', 'Node'],
  ['v1', 'pods', 'Pod'],
  ['v1', 'events', 'Event'],
  ['v1', 'persistentvolumeclaims', 'PersistentVolumeClaim'],
  ['coordination.k8s.io/v1', 'leases', 'Lease'],
];

export type ObjectChange = Pick<ObjectObservation, 'change' | 'object'>;

const RETRY_MS = 200;

/** Versions of one collection by uid: a list after a lost watch yields what is new in it. */
export class ObjectVersions {
  readonly #kind: string;
  readonly #known = new Map<string, ApiObject>();

  constructor(kind: string) {
    this.#kind = kind;
  }

  /** An item of a list has no kind of its own. */
  #observed(object: ApiObject): ObjectObservation['object'] {
    return { ...object, kind: this.#kind };
  }

  listed(items: readonly ApiObject[]): readonly ObjectChange[] {
    const uids = new Set(items.map(({ metadata }) => metadata.uid));
    const gone = [...this.#known.values()].filter(({ metadata }) => !uids.has(metadata.uid));
    for (const { metadata } of gone) this.#known.delete(metadata.uid);
    return [
      ...gone.map((object) => ({ change: 'DELETED' as const, object: this.#observed(object) })),
      ...items.flatMap((object) => this.event('MODIFIED', object)),
    ];
  }

  event(change: ObjectObservation['change'], object: ApiObject): readonly ObjectChange[] {
    const { uid, resourceVersion } = object.metadata;
    const before = this.#known.get(uid);
    if (change === 'DELETED') {
      this.#known.delete(uid);
      return [{ change, object: this.#observed(object) }];
    }
    if (before?.metadata.resourceVersion === resourceVersion) return [];
    this.#known.set(uid, object);
    return [{ change: before === undefined ? 'ADDED' : 'MODIFIED', object: this.#observed(object) }];
  }
}

/** Runs until `signal` aborts; an API server that is away is tried again. Rejects when the watch is refused. */
export async function watchObjects(
  client: ApiClient,
  clock: Clock,
  [apiVersion, plural, kind]: (typeof WATCHED)[number],
  onChange: (change: ObjectChange) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = resourcePath(apiVersion, plural);
  const versions = new ObjectVersions(kind);
  const round = async (): Promise<number> => {
    try {
      const list = await client.list<ApiObject>(path, {}, { signal });
      for (const change of versions.listed(list.items)) onChange(change);
      const query = { resourceVersion: list.metadata.resourceVersion };
      for await (const event of client.watch<ApiObject>(path, query, signal)) {
        if (event.type === 'BOOKMARK') continue;
        if (event.type === 'ERROR') break;
        for (const change of versions.event(event.type, event.object)) onChange(change);
      }
      return 0;
    } catch (error) {
      if (!signal.aborted && !isTransient(error) && !isGone(error)) throw error;
      return RETRY_MS;
    }
  };
  await repeat(round, { clock, everyMs: RETRY_MS, signal });
}

interface Resource {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

interface DiscoveredResources {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

interface DiscoveredGroups {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
}

/** Where objects of a kind are, from the server's own list of resources. */
export class Kinds {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #found = new Map<string, Resource>();

  /** `namespace`: of objects whose own is not given. */
  constructor(client: ApiClient, namespace = 'default') {
    this.#client = client;
    this.#namespace = namespace;
  }

  async #read(apiVersion: string): Promise<void> {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { resources } = await this.#client.get<DiscoveredResources>(path);
    for (const { name, kind, namespaced } of resources) {
      const key = kind.toLowerCase();
      if (!name.includes('/') && !this.#found.has(key)) this.#found.set(key, { apiVersion, plural: name, namespaced });
    }
  }

  /** Rejects with UserError for a kind that the server does not have. */
  async resource(kind: string): Promise<Resource> {
    const key = kind.toLowerCase();
    if (!this.#found.has(key)) await this.#read('v1');
    if (!this.#found.has(key)) {
      const { groups } = await this.#client.get<DiscoveredGroups>('/apis');
      for (const { preferredVersion } of groups) await this.#read(preferredVersion.groupVersion);
    }
    const found = this.#found.get(key);
    if (found === undefined) throw new UserError(`the API server has no kind ${kind}`);
    return found;
  }

  /** The path of an object. */
  async path(
    kind: string,
    name: string | undefined,
    namespace: string | undefined,
    subresource?: string,
  ): Promise<string> {
    const { apiVersion, plural, namespaced } = await this.resource(kind);
    return resourcePath(apiVersion, plural, {
      ...(namespaced ? { namespace: namespace ?? this.#namespace } : {}),
      ...(name === undefined ? {} : { name }),
      ...(subresource === undefined ? {} : { subresource }),
    });
  }
}
