// Finds objects by the value of a field without reading the others: the pods of a node, for its kubelet's lists and watches and
// for the node authorizer. A kind names the fields (`indexedFields`); each is read of all objects when it is first asked for,
// and from the store's changes afterwards. Keeps names, no objects.

import type { KubeObject } from '../kinds/resource.ts';
import { parseObject } from '../storage/change.ts';
import type { Name, ObjectStore } from '../storage/object-store.ts';
import type { RequiredValue } from './fan-out.ts';

/** With more objects than this a value says too little: they are all read, a part at a time. */
const MAX_NAMES = 1000;

type ById = Map<string, Name>;

class Index {
  readonly #read: RequiredValue['read'];
  readonly #byValue = new Map<string, ById>();
  /** Where each object is. */
  readonly #places = new Map<string, ById>();
  /** One string for all objects of a namespace. */
  readonly #namespaces = new Map<string, string>();

  constructor(read: RequiredValue['read']) {
    this.#read = read;
  }

  set({ namespace, name }: Name, object: Readonly<KubeObject>): void {
    const id = `${namespace}/${name}`;
    const value = this.#read(object);
    const before = this.#places.get(id);
    let place = this.#byValue.get(value);
    if (before !== undefined && before === place) return;
    before?.delete(id);
    if (place === undefined) {
      place = new Map();
      this.#byValue.set(value, place);
    }
    place.set(id, { namespace: this.#shared(namespace), name });
    this.#places.set(id, place);
  }

  delete({ namespace, name }: Name): void {
    const id = `${namespace}/${name}`;
    this.#places.get(id)?.delete(id);
    this.#places.delete(id);
  }

  names(value: string): ById | undefined {
    return this.#byValue.get(value);
  }

  #shared(namespace: string): string {
    const known = this.#namespaces.get(namespace);
    if (known === undefined) this.#namespaces.set(namespace, namespace);
    return known ?? namespace;
  }
}

export class FieldIndexes {
  readonly #store: Pick<ObjectStore, 'scan' | 'subscribe'>;
  /** By resource and field. */
  readonly #indexes = new Map<string, Index>();

  constructor(store: Pick<ObjectStore, 'scan' | 'subscribe'>) {
    this.#store = store;
  }

  /**
   * The objects of the resource whose field has the value now, by namespace and name; of one namespace where it is set.
   * Undefined where they are so many that the index is of no use.
   */
  names(resource: string, { field, value, read }: RequiredValue, namespace?: string): readonly Name[] | undefined {
    const key = `${resource} ${field}`;
    const index = this.#indexes.get(key) ?? this.#open(key, resource, read);
    const found = index.names(value);
    if (found === undefined) return [];
    if (found.size > MAX_NAMES) return undefined;
    const names = [...found.values()];
    return (namespace === undefined ? names : names.filter((name) => name.namespace === namespace)).sort(compareNames);
  }

  #open(key: string, resource: string, read: RequiredValue['read']): Index {
    const index = new Index(read);
    for (const stored of this.#store.scan(resource)) index.set(stored, parseObject(stored.text));
    this.#store.subscribe(resource, ({ record, object }) => {
      if (record.type === 'DELETED') index.delete(record);
      else index.set(record, object);
    });
    this.#indexes.set(key, index);
    return index;
  }
}

/** By code unit, as in the store. */
function compareNames(a: Name, b: Name): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name === b.name ? 0 : a.name < b.name ? -1 : 1;
}
