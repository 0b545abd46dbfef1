// What holds for the metadata of every kind: names, labels, annotations, finalizers, owners, and what an update may not
// change. `defineKind` puts these rules in front of a kind's own.

import { getOwn } from '../../lib/own-property.ts';
import { addErrors, duplicate, forbidden, IMMUTABLE, invalid, nonNegative, required, syntax } from './field-errors.ts';
import { dns1123Label, dns1123Subdomain, labelValue, type NameRule, pathSegment, qualifiedName } from './names.ts';
import type { FieldError, KubeObject, KubeObjectMeta, ResourceKind } from './resource.ts';

const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/**
 * Part of the rules of an update: those of a new object's metadata ("rules") and those of a change of it ("update"), those
 * of the kind for a new object ("create") and for a change ("own").
 */
type UpdatePart = 'rules' | 'update' | 'create' | 'own';

/** A row before the metadata rules are put in front; `nameRule` defaults to DNS subdomain. */
export type KindDefinition = Omit<ResourceKind, 'strategy'> & {
  readonly strategy?: ResourceKind['strategy'];
  readonly nameRule?: NameRule;
  /**
   * The rules of an update after those that every kind has, in upstream's order, where they may come twice. "own" comes
   * last where it is not named. Default: "update", "own".
   */
  readonly updateMeta?: readonly UpdatePart[];
  /** The same for its status. Default: "update". */
  readonly statusMeta?: readonly UpdatePart[];
  /** The same for updates through other subresources. Default: "update". */
  readonly subresourceMeta?: readonly UpdatePart[];
  /** Whether a finalizer without a domain has to be one of Kubernetes' own: not where the rules are those of extensions. Default: true. */
  readonly standardFinalizers?: boolean;
};

/** Rules of metadata, as upstream: those of every kind, then the kind's own, whose errors may be the same once more. */
export function defineKind({
  nameRule = dns1123Subdomain,
  strategy = {},
  updateMeta = ['update'],
  statusMeta = ['update'],
  subresourceMeta = ['update'],
  standardFinalizers = true,
  ...row
}: KindDefinition): ResourceKind {
  const updateRules = (parts: readonly UpdatePart[], own: ResourceKind['strategy']['validateUpdate']) => {
    const ordered: readonly UpdatePart[] = parts.includes('own') ? parts : [...parts, 'own'];
    return (object: KubeObject, old: KubeObject): FieldError[] => {
      const errors = commonUpdateRules(object, old, row.namespaced);
      const rules: Readonly<Record<UpdatePart, () => readonly FieldError[]>> = {
        update: () => validateObjectMetaUpdate(object, old, standardFinalizers),
        rules: () => validateObjectMeta(object.metadata, row.namespaced, nameRule, standardFinalizers),
        create: () => strategy.validateCreate?.(object) ?? [],
        own: () => own?.(object, old) ?? [],
      };
      for (const part of ordered) addErrors(errors, rules[part]());
      return errors;
    };
  };
  const subresources = Object.entries(strategy.validateSubresource ?? {}).map(([name, own]) => [
    name,
    updateRules(subresourceMeta, own),
  ]);
  return {
    ...row,
    strategy: {
      ...strategy,
      validateCreate: (object) => [
        ...validateObjectMeta(object.metadata, row.namespaced, nameRule, standardFinalizers),
        ...(strategy.validateCreate?.(object) ?? []),
      ],
      validateUpdate: updateRules(updateMeta, strategy.validateUpdate),
      validateStatusUpdate: updateRules(statusMeta, strategy.validateStatusUpdate),
      ...(subresources.length === 0 ? {} : { validateSubresource: Object.fromEntries(subresources) }),
    },
  };
}

/** What an update of any kind has to fulfil, before the rules of its kind. */
export function commonUpdateRules(object: KubeObject, old: KubeObject, namespaced: boolean): FieldError[] {
  return [
    ...validateObjectMeta(object.metadata, namespaced, pathSegment, false),
    ...validateObjectMetaUpdate(object, old, false),
  ];
}

