// What every verb works with: the rows, the store, and objects as a row shows them. Reads only; what writes is write.ts
// and delete.ts. What reads and then writes does so inside the store's `commit`, which runs it again where another
// server was faster.

import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import type { AdmissionChain } from '../admission/chain.ts';
import type { Caller } from '../auth/attributes.ts';
import { type Authorizer, NO_AUTHORIZER } from '../auth/authorizer.ts';
import { notFound } from '../errors.ts';
import type { Companion, IPFamily, KubeObject, ObjectLookup, RequestContext, ResourceKind } from '../kinds/resource.ts';
import { RowTable } from '../kinds/rows.ts';
import { IPV4_ONLY } from '../kinds/services/ranges.ts';
import { objectTooLarge } from '../limits.ts';
import type { CheckBody } from '../ports.ts';
import { parseObject } from '../storage/change.ts';
import {
  type Name,
  type ObjectKey,
  type ObjectStore,
  ObjectTooLargeError,
  type StoredObject,
} from '../storage/object-store.ts';
import { ContinueTokens } from './continue.ts';
import { FanOut, type RequiredValue } from './fan-out.ts';
import { FieldIndexes } from './field-index.ts';

export type { Caller } from '../auth/attributes.ts';

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

/** The options of a writing request. */
export interface WriteOptions {
  readonly caller: Caller;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  /** In whose name fields are managed. Default: "unknown", as upstream for clients without a name. */
  readonly fieldManager?: string;
  /** An apply has already found out who manages what. */
  readonly tracked?: boolean;
  /** Becomes a Warning header. */
  readonly warn: (text: string) => void;
  /** Becomes an annotation of the audit event. */
  readonly annotate?: (key: string, value: string) => void;
  /** The server itself writes: no webhook is called. */
  readonly internal?: boolean;
  /** Admission has seen the request in another form, as a Scale. */
  readonly admitted?: boolean;
}

/**
 * An object as a response shows it: its JSON as stored, parsed only on demand. Of an object that is being written it is to
 * be read after `commit`: only then its resourceVersion is known.
 */
export class View {
  readonly #source: { readonly text: string };
  #object: KubeObject | undefined;
  constructor(source: string | { readonly text: string }, object?: KubeObject) {
    this.#source = typeof source === 'string' ? { text: source } : source;
    this.#object = object;
  }
  get text(): string {
    return this.#source.text;
  }
  /** Read only. */
  get object(): Readonly<KubeObject> {
    this.#object ??= parseObject(this.text);
    return this.#object;
  }
}

/** Where the objects of a row come from that is not stored. */
export interface ComputedObjects {
  /** Called before the others; resolves when there is something to read. */
  ready(): Promise<void>;
  /** Of a namespace, or of all. */
  list(namespace: string | undefined): readonly KubeObject[];
  /** Throws 404 when there is none of this name. */
  get(namespace: string, name: string): KubeObject;
}

/** Where uids and generated names come from. */
export interface Chance {
  uuid(): string;
  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number;
}

const SYSTEM_CHANCE: Chance = { uuid: () => randomUUID(), below: (limit) => randomInt(limit) };

export interface RegistryParts {
  readonly store: ObjectStore;
  /** A table that gains and loses rows, or rows that stay. */
  readonly kinds: readonly ResourceKind[] | RowTable;
  readonly checkBody: CheckBody;
  readonly clock: Clock;
  /** Audiences that nodes may request tokens for though no volume of the pod needs them. Default: none. */
  readonly nodeAudiences?: readonly string[];
  /** The families that Services get addresses of, the default one first. Default: IPv4 alone. */
  readonly serviceFamilies?: readonly IPFamily[];
  /** Decides what callers may; absent, only system:masters may anything. */
  readonly authorizer?: (registry: Registry) => Authorizer;
  /** The admission of every write; made with the registry, whose objects it reads. */
  readonly admission: (registry: Registry) => AdmissionChain;
  /** Signs continue tokens; absent, they hold as long as this registry. */
  readonly continueKey?: string;
  /** Default: the system's randomness. */
  readonly chance?: Chance;
}

export class Registry {
  readonly store: ObjectStore;
  readonly fanOut: FanOut;
  readonly #indexes: FieldIndexes;
  readonly clock: Clock;
  readonly chance: Chance;
  readonly checkBody: CheckBody;
  readonly rows: RowTable;
  readonly nodeAudiences: readonly string[];
  readonly serviceFamilies: readonly IPFamily[];
  readonly continueTokens: ContinueTokens;
  readonly authorizer: Authorizer;
  readonly admission: AdmissionChain;

  readonly #computed = new Map<string, ComputedObjects>();

