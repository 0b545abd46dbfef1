// The kinds whose objects the collector knows: those that discovery shows and that can be listed, watched and deleted, custom
// ones too. Kinds that the process watches anyway are not watched twice; of the others only metadata is.

import { resourcePath } from '../../../client/paths.ts';
import type { Change, Identified, ReadableStore } from '../../../client/store.ts';
import { type DiscoveredResource, type Discovery, groupOf } from '../../discovery.ts';
import type { Informers } from '../../informers.ts';

/** One kind of objects changed. */
export type KindListener = (resource: DiscoveredResource, changes: readonly Change<Identified>[]) => void;

interface Watched {
  readonly resource: DiscoveredResource;
  readonly store: ReadableStore<Identified>;
  readonly stop: () => void;
}

/** Events come and go by themselves, and nothing owns or is owned by them. */
const IGNORED_GROUPS: ReadonlySet<string> = new Set(['events.k8s.io']);

const kindKey = (apiVersion: string, kind: string): string => `${groupOf(apiVersion)}/${kind}`;

function isCollected({ apiVersion, plural, verbs }: DiscoveredResource): boolean {
  if (IGNORED_GROUPS.has(groupOf(apiVersion)) || (apiVersion === 'v1' && plural === 'events')) return false;
  return ['list', 'watch', 'delete'].every((verb) => verbs.includes(verb));
}

type Needed = Pick<Informers, 'whole' | 'watchMetadata'>;

export class CollectedKinds {
  readonly #informers: Needed;
  readonly #listener: KindListener;
  /** All that discovery showed, by group and kind. */
  #known = new Map<string, DiscoveredResource>();
  readonly #watched = new Map<string, Watched>();

  constructor(informers: Needed, listener: KindListener) {
    this.#informers = informers;
    this.#listener = listener;
  }

  /** In whichever version it is served; undefined where the server has no such kind. */
  find(apiVersion: string, kind: string): DiscoveredResource | undefined {
    return this.#known.get(kindKey(apiVersion, kind));
  }

  /** Resolves once the objects of all the kinds that are watched now are known. */
  async whenSynced(): Promise<void> {
    await Promise.all([...this.#watched.values()].map(({ store }) => store.whenSynced()));
  }

  /** Watches what is new, and no longer what is gone, until `signal` aborts; true where there was something new. */
  update({ resources, failures }: Discovery, signal: AbortSignal): boolean {
    const failed = failures.map((failure) => failure.slice(0, failure.indexOf(':')));
    const isLost = ({ apiVersion }: DiscoveredResource): boolean =>
      !failed.some((each) => groupOf(each) === groupOf(apiVersion));
    const known = new Map(resources.map((resource) => [kindKey(resource.apiVersion, resource.kind), resource]));
    for (const [key, resource] of this.#known) if (!known.has(key) && !isLost(resource)) known.set(key, resource);
    this.#known = known;
    const collected = new Map([...known].filter(([, resource]) => isCollected(resource)));
    for (const [key, { resource, stop }] of this.#watched) {
      if (collected.get(key)?.apiVersion === resource.apiVersion) continue;
      stop();
      this.#watched.delete(key);
    }
    let isNew = false;
    for (const [key, resource] of collected) {
      if (this.#watched.has(key)) continue;
      this.#watched.set(key, this.#watch(resource, signal));
      isNew = true;
    }
    return isNew;
  }

  #watch(resource: DiscoveredResource, signal: AbortSignal): Watched {
    const path = resourcePath(resource.apiVersion, resource.plural);
    const stopped = new AbortController();
    const store =
      this.#informers.whole(path) ??
      this.#informers.watchMetadata(`${resource.plural} (metadata)`, path, AbortSignal.any([signal, stopped.signal]));
    const listed = store.list();
    if (listed.length > 0) {
      this.#listener(
        resource,
        listed.map((object) => ({ type: 'added', object })),
      );
    }
    const forget = store.onChange((changes) => this.#listener(resource, changes));
    const stop = (): void => {
      forget();
      stopped.abort();
      this.#listener(
        resource,
        store.list().map((object) => ({ type: 'removed', object })),
      );
    };
    return { resource, store, stop };
  }
}
