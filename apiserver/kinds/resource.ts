// The row type of the resource table. One row per kind drives everything the server does with it: routes, discovery,
// strict decoding, defaulting, validation, selectors, tables, deletion. The registry uses rows, never kinds.

import type { EpochMs } from '../../lib/clock.ts';
import type { ValueType } from '../apply/types.ts';
import type { Caller } from '../auth/attributes.ts';
import type { Authorizer } from '../auth/authorizer.ts';
import type { JsonSchema } from '../crd/json-schema.ts';

/** An object as it is on the wire. The registry reads only metadata; strategies read the rest. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: KubeObjectMeta;
  [field: string]: unknown;
}

export interface KubeObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  finalizers?: string[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: Record<string, unknown>[];
  managedFields?: Record<string, unknown>[];
  [field: string]: unknown;
}

/** One invalid field; becomes a cause of a 422 Status. The types are those of the API machinery. */
export interface FieldError {
  readonly type:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueDuplicate'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany'
    | 'FieldValueTypeInvalid'
    | 'FieldValueNotFound';
  /** "spec.containers[0].name" */
  readonly field: string;
  /** What a user reads after the field: `Invalid value: "X": must be …`. */
  readonly detail: string;
}

/** Read access to other stored objects, for admission (namespace exists, service account). */
export interface ObjectLookup {
  get(group: string, plural: string, namespace: string, name: string): KubeObject | undefined;
  /** All objects of a kind, of every namespace: for allocation (cluster IPs, node ports) and defaults (priority class). */
  list(group: string, plural: string): readonly KubeObject[];
  /** The objects of one namespace, read lazily. Nothing may be written during the iteration. */
  each(group: string, plural: string, namespace: string): Iterable<KubeObject>;
  /**
   * Those of them whose field has the value, as far as the field is indexed (`indexedFields`): where it is not, others are
   * among them.
   */
  having(group: string, plural: string, namespace: string, field: string, value: string): Iterable<KubeObject>;
}

/**
 * Thrown by admission and by applyCaller to refuse the whole request: 403, `pods "x" is forbidden: <message>`. For what is
 * wrong with the request's surroundings; what is wrong with a field is a FieldError.
 */
export class AdmissionForbidden extends Error {
  override name = 'AdmissionForbidden';
  /** An object whose creation would change the result: the request waits for it for a moment and is admitted again. */
  readonly waitFor: AwaitedObject | undefined;
  constructor(message: string, waitFor?: AwaitedObject) {
    super(message);
    this.waitFor = waitFor;
  }
}

/**
 * Thrown where something has to be waited for first: an object that only a webhook can convert, rules that are compiled in several
 * turns. `ready` brings it about and rejects with StatusError where it fails; after it the same code finds the result.
 */
export class Pending extends Error {
  override name = 'Pending';
  readonly ready: () => Promise<void>;
  constructor(what: string, ready: () => Promise<void>) {
    super(what);
    this.ready = ready;
  }
}

export interface AwaitedObject {
  readonly group: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
}

export type IPFamily = 'IPv4' | 'IPv6';

export interface RequestContext {
  readonly user: Caller;
  /** Epoch ms. */
  readonly now: EpochMs;
  readonly lookup: ObjectLookup;
  /** Decides what else the user may, where admission asks: granting roles, approving certificates. */
  readonly authorizer?: Authorizer;
  /** The families that Services get addresses of, the default one first. Default: IPv4 alone. */
  readonly serviceFamilies?: readonly IPFamily[];
}

/** A cluster-scoped object that the server makes and removes together with another one. */
export interface Companion {
  readonly group: string;
  readonly plural: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The write that a caller makes. */
export interface CallerWrite {
  /** What is stored; absent on create. */
  readonly old?: KubeObject;
  /** '' for the object itself. */
  readonly subresource: string;
}

export interface TableColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly format?: string;
  readonly description?: string;
  /** 0 is always shown; 1 and above only with -o wide. */
  readonly priority?: number;
}