  constructor(parts: RegistryParts) {
    this.store = parts.store;
    this.fanOut = new FanOut(parts.store);
    this.#indexes = new FieldIndexes(parts.store);
    this.clock = parts.clock;
    this.chance = parts.chance ?? SYSTEM_CHANCE;
    this.checkBody = parts.checkBody;
    this.rows = parts.kinds instanceof RowTable ? parts.kinds : new RowTable(parts.kinds);
    this.nodeAudiences = parts.nodeAudiences ?? [];
    this.serviceFamilies = parts.serviceFamilies ?? IPV4_ONLY;
    this.continueTokens = new ContinueTokens(parts.continueKey ?? randomBytes(32));
    this.authorizer = parts.authorizer?.(this) ?? NO_AUTHORIZER;
    this.admission = parts.admission(this);
  }

  /** Sets where the objects of a row that is not stored come from. */
  compute(row: ResourceKind, objects: ComputedObjects): void {
    this.#computed.set(this.resource(row), objects);
  }

  /** undefined for a row whose objects are stored. */
  computed(row: ResourceKind): ComputedObjects | undefined {
    return row.computed === undefined ? undefined : this.#computed.get(this.resource(row));
  }

  /** The row behind /apis/<group>/<version>/<plural>. */
  row(group: string, version: string, plural: string): ResourceKind | undefined {
    return this.rows.row(group, version, plural);
  }

  /** The row of a resource in whichever version comes first in the table. Throws 404 when nothing serves it. */
  rowOf(group: string, plural: string): ResourceKind {
    const row = this.rows.preferred(group, plural);
    if (row === undefined) throw notFound({ group: '', plural: 'resources' }, `${plural}.${group}`);
    return row;
  }

  /** The rows that show the same stored objects, in every version. */
  versionsOf(row: ResourceKind): readonly ResourceKind[] {
    const resource = this.resource(row);
    return this.rows.all.filter((other) => this.resource(other) === resource);
  }

  hasRow(group: string, plural: string): boolean {
    return this.rows.preferred(group, plural) !== undefined;
  }

  /** Under which name the row's objects are stored. */
  resource(row: ResourceKind): string {
    const { group, plural } = row.storedAs ?? row;
    return `${group}/${plural}`;
  }

  key(row: ResourceKind, namespace: string, name: string): ObjectKey {
    return { resource: this.resource(row), namespace: row.namespaced ? namespace : '', name };
  }

  find(row: ResourceKind, namespace: string, name: string): StoredObject | undefined {
    return this.store.get(this.key(row, namespace, name));
  }

  /** Throws 404 when there is no such object. */
  need(row: ResourceKind, namespace: string, name: string): StoredObject {
    const found = this.find(row, namespace, name);
    if (found === undefined) throw notFound(row, name);
    return found;
  }

  /** A copy of the stored object, in the row's form, for the caller to change. */
  parse(row: ResourceKind, stored: Pick<StoredObject, 'text'>): KubeObject {
    const object = parseObject(stored.text);
    return row.storedAs === undefined ? object : row.storedAs.fromStored(object);
  }

  /** A copy of it in the form in which it is stored, which is enough where metadata alone counts. */
  parseStored({ text }: StoredObject): KubeObject {
    return parseObject(text);
  }

  view(row: ResourceKind, stored: Pick<StoredObject, 'text'>): View {
    const registry = this;
    if (row.storedAs === undefined) return new View(stored);
    let text: string | undefined;
    return new View({
      get text() {
        text ??= JSON.stringify(registry.parse(row, stored));
        return text;
      },
    });
  }

  get(row: ResourceKind, namespace: string, name: string): View {
    return this.view(row, this.need(row, namespace, name));
  }

  readonly lookup: ObjectLookup = {
    get: (group, plural, namespace, name) => {
      if (!this.hasRow(group, plural)) return undefined;
      const row = this.rowOf(group, plural);
      const stored = this.find(row, namespace, name);
      return stored === undefined ? undefined : this.parse(row, stored);
    },
    list: (group, plural) => {
      if (!this.hasRow(group, plural)) return [];
      const row = this.rowOf(group, plural);
      return Array.from(this.store.scan(this.resource(row)), (stored) => this.parse(row, stored));
    },
    each: (group, plural, namespace) =>
      this.hasRow(group, plural) ? this.#each(this.rowOf(group, plural), namespace) : [],
    having: (group, plural, namespace, field, value) =>
      this.hasRow(group, plural) ? this.#having(this.rowOf(group, plural), namespace, field, value) : [],
  };

