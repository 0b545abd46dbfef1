// A write as the admission plugins see it, and the admission of requests that store no object of their own: deletions,
// subresources, connections.

import { randomUUID } from 'node:crypto';
import type { AdmissionAttributes, AdmittedKind, Operation, OtherForm } from '../admission/plugin.ts';
import type { Steps } from '../admission/steps.ts';
import { internalError } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import { inVersion } from './conversions.ts';
import type { Registry, WriteOptions } from './registry.ts';

export interface WritePlace {
  readonly namespace: string;
  readonly name: string;
  /** Default: '', the object itself. */
  readonly subresource?: string;
  /** Of what is sent to the subresource. Default: the row's. */
  readonly kind?: AdmittedKind;
  readonly object?: KubeObject;
  readonly old?: KubeObject;
  /** Decodes and defaults an object that a webhook has changed, in place. */
  readonly settle?: (object: KubeObject) => void;
  /** What CreateOptions and their like hold beside dryRun. */
  readonly options?: Readonly<Record<string, unknown>>;
}

const OPTIONS: Readonly<Record<Operation, string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
  CONNECT: '',
};

export function admissionAttributes(
  registry: Registry,
  row: ResourceKind,
  operation: Operation,
  place: WritePlace,
  options: WriteOptions,
): AdmissionAttributes {
  const { group, version, plural, kind } = row;
  const { caller, dryRun, warn, annotate = () => undefined, internal = false } = options;
  const optionsKind = OPTIONS[operation];
  return {
    operation,
    resource: { group, version, plural, subresource: place.subresource ?? '' },
    kind: place.kind ?? { group, version, kind },
    namespace: place.namespace,
    name: place.name,
    object: place.object,
    old: place.old,
    options:
      optionsKind === ''
        ? {}
        : { kind: optionsKind, apiVersion: 'meta.k8s.io/v1', ...place.options, ...(dryRun ? { dryRun: ['All'] } : {}) },
    user: caller,
    authorizer: registry.authorizer,
    dryRun,
    now: registry.clock.now(),
    requestId: randomUUID(),
    warn,
    annotate,
    internal,
    ...(place.settle === undefined ? {} : { settle: place.settle }),
    ...(place.kind === undefined ? { otherForms: () => otherForms(registry, row, place.subresource ?? '') } : {}),
  };
}

/** What a request for the row is in the other versions of the resource. */
function otherForms(registry: Registry, row: ResourceKind, subresource: string): OtherForm[] {
  return registry
    .versionsOf(row)
    .filter((other) => other !== row)
    .map((other) => {
      const { group, version, plural, kind } = other;
      return {
        resource: { group, version, plural, subresource },
        kind: { group, version, kind },
        fromRequest: (object) => inVersion(object, row, other),
        toRequest: (object) => inVersion(object, other, row),
      };
    });
}

/** Has an object of the row that a webhook has changed decoded and defaulted like one that was sent. */
export function settler(registry: Registry, row: ResourceKind): (object: KubeObject) => void {
  return (object) => {
    const { fatal } = row.custom?.checkBody(object) ?? registry.checkBody(row, object);
    if (fatal !== undefined) throw internalError(fatal);
    row.strategy.applyDefaults?.(object);
  };
}

/** Both phases, for what is not stored as it is sent. */
export function* admitRequest(
  registry: Registry,
  row: ResourceKind,
  operation: Operation,
  place: WritePlace,
  options: WriteOptions,
): Steps<void> {
  const attributes = admissionAttributes(registry, row, operation, place, options);
  yield* registry.admission.admit(attributes);
  yield* registry.admission.validate(attributes);
}
