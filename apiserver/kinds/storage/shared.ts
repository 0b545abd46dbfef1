// What the storage kinds have in common: access modes, volume modes, the rules for a driver's name, and how a table
// shows them. Validates values; knows no object.

import { getOwn } from '../../../lib/own-property.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { forbidden, invalid, notSupported, optionalOneOf, required, syntax, tooMany } from '../field-errors.ts';
import { dns1123Subdomain, qualifiedName } from '../names.ts';
import type { FieldError, KubeObject, RequestContext } from '../resource.ts';

/** The annotation that preceded the field storageClassName; it takes precedence where it is set. */
export const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
export const VOLUME_MODES = ['Block', 'Filesystem'];
const MAX_DRIVER_NAME = 63;
const UNSET = '<unset>';

/** Access modes in the order in which tables show them, with their short names. */
const MODES: readonly (readonly [mode: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

export function shortModes(modes: readonly string[] | undefined): string {
  return MODES.filter(([mode]) => modes?.includes(mode))
    .map(([, short]) => short)
    .join(',');
}

export function orUnset(value: string | undefined): string {
  return value === undefined || value === '' ? UNSET : value;
}

export function validateAccessModes(
  field: string,
  modes: readonly string[] | undefined,
  whyRequired: string,
): FieldError[] {
  const known = MODES.map(([mode]) => mode);
  const accessModes = modes ?? [];
  if (accessModes.length === 0) return [required(field, whyRequired)];
  const errors = accessModes
    .filter((mode) => !known.includes(mode))
    .map((mode) => notSupported(field, mode, known.toSorted()));
  if (accessModes.includes('ReadWriteOncePod') && accessModes.length > 1) {
    errors.push(forbidden(field, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}

export function validateVolumeMode(field: string, mode: string | undefined): FieldError[] {
  return optionalOneOf(field, mode, VOLUME_MODES);
}

/** A class's name where one is given; "" means "no class" and is fine. */
export function validateClassName(field: string, name: string | undefined): FieldError[] {
  return name === undefined || name === '' ? [] : syntax(field, name, dns1123Subdomain(name));
}

/** The name of a CSI driver, by the CSI specification: at most 63 bytes, a DNS subdomain but for its case. */
export function validateDriverName(field: string, name: string | undefined): FieldError[] {
  if (name === undefined || name === '') return [required(field), ...syntax(field, '', dns1123Subdomain(''))];
  const errors = syntax(field, name, dns1123Subdomain(name.toLowerCase()));
  if (name.length > MAX_DRIVER_NAME) {
    errors.push({
      type: 'FieldValueTooLong',
      field,
      detail: `Too long: may not be more than ${MAX_DRIVER_NAME} bytes`,
    });
  }
  return errors;
}

const MAX_PARAMETERS = 512;
const MAX_PARAMETER_BYTES = 256 * 1024;

/** A StorageClass's parameters, an attachment's metadata: few, with keys, and not large. */
export function validateParameters(
  field: string,
  parameters: Readonly<Record<string, string | undefined>> | undefined,
): FieldError[] {
  const entries = Object.entries(parameters ?? {});
  if (entries.length > MAX_PARAMETERS) return [tooMany(field, entries.length, MAX_PARAMETERS)];
  const errors = entries.filter(([key]) => key === '').map(([key]) => invalid(field, key, 'field can not be empty.'));
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value ?? ''), 0);
  if (bytes > MAX_PARAMETER_BYTES) {
    errors.push({
      type: 'FieldValueTooLong',
      field,
      detail: `Too long: may not be more than ${MAX_PARAMETER_BYTES} bytes`,
    });
  }
  return errors;
}

export interface TopologyTerm {
  matchLabelExpressions?: { key?: string | undefined; values?: string[] | undefined }[] | undefined;
}

export function validateTopologies(field: string, terms: readonly TopologyTerm[] | undefined): FieldError[] {
  return (terms ?? []).flatMap((term, index) => {
    const keys = new Set<string>();
    return (term.matchLabelExpressions ?? []).flatMap((expression, place) => {
      const at = `${field}[${index}].matchLabelExpressions[${place}]`;
      const { key = '', values = [] } = expression;
      const errors = syntax(`${at}.key`, key, qualifiedName(key));
      if (values.length === 0) errors.push(required(`${at}.values`));
      const seen = new Set<string>();
      for (const [at2, value] of values.entries()) {
        if (seen.has(value)) errors.push(duplicateOf(`${at}.values[${at2}]`, value));
        seen.add(value);
      }
      if (keys.has(key)) errors.push(duplicateOf(`${at}.key`, key));
      keys.add(key);
      return errors;
    });
  });
}

function duplicateOf(field: string, value: string): FieldError {
  return { type: 'FieldValueDuplicate', field, detail: `Duplicate value: ${JSON.stringify(value)}` };
}

/** Adds a finalizer, in place, unless it is there. */
export function addFinalizer(object: KubeObject, finalizer: string): void {
  const finalizers = object.metadata.finalizers ?? [];
  if (!finalizers.includes(finalizer)) object.metadata.finalizers = [...finalizers, finalizer];
}

const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

export function isDefaultClass(object: KubeObject): boolean {
  return DEFAULT_CLASS.some((annotation) => getOwn(object.metadata.annotations, annotation) === 'true');
}

/** The default class: of several the newest, and of those the first by name, as the admission plugin chooses. */
export function defaultClass({ lookup }: Pick<RequestContext, 'lookup'>): string | undefined {
  const born = (object: KubeObject): number => parseRfc3339(object.metadata.creationTimestamp) ?? 0;
  return lookup
    .list('storage.k8s.io', 'storageclasses')
    .filter(isDefaultClass)
    .toSorted((a, b) => born(b) - born(a) || ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))[0]?.metadata
    .name;
}