/** What a kind does beyond what all kinds do. Every function is pure; those that change an object own it. */
export interface ResourceStrategy {
  /** Fills defaults on an object from a client, in place. */
  applyDefaults?(object: KubeObject): void;
  /**
   * Gives an object what only the server can give it, in place: a cluster IP, node ports. After admission, before
   * validation; called again where a new object waited for webhooks, to see whether what was given is still free. `old` on
   * an update of the object itself.
   */
  allocate?(object: KubeObject, context: RequestContext, old?: KubeObject): FieldError[];
  /** Objects that are there exactly as long as this one says so: written and removed in the same decision as it, after it. */
  companions?(object: KubeObject): readonly Companion[];
  /**
   * What depends on who writes, in place: refuses what this caller may not write though the route is open to them, and
   * records who they are. After defaults, before admission. Throws AdmissionForbidden, which becomes 403, or StatusError.
   */
  applyCaller?(object: KubeObject, write: CallerWrite, context: RequestContext): void;
  /** Whether metadata.generation counts changes beyond metadata and status. Default: when there is a spec and a status subresource. */
  readonly countsGenerations?: boolean;
  /** Drops what a creator may not set (status). Default: status is removed when there is a status subresource. */
  prepareForCreate?(object: KubeObject): void;
  /** Carries over what this update may not change. Default: status stays the old one. */
  prepareForUpdate?(object: KubeObject, old: KubeObject): void;
  prepareForStatusUpdate?(object: KubeObject, old: KubeObject): void;
  validateCreate?(object: KubeObject): FieldError[];
  validateUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  validateStatusUpdate?(object: KubeObject, old: KubeObject): FieldError[];
  /** Warnings about what is valid, for the client that writes it; `old` on an update of the object itself. */
  warnings?(object: KubeObject, old?: KubeObject): readonly string[];
  /** The same for an update of the status. */
  statusWarnings?(object: KubeObject): readonly string[];
  /** What such an update may change, in place: carries everything else over from the old object. */
  readonly prepareSubresource?: Readonly<Record<string, (object: KubeObject, old: KubeObject) => void>>;
  /** Rules for updates through other subresources ("ephemeralcontainers", "resize"), by the subresource's name. */
  readonly validateSubresource?: Readonly<Record<string, (object: KubeObject, old: KubeObject) => FieldError[]>>;
  /**
   * Seconds of grace a deletion of this object gets; 0 removes it at once. `requested` is the caller's
   * gracePeriodSeconds. Default: 0.
   */
  gracePeriodSeconds?(object: KubeObject, requested: number | undefined): number;
  /** What the first request to delete it adds, in place: a finalizer. */
  prepareForDelete?(object: KubeObject): void;
  /**
   * Paths that a write through the object ('') or one of its subresources never changes: no manager owns them.
   * Default, where there is a status: ['status'] for the object, ['spec'] for its status.
   */
  readonly resetFields?: Readonly<Record<string, readonly (readonly string[])[]>>;
  /** The same the other way round: the only paths that a write through the subresource changes. "*" is any element. */
  readonly ownFields?: Readonly<Record<string, readonly (readonly string[])[]>>;
  /** What a deletion without a policy does to dependents: "none" for kinds that have none (events). Default: they go, too. */
  readonly dependents?: 'none' | 'orphan';
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields?: Readonly<Record<string, (object: KubeObject) => string>>;
  /** Those of them by which few of many objects are looked up again and again. */
  readonly indexedFields?: readonly string[];
  /** How kubectl get prints it. Default: Name and Age. */
  readonly table?: {
    readonly columns: readonly TableColumn[];
    /** Cells in column order; `now` is epoch ms. */
    row(object: KubeObject, now: EpochMs): readonly (string | number | boolean | null)[];
  };
}

/** What a custom kind has that built-in ones take from the generated schema. */
export interface CustomKind {
  /** Checks a parsed body and drops unknown fields, in place. `text`: what it was parsed from. */
  checkBody(
    object: Record<string, unknown>,
    text?: string,
  ): { readonly strict: readonly string[]; readonly fatal?: string };
  /** Its OpenAPI schema; `reference` refers to a definition of the same document. */
  openapi(version: 'v2' | 'v3', reference: (name: string) => Record<string, unknown>): Record<string, unknown>;
  /** What objects look like, for the types of expressions. */
  readonly schema: JsonSchema;
  /** Changes when the document does. */
  readonly revision: string;
  /** Where the scale subresource has its values. */
  readonly scale?: {
    readonly replicas: readonly string[];
    readonly statusReplicas: readonly string[];
    readonly selector?: readonly string[];
  };
  /** Why nothing is created at present; 405. */
  readonly noCreate?: string;
}

export interface ResourceKind {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly namespaced: boolean;
  /** Besides the object itself: "status", "binding", "eviction", "log", "exec", "attach", "token", "finalize", … */
  readonly subresources: readonly string[];
  /** Verbs where they are not the usual get list watch create update patch delete deletecollection. */
  readonly verbs?: readonly string[];
  /** Its definition in the generated schema: "io.k8s.api.core.v1.Pod". */
  readonly schema: string;
  /** How its values merge in an apply. Default: as `schema` says. */
  readonly valueType?: ValueType;
  /** Not stored: objects are made when they are read (Registry.computed). Only get and list. */
  readonly computed?: true;
  /** Stored under another row (events.k8s.io/v1 events are core/v1 events): objects are converted on the way. */
  readonly storedAs?: {
    readonly group: string;
    readonly plural: string;
    /** Both throw Pending, and take an object of any version, where `webhook` is present. */
    toStored(object: KubeObject): KubeObject;
    fromStored(object: KubeObject): KubeObject;
    /** Whether an object is in another form than a new one would be stored in: it is written though unchanged. */
    isOutdated?(text: string): boolean;
    /** Present where a webhook converts. */
    readonly webhook?: {
      /** Stored objects in the row's form, several to a call of the webhook. Rejects with StatusError. */
      fromStored(texts: readonly string[]): Promise<readonly string[]>;
      /** Converts for `toStored`, which finds the result as long as nothing but metadata changes. Rejects with StatusError. */
      toStored(object: KubeObject): Promise<void>;
    };
  };
  readonly strategy: ResourceStrategy;
  /** Where it is not the kind with "List". */
  readonly listKind?: string;
  /** A Warning header of every response. */
  readonly warning?: string;
  /** Present on kinds that a CustomResourceDefinition has made. */
  readonly custom?: CustomKind;
}