export function validateObjectMeta(
  meta: KubeObjectMeta,
  namespaced: boolean,
  nameRule: NameRule,
  standardFinalizers = true,
): FieldError[] {
  const errors: FieldError[] = [];
  const { name = '', generateName = '', namespace = '' } = meta;
  if (generateName !== '') {
    // Validated with a letter for the random part, since a trailing "-" is valid here.
    const masked =
      generateName.length > 1 && generateName.endsWith('-') ? `${generateName.slice(0, -2)}a` : generateName;
    addErrors(errors, syntax('metadata.generateName', generateName, nameRule(masked)));
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
  addErrors(errors, validateDescription(meta));
  addErrors(errors, validateFinalizers(meta.finalizers ?? []));
  if (standardFinalizers) addErrors(errors, validateStandardFinalizers(meta.finalizers ?? []));
  return errors;
}

function validateDescription(meta: KubeObjectMeta): FieldError[] {
  return [
    ...validateLabels('metadata.labels', meta.labels),
    ...validateAnnotations('metadata.annotations', meta.annotations),
    ...validateOwners(meta.ownerReferences ?? []),
  ];
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
  const field = 'metadata.ownerReferences';
  const errors: FieldError[] = [];
  let controller = '';
  for (const owner of owners) {
    const apiVersion = textOf(owner, 'apiVersion');
    if (apiVersion.slice(apiVersion.indexOf('/') + 1) === '' || apiVersion.split('/').length > 2) {
      errors.push(invalid(`${field}.apiVersion`, apiVersion, 'version must not be empty'));
    }
    for (const part of ['kind', 'name', 'uid']) {
      if (textOf(owner, part) === '') errors.push(invalid(`${field}.${part}`, '', 'must not be empty'));
    }
    if (apiVersion === 'v1' && owner['kind'] === 'Event') {
      errors.push(invalid(field, owner, '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (owner['controller'] !== true) continue;
    const current = `${textOf(owner, 'kind')}/${textOf(owner, 'name')}`;
    if (controller === '') controller = current;
    else {
      errors.push(
        invalid(
          field,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`,
        ),
      );
    }
  }
  return errors;
}

function textOf(owner: Readonly<Record<string, unknown>>, part: string): string {
  const value = getOwn(owner, part);
  return typeof value === 'string' ? value : '';
}

function validateFinalizers(finalizers: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const finalizer of finalizers) {
    addErrors(errors, syntax('metadata.finalizers', finalizer, qualifiedName(finalizer)));
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(
      invalid('metadata.finalizers', finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'),
    );
  }
  return errors;
}

export const STANDARD_FINALIZERS: readonly string[] = ['orphan', 'foregroundDeletion', 'kubernetes'];

function validateStandardFinalizers(finalizers: readonly string[]): FieldError[] {
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes('/') || STANDARD_FINALIZERS.includes(finalizer)
      ? []
      : [
          invalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            'name is neither a standard finalizer name nor is it fully qualified',
          ),
        ],
  );
}

export function validateObjectMetaUpdate(object: KubeObject, old: KubeObject, standardFinalizers = true): FieldError[] {
  const errors: FieldError[] = [];
  const finalizers = object.metadata.finalizers ?? [];
  if (old.metadata.deletionTimestamp !== undefined) {
    const before = old.metadata.finalizers ?? [];
    const added = [...new Set(finalizers.filter((finalizer) => !before.includes(finalizer)))].sort();
    if (added.length > 0) {
      errors.push(
        forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(', ')}}`,
        ),
      );
    }
  }
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp'] as const) {
    if ((object.metadata[field] ?? '') !== (old.metadata[field] ?? '')) {
      errors.push(invalid(`metadata.${field}`, object.metadata[field], IMMUTABLE));
    }
  }
  addErrors(errors, validateDescription(object.metadata));
  if (standardFinalizers) addErrors(errors, validateStandardFinalizers(finalizers));
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
