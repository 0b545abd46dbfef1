// Which objects belong to a controller: by their controller reference first, by the selector where they have none. An
// orphan that matches is adopted, an own object that no longer matches is released. Pure, but for the index.

import type { LabelSelector, OwnerReference } from 'kubernetes-types/meta/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import { type Identified, objectKey, type ReadableStore } from '../../../client/store.ts';

/** The reference to the one owner that manages the object. */
export function controllerOf({ metadata }: Identified): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** An absent selector matches nothing. */
export function selects(selector: LabelSelector | undefined, { metadata }: Identified): boolean {
  return selector !== undefined && matchesLabelSelector(selector, metadata.labels ?? {});
}

export interface Claims<T> {
  readonly owned: readonly T[];
  /** Orphans to take over. */
  readonly adopt: readonly T[];
  /** Its own that no longer match. */
  readonly release: readonly T[];
}

/**
 * What `owner` does with each candidate of its namespace: those that the selector matches and `accepts` accepts are its own.
 * One on its way out neither adopts nor releases.
 */
export function decideClaims<T extends Identified>(
  owner: Identified,
  selector: LabelSelector | undefined,
  candidates: readonly T[],
  accepts: (dependent: T) => boolean = () => true,
): Claims<T> {
  const leaving = owner.metadata.deletionTimestamp !== undefined;
  const owned: T[] = [];
  const adopt: T[] = [];
  const release: T[] = [];
  for (const each of candidates) {
    const reference = controllerOf(each);
    const matches = selects(selector, each) && accepts(each);
    if (reference !== undefined) {
      if (reference.uid !== owner.metadata.uid) continue;
      if (matches) owned.push(each);
      else if (!leaving) release.push(each);
    } else if (matches && !leaving && each.metadata.deletionTimestamp === undefined) adopt.push(each);
  }
  return { owned, adopt, release };
}

const ORPHANS = '';

/** Objects by the uid of their controller, and those without one: a sync does not look at a whole cluster's pods. */
export class OwnerIndex<T extends Identified> {
  readonly #byOwner = new Map<string, Map<string, T>>();

  constructor(store: ReadableStore<T>) {
    for (const object of store.list()) this.#add(object);
    store.onChange((changes) => {
      for (const change of changes) {
        if (change.type === 'modified') this.#remove(change.old);
        if (change.type === 'removed') this.#remove(change.object);
        else this.#add(change.object);
      }
    });
  }

  ownedBy(uid: string): readonly T[] {
    return [...(this.#byOwner.get(uid)?.values() ?? [])];
  }

  /** Those that `owner` may claim: its own, and its namespace's orphans. */
  candidates({ metadata }: Identified): readonly T[] {
    const orphans = this.ownedBy(ORPHANS).filter((each) => each.metadata.namespace === metadata.namespace);
    return [...this.ownedBy(metadata.uid), ...orphans];
  }

  #add(object: T): void {
    const owner = controllerOf(object)?.uid ?? ORPHANS;
    const owned = this.#byOwner.get(owner) ?? new Map<string, T>();
    owned.set(objectKey(object), object);
    this.#byOwner.set(owner, owned);
  }

  #remove(object: T): void {
    const owner = controllerOf(object)?.uid ?? ORPHANS;
    const owned = this.#byOwner.get(owner);
    owned?.delete(objectKey(object));
    if (owned?.size === 0) this.#byOwner.delete(owner);
  }
}
