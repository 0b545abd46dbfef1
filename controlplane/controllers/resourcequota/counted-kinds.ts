// The objects that quotas count: of kinds that the process watches anyway by those list-watches, of others by one of their metadata
// alone, which begins with the first quota that names the kind.

import { resourcePath } from '../../../client/paths.ts';
import type { Change, Identified, ReadableStore } from '../../../client/store.ts';
import type { Pod, Service } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Counted } from '../../../lib/quota/objects.ts';
import type { CountedResource } from '../../../lib/quota/usage.ts';
import { type Discovery, groupOf } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';
import type { PersistentVolumeClaim } from '../../storage/objects.ts';
import { type Population, resourceKey } from './status.ts';

export type CountedInformers = Pick<
  Informers,
  'pods' | 'services' | 'persistentVolumeClaims' | 'whole' | 'watchMetadata'
>;

/** An object of `namespace` is gone, or has changed. */
export type CountedListener = (namespace: string, resource: CountedResource, before: Counted, now?: Counted) => void;

interface Followed {
  readonly resource: CountedResource;
  readonly path: string;
  readonly whenSynced: () => Promise<void>;
  readonly synced: () => boolean;
  readonly inNamespace: (namespace: string) => readonly Counted[];
  readonly stop: () => void;
}

const OTHER: Counted = { kind: 'other' };
/** How long one count waits for the list of a kind, ms. */
const LIST_LIMIT_MS = 30_000;

export class CountedKinds {
  readonly #informers: CountedInformers;
  readonly #clock: Clock;
  readonly #listener: CountedListener;
  readonly #followed = new Map<string, Followed>();

  constructor(informers: CountedInformers, clock: Clock, listener: CountedListener) {
    this.#informers = informers;
    this.#clock = clock;
    this.#listener = listener;
    const { pods, services, persistentVolumeClaims } = informers;
    const core = (plural: string): CountedResource => ({ group: '', plural });
    const forGood = new AbortController().signal;
    this.#follow(core('pods'), '', pods, (pod: Pod) => ({ kind: 'pod', pod }), forGood);
    this.#follow(core('services'), '', services, (service: Service) => ({ kind: 'service', service }), forGood);
    const claimOf = (claim: PersistentVolumeClaim): Counted => ({ kind: 'claim', claim });
    this.#follow(core('persistentvolumeclaims'), '', persistentVolumeClaims, claimOf, forGood);
  }

  isKnown(resource: CountedResource): boolean {
    return this.#followed.has(resourceKey(resource));
  }

  /** Those that are not of the core API, which has the same kinds everywhere. */
  get discovered(): readonly CountedResource[] {
    return [...this.#followed.values()].map(({ resource }) => resource).filter(({ group }) => group !== '');
  }

  /** Follows the resource if the server has it, until `signal` aborts; no longer, if it has it no more or in another version. */
  update(resource: CountedResource, { resources, failures }: Discovery, signal: AbortSignal): void {
    const known = this.#followed.get(resourceKey(resource));
    const found = resources.find(
      ({ apiVersion, plural, namespaced, verbs }) =>
        groupOf(apiVersion) === resource.group &&
        plural === resource.plural &&
        namespaced &&
        verbs.includes('list') &&
        verbs.includes('watch'),
    );
    if (
      found === undefined &&
      failures.some((failure) => groupOf(failure.slice(0, failure.indexOf(':'))) === resource.group)
    )
      return;
    const path = found === undefined ? undefined : resourcePath(found.apiVersion, found.plural);
    if (known !== undefined && known.path === path) return;
    this.stop(resource);
    if (path === undefined) return;
    const stopped = new AbortController();
    const until = AbortSignal.any([signal, stopped.signal]);
    const store =
      this.#informers.whole(path) ?? this.#informers.watchMetadata(`${resource.plural} (metadata)`, path, until);
    this.#follow(
      resource,
      path,
      store,
      () => OTHER,
      until,
      () => stopped.abort(),
    );
  }

  stop(resource: CountedResource): void {
    const key = resourceKey(resource);
    this.#followed.get(key)?.stop();
    this.#followed.delete(key);
  }

  /** The objects in one namespace, once all are known. Throws where that takes too long: the kind cannot be listed now. */
  async population(resource: CountedResource, namespace: string): Promise<Population | undefined> {
    const followed = this.#followed.get(resourceKey(resource));
    if (followed === undefined) return undefined;
    if (!followed.synced()) {
      const late = Promise.withResolvers<never>();
      const error = new Error(`${resourceKey(resource)} could not be listed within ${LIST_LIMIT_MS / 1000} s`);
      const timer = this.#clock.after(LIST_LIMIT_MS, () => late.reject(error));
      await Promise.race([followed.whenSynced(), late.promise]).finally(() => timer.cancel());
    }
    return { resource, objects: followed.inNamespace(namespace) };
  }

  #follow<T extends Identified>(
    resource: CountedResource,
    path: string,
    store: ReadableStore<T>,
    countedOf: (object: T) => Counted,
    signal: AbortSignal,
    stop: () => void = () => undefined,
  ): void {
    const forget = store.onChange((changes: readonly Change<T>[]) => {
      for (const change of changes) {
        const { namespace = '' } = change.object.metadata;
        if (change.type === 'removed') this.#listener(namespace, resource, countedOf(change.object));
        else if (change.type === 'modified') {
          this.#listener(namespace, resource, countedOf(change.old), countedOf(change.object));
        }
      }
    });
    signal.addEventListener('abort', forget, { once: true });
    this.#followed.set(resourceKey(resource), {
      resource,
      path,
      whenSynced: () => store.whenSynced(),
      synced: () => store.synced,
      // One namespace with a quota at a time, and only after a change of it: an index would cost more than it saves.
      inNamespace: (namespace) =>
        store
          .list()
          .filter(({ metadata }) => metadata.namespace === namespace)
          .map(countedOf),
      stop,
    });
  }
}