  *#having(row: ResourceKind, namespace: string, field: string, value: string): Iterable<KubeObject> {
    const read = getOwn(row.strategy.selectableFields, field);
    const names = read === undefined ? undefined : this.namesWith(row, { field, value, read }, namespace);
    if (names === undefined) {
      yield* this.#each(row, namespace);
      return;
    }
    for (const { name } of names) {
      const stored = this.find(row, namespace, name);
      if (stored !== undefined) yield this.parse(row, stored);
    }
  }

  /** Reads every object of the kinds with indexed fields, so that no request has to wait for that. */
  openIndexes(): void {
    for (const row of this.rows.all) {
      for (const field of row.strategy.indexedFields ?? []) {
        const read = getOwn(row.strategy.selectableFields, field);
        if (read !== undefined) this.namesWith(row, { field, value: '', read });
      }
    }
  }

  /**
   * The objects whose field has the value now, by namespace and name; undefined where the field has no index, or the index is
   * of no use.
   */
  namesWith(row: ResourceKind, required: RequiredValue, namespace?: string): readonly Name[] | undefined {
    if (row.storedAs !== undefined || row.strategy.indexedFields?.includes(required.field) !== true) return undefined;
    return this.#indexes.names(this.resource(row), required, namespace);
  }

  *#each(row: ResourceKind, namespace: string): Iterable<KubeObject> {
    for (const stored of this.store.scan(this.resource(row), namespace)) yield this.parse(row, stored);
  }

  context(caller: Caller): RequestContext {
    const { lookup, authorizer, serviceFamilies } = this;
    return { user: caller, now: this.clock.now(), lookup, authorizer, serviceFamilies };
  }

  /**
   * Writes `object` (in the row's form) in place of `previous`, and shows the result. `object` is given away. Throws 413
   * for one that is too large.
   */
  put(row: ResourceKind, key: ObjectKey, object: KubeObject, previous?: StoredObject): View {
    const stored = this.putStored(key, row.storedAs === undefined ? object : row.storedAs.toStored(object), previous);
    const { companions } = row.strategy;
    if (companions !== undefined) {
      const before = previous === undefined ? [] : companions(this.parse(row, previous));
      this.#replaceCompanions(before, companions(object));
    }
    return row.storedAs === undefined ? new View(stored, object) : this.view(row, stored);
  }

  /** The same for an object in the form in which it is stored. */
  putStored(key: ObjectKey, object: KubeObject, previous?: StoredObject): StoredObject {
    try {
      return this.store.put(key, object, previous);
    } catch (error) {
      if (error instanceof ObjectTooLargeError) throw objectTooLarge(error.bytes);
      throw error;
    }
  }

  #replaceCompanions(before: readonly Companion[], wanted: readonly Companion[]): void {
    const isIn = (list: readonly Companion[], { group, plural, name }: Companion): boolean =>
      list.some((one) => one.group === group && one.plural === plural && one.name === name);
    for (const companion of before) if (!isIn(wanted, companion)) this.#removeCompanion(companion);
    for (const companion of wanted) if (!isIn(before, companion)) this.createCompanion(companion);
  }

  /** Makes the object, if there is none. Only inside `commit`. */
  createCompanion({ group, plural, name, labels, fields }: Companion): void {
    if (!this.hasRow(group, plural)) return;
    const row = this.rowOf(group, plural);
    if (this.find(row, '', name) !== undefined) return;
    const metadata = {
      name,
      uid: this.chance.uuid(),
      creationTimestamp: rfc3339(this.clock.now()),
      labels: { ...labels },
    };
    const object = { apiVersion: apiVersionOf(row), kind: row.kind, metadata, ...structuredClone(fields) };
    this.store.put(this.key(row, '', name), object);
  }

  /** Removes the object, if it is that one and not another's of the name. */
  #removeCompanion({ group, plural, name, fields }: Companion): void {
    if (!this.hasRow(group, plural)) return;
    const row = this.rowOf(group, plural);
    const stored = this.find(row, '', name);
    if (stored === undefined) return;
    const object = this.parse(row, stored);
    const isOurs = Object.entries(fields).every(([field, value]) => sameJson(getOwn(object, field), value));
    if (isOurs) this.store.remove(this.key(row, '', name), object, stored);
  }

  /** Removes an object whose last state is `object`, and returns that. */
  remove(row: ResourceKind, key: ObjectKey, object: KubeObject, previous: StoredObject): View {
    const { storedAs, strategy } = row;
    const removed = this.store.remove(key, storedAs === undefined ? object : storedAs.toStored(object), previous);
    if (strategy.companions !== undefined) this.#replaceCompanions(strategy.companions(object), []);
    return storedAs === undefined ? new View(removed, object) : this.view(row, removed);
  }
}

export function apiVersionOf(row: Pick<ResourceKind, 'group' | 'version'>): string {
  return row.group === '' ? row.version : `${row.group}/${row.version}`;
}
