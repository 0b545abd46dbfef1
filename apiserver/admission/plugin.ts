// What an admission plugin is, and what it learns of a request: the counterpart of k8s.io/apiserver/pkg/admission. Types
// and the refusal; the order of plugins is table.ts, running them chain.ts.

import type { EpochMs } from '../../lib/clock.ts';
import type { Authorizer } from '../auth/authorizer.ts';
import { forbidden, type StatusError } from '../errors.ts';
import type { KubeObject, ObjectLookup } from '../kinds/resource.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

export interface AdmissionUser {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What a request is about, without its object. */
export interface AdmittedResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** '' for the object itself. */
  readonly subresource: string;
}

export interface AdmittedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The request's object in another version of its resource. */
export interface OtherForm {
  readonly resource: AdmittedResource;
  readonly kind: AdmittedKind;
  /** A copy of the request's object in this form. */
  fromRequest(object: KubeObject): KubeObject;
  /** A copy of an object of this form in the request's. */
  toRequest(object: KubeObject): KubeObject;
}

/** One request, the input of every plugin. Mutating plugins change `object` in place. */
export interface AdmissionAttributes {
  readonly operation: Operation;
  readonly resource: AdmittedResource;
  /** Of `object`: an Eviction for pods/eviction. */
  readonly kind: AdmittedKind;
  /** '' for what is in no namespace. */
  readonly namespace: string;
  /** '' where the server generates it later. */
  readonly name: string;
  /** The object after the request, or what was sent to a subresource; undefined for DELETE. */
  readonly object: KubeObject | undefined;
  /** What is stored; on UPDATE and DELETE. Read only. */
  readonly old: KubeObject | undefined;
  /** CreateOptions, UpdateOptions or DeleteOptions as JSON. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly user: AdmissionUser;
  /** Decides what the user may do beside the request. */
  readonly authorizer: Authorizer;
  readonly dryRun: boolean;
  readonly now: EpochMs;
  /** Differs between requests: what a plugin may take for random. */
  readonly requestId: string;
  /** Becomes a Warning header. */
  readonly warn: (text: string) => void;
  /** Becomes an annotation of the audit event, "<plugin>/<key>". */
  readonly annotate: (key: string, value: string) => void;
  /** The server itself writes: no webhook is called. */
  readonly internal: boolean;
  /** The other versions of the resource; absent where the object is not of a row's kind. */
  readonly otherForms?: () => readonly OtherForm[];
  /** The request itself, where these are its attributes in another form. */
  readonly request?: AdmissionAttributes;
  /** Decodes and defaults an object that a webhook has changed, in place. Absent where the object is not of a row's kind. */
  readonly settle?: (object: KubeObject) => void;
}

export interface AdmissionPlugin {
  /** Upstream's name. */
  readonly name: string;
  /** Whether `admit` and `validate` are called at all; depends on nothing else. */
  handles(operation: Operation, resource: AdmittedResource): boolean;
  /** May change `object`, in place. Pure otherwise. Throws AdmissionForbidden or StatusError. */
  admit?(attributes: AdmissionAttributes, lookup: ObjectLookup): void;
  /** Runs when the object is complete and valid. Pure. Throws AdmissionForbidden or StatusError. */
  validate?(attributes: AdmissionAttributes, lookup: ObjectLookup): void;
}

/** A plugin that calls others over the network: the webhooks. */
export interface RemotePlugin {
  readonly name: string;
  readonly phase: 'mutating' | 'validating';
  /**
   * What to wait for; undefined when no webhook is interested, which must be cheap to find out. The result of the call is
   * whether the plugins of the phase run once more (reinvocation).
   */
  plan(attributes: AdmissionAttributes, lookup: ObjectLookup): (() => Promise<boolean>) | undefined;
}

export { AdmissionForbidden, type AwaitedObject } from '../kinds/resource.ts';

/** The name in a refusal: that of the object, its generateName, or "Unknown". */
export function shownName({ name, object }: AdmissionAttributes): string {
  if (name !== '') return name;
  const { name: own = '', generateName = '' } = object?.metadata ?? {};
  return own || generateName || 'Unknown';
}

/** The refusal as a Status. */
export function refusalOf(attributes: AdmissionAttributes, message: string): StatusError {
  return forbidden(attributes.resource, shownName(attributes), message);
}

/** `handles` for one resource without its subresources. */
export function handlesOnly(group: string, plural: string, ...operations: Operation[]): AdmissionPlugin['handles'] {
  return (operation, resource) =>
    operations.includes(operation) &&
    resource.subresource === '' &&
    resource.plural === plural &&
    resource.group === group;
}
