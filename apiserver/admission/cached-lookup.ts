// Objects that admission reads at almost every request (namespaces, limits, classes, webhooks), parsed once and kept up
// to date from the store's changes. What it returns is shared and read only.

import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';
import type { Registry } from '../registry/registry.ts';

/** Small kinds that change rarely; any other is read from the store each time. */
const CACHED = [
  '/limitranges',
  '/namespaces',
  '/resourcequotas',
  '/serviceaccounts',
  'admissionregistration.k8s.io/mutatingwebhookconfigurations',
  'admissionregistration.k8s.io/validatingadmissionpolicies',
  'admissionregistration.k8s.io/validatingadmissionpolicybindings',
  'admissionregistration.k8s.io/validatingwebhookconfigurations',
  'networking.k8s.io/ingressclasses',
  'node.k8s.io/runtimeclasses',
  'scheduling.k8s.io/priorityclasses',
  'storage.k8s.io/storageclasses',
];

type ByName = Map<string, KubeObject>;
/** Namespace, then name. */
type Objects = Map<string, ByName>;
const NONE: ByName = new Map();

export class CachedLookup implements ObjectLookup {
  readonly #registry: Registry;
  readonly #cached = new Map<string, Objects>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  get(group: string, plural: string, namespace: string, name: string): KubeObject | undefined {
    const objects = this.#objects(group, plural);
    if (objects === undefined) return this.#registry.lookup.get(group, plural, namespace, name);
    this.#registry.store.dependsOn(`${group}/${plural}`, namespace, name);
    return objects.get(namespace)?.get(name);
  }

  list(group: string, plural: string): readonly KubeObject[] {
    const objects = this.#objects(group, plural);
    if (objects === undefined) return this.#registry.lookup.list(group, plural);
    return [...objects.values()].flatMap((byName) => [...byName.values()]);
  }

  each(group: string, plural: string, namespace: string): Iterable<KubeObject> {
    const objects = this.#objects(group, plural);
    if (objects === undefined) return this.#registry.lookup.each(group, plural, namespace);
    return (objects.get(namespace) ?? NONE).values();
  }

  having(group: string, plural: string, namespace: string, field: string, value: string): Iterable<KubeObject> {
    if (CACHED.includes(`${group}/${plural}`)) return this.each(group, plural, namespace);
    return this.#registry.lookup.having(group, plural, namespace, field, value);
  }

  #objects(group: string, plural: string): Objects | undefined {
    const resource = `${group}/${plural}`;
    const known = this.#cached.get(resource);
    if (known !== undefined || !CACHED.includes(resource)) return known;
    const registry = this.#registry;
    const objects: Objects = new Map();
    for (const object of registry.lookup.list(group, plural)) put(objects, object.metadata.namespace ?? '', object);
    registry.store.subscribe(resource, ({ record, object }) => {
      if (record.type === 'DELETED') objects.get(record.namespace)?.delete(record.name);
      else put(objects, record.namespace, object);
    });
    this.#cached.set(resource, objects);
    return objects;
  }
}

function put(objects: Objects, namespace: string, object: KubeObject): void {
  const byName: ByName = objects.get(namespace) ?? new Map<string, KubeObject>();
  byName.set(object.metadata.name ?? '', object);
  objects.set(namespace, byName);
}
