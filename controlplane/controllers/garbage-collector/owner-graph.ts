// Who owns whom, over all kinds, as the list-watches show it. No I/O.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import { type Identified, objectKey } from '../../../client/store.ts';
import type { WorkloadKind } from '../shared/objects.ts';

/** An object, and the kind it is of. */
export interface Item {
  readonly kind: WorkloadKind;
  readonly object: Identified;
}

export const referencesOf = ({ metadata }: Identified): readonly OwnerReference[] => metadata.ownerReferences ?? [];

/** "apps/v1/replicasets:demo/web": names and versions contain no colon. */
export function keyOf({ kind, object }: Item): string {
  return `${kind.apiVersion}/${kind.plural}:${objectKey(object)}`;
}

export class OwnerGraph {
  readonly #items = new Map<string, Item>();
  /** Keys by uid. */
  readonly #keys = new Map<string, string>();
  /** Keys of the dependents, by the uid of an owner. */
  readonly #dependents = new Map<string, Set<string>>();

  get(key: string): Item | undefined {
    return this.#items.get(key);
  }

  byUid(uid: string): Item | undefined {
    return this.#items.get(this.#keys.get(uid) ?? '');
  }

  dependents(uid: string): readonly Item[] {
    return [...(this.#dependents.get(uid) ?? [])].flatMap((key) => this.#items.get(key) ?? []);
  }

  /** The object is there, in this state. */
  set(item: Item): void {
    const key = keyOf(item);
    const before = this.#items.get(key);
    if (before !== undefined) this.#unlink(key, before);
    this.#items.set(key, item);
    this.#keys.set(item.object.metadata.uid, key);
    for (const { uid } of referencesOf(item.object)) {
      const keys = this.#dependents.get(uid) ?? new Set<string>();
      this.#dependents.set(uid, keys.add(key));
    }
  }

  /** The object is gone. One of the same name that came after it stays. */
  remove(item: Item): void {
    const key = keyOf(item);
    const { uid } = item.object.metadata;
    if (this.#keys.get(uid) === key) this.#keys.delete(uid);
    const known = this.#items.get(key);
    if (known?.object.metadata.uid !== uid) return;
    this.#unlink(key, known);
    this.#items.delete(key);
  }

  #unlink(key: string, { object }: Item): void {
    for (const { uid } of referencesOf(object)) {
      const keys = this.#dependents.get(uid);
      keys?.delete(key);
      if (keys?.size === 0) this.#dependents.delete(uid);
    }
  }
}
