// What holds for the metadata of every kind: names, labels, annotations, finalizers, owners, and what an update may not
// change. `defineKind` puts these rules in front of a kind's own.

import { getOwn } from '../../lib/own-property.ts';
import { addErrors, duplicate, forbidden, IMMUTABLE, invalid, nonNegative, required, syntax } from './field-errors.ts';
import { dns1123Label, dns1123Subdomain, labelValue, type NameRule, qualifiedName } from './names.ts';
import type { FieldError, KubeObject, KubeObjectMeta, ResourceKind } from './resource.ts';

const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** A row before the metadata rules are put in front; `nameRule` defaults to DNS subdomain. */
export type KindDefinition = Omit<ResourceKind, 'strategy'> & {
  readonly strategy?: ResourceKind['strategy'];
  readonly nameRule?: NameRule;
};

export function defineKind({ nameRule = dns1123Subdomain, strategy = {}, ...row }: KindDefinition): ResourceKind {
  return {
    ...row,
    strategy: {
      ...strategy,
      validateCreate: (object) => [
        ...validateObjectMeta(object.metadata, row.namespaced, nameRule),
        ...(strategy.validateCreate?.(object) ?? []),
      ],
      validateUpdate: (object, old) => [
        ...validateObjectMetaUpdate(object, old),
        ...validateObjectMeta(object.metadata, row.namespaced, nameRule),
        ...(strategy.validateUpdate?.(object, old) ?? []),
      ],
      validateStatusUpdate: (object, old) => [
        ...validateObjectMetaUpdate(object, old),
        ...(strategy.validateStatusUpdate?.(object, old) ?? []),
      ],
    },
  };
}

export function validateObjectMeta(meta: KubeObjectMeta, namespaced: boolean, nameRule: NameRule): FieldError[] {
  const errors: FieldError[] = [];
  const { name = '', generateName = '', namespace = '' } = meta;
  if (generateName !== '') {
    // Validated with a letter for the random part, since a trailing "-" is valid here.
    addErrors(errors, syntax('metadata.generateName', generateName, nameRule(generateName.replace(/-$/, 'a'))));
  }
  if (name === '') errors.push(required('metadata.name', 'name or generateName is required'));
  else addErrors(errors, syntax('metadata.name', name, nameRule(name)));
  if (namespaced) {
    if (namespace === '') errors.push(required('metadata.namespace'));
    else addErrors(errors, syntax('metadata.namespace', namespace, dns1123Label(namespace)));
  } else if (namespace !== '') {
    errors.push(forbidden('metadata.namespace', 'not allowed on this type'));
  }
  addErrors(errors, nonNegative('metadata.generation', meta.generation));
  addErrors(errors, validateLabels('metadata.labels', meta.labels));
  addErrors(errors, validateAnnotations('metadata.annotations', meta.annotations));
  addErrors(errors, validateOwners(meta.ownerReferences ?? []));
  addErrors(errors, validateFinalizers(meta.finalizers ?? []));
  return errors;
}

export function validateLabels(field: string, labels: Readonly<Record<string, unknown>> | undefined): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    addErrors(errors, syntax(field, key, qualifiedName(key)));
    addErrors(errors, syntax(field, value, labelValue(String(value))));
  }
  return errors;
}

export function validateAnnotations(field: string, annotations: Readonly<Record<string, string>> = {}): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    addErrors(errors, syntax(field, key, qualifiedName(key.toLowerCase())));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) {
    errors.push({
      type: 'FieldValueTooLong',
      field,
      detail: `Too long: may not be more than ${MAX_ANNOTATIONS_BYTES} bytes`,
    });
  }
  return errors;
}

function validateOwners(owners: readonly Record<string, unknown>[]): FieldError[] {
  const errors: FieldError[] = [];
  let controllers = 0;
  for (const [index, owner] of owners.entries()) {
    const field = `metadata.ownerReferences[${index}]`;
    if (!owner['apiVersion'])
      errors.push(invalid(`${field}.apiVersion`, owner['apiVersion'], 'version must not be empty'));
    for (const part of ['kind', 'name', 'uid']) {
      if (!getOwn(owner, part))
        errors.push(invalid(`${field}.${part}`, getOwn(owner, part) ?? '', `${part} must not be empty`));
    }
    if (owner['controller'] === true) controllers++;
  }
  if (controllers > 1) {
    errors.push(invalid('metadata.ownerReferences', owners, 'Only one reference can have Controller set to true.'));
  }
  return errors;
}

function validateFinalizers(finalizers: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const finalizer of finalizers) {
    addErrors(errors, syntax('metadata.finalizers', finalizer, qualifiedName(finalizer)));
    if (!finalizer.includes('/') && !['orphan', 'foregroundDeletion', 'kubernetes'].includes(finalizer)) {
      errors.push(
        invalid(
          'metadata.finalizers',
          finalizer,
          'name is neither a standard finalizer name nor is it fully qualified',
        ),
      );
    }
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(
      invalid('metadata.finalizers', finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'),
    );
  }
  return errors;
}

export function validateObjectMetaUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp'] as const) {
    if ((object.metadata[field] ?? '') !== (old.metadata[field] ?? '')) {
      errors.push(invalid(`metadata.${field}`, object.metadata[field], IMMUTABLE));
    }
  }
  if (old.metadata.deletionTimestamp !== undefined) {
    const before = old.metadata.finalizers ?? [];
    const added = (object.metadata.finalizers ?? []).filter((finalizer) => !before.includes(finalizer));
    if (added.length > 0) {
      errors.push(
        forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(', ')}}`,
        ),
      );
    }
  }
  return errors;
}

/** Reports each value that an earlier element has too. */
export function duplicates<T>(
  items: readonly T[],
  field: (index: number) => string,
  key: (item: T) => unknown,
): FieldError[] {
  const seen = new Set<unknown>();
  return items.flatMap((item, index) => {
    const value = key(item);
    if (value === undefined || value === '') return [];
    if (seen.has(value)) return [duplicate(field(index), value)];
    seen.add(value);
    return [];
  });
}
