// What a claim asks for: defaults and rules, in a PersistentVolumeClaim and in the templates of pods and StatefulSets.

import type { PersistentVolumeClaimSpec } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, forbidden, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { validateAnnotations, validateLabels } from '../metadata.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { type SelectorOptions, validateLabelSelector } from '../shared/selectors.ts';
import { VOLUME_MODES, validateAccessModes, validateClassName } from './shared.ts';

export type ClaimSpec = Loose<PersistentVolumeClaimSpec>;

interface DataSource {
  apiGroup?: string | undefined;
  kind?: string | undefined;
  name?: string | undefined;
  namespace?: string | undefined;
}

interface ClaimTemplate {
  metadata?:
    | {
        labels?: { [key: string]: string | undefined } | undefined;
        annotations?: { [key: string]: string | undefined } | undefined;
      }
    | undefined;
  spec?: ClaimSpec | undefined;
}

export function validateClaimTemplate(field: string, { metadata = {}, spec = {} }: ClaimTemplate): FieldError[] {
  const annotations = Object.entries(metadata.annotations ?? {}).map(([key, value]) => [key, value ?? '']);
  return [
    ...validateAnnotations(`${field}.metadata.annotations`, Object.fromEntries(annotations)),
    ...validateLabels(`${field}.metadata.labels`, metadata.labels),
    ...Object.keys(metadata)
      .filter((name) => name !== 'annotations' && name !== 'labels')
      .map((name) => forbidden(`${field}.metadata.${name}`, 'cannot be set')),
    ...validateClaimSpec(`${field}.spec`, spec),
  ];
}

export interface ClaimOptions extends SelectorOptions {
  /** For sources stored before their API groups were validated. */
  readonly anyGroup?: boolean;
}

/** `field` is the path of the spec: "spec", or in a claim template. */
export function validateClaimSpec(field: string, spec: ClaimSpec, options: ClaimOptions = {}): FieldError[] {
  const errors: FieldError[] = [];
  const modes = spec.accessModes ?? [];
  if (modes.length === 0) errors.push(required(`${field}.accessModes`, 'at least 1 access mode is required'));
  if (spec.selector !== undefined) {
    addErrors(errors, validateLabelSelector(`${field}.selector`, spec.selector, options));
  }
  if (modes.length > 0) addErrors(errors, validateAccessModes(`${field}.accessModes`, modes, ''));
  addErrors(errors, validateSize(`${field}.resources[storage]`, spec.resources?.requests?.['storage']));
  addErrors(errors, validateClassName(`${field}.storageClassName`, spec.storageClassName));
  if (spec.volumeMode !== undefined && !VOLUME_MODES.includes(spec.volumeMode)) {
    errors.push(notSupported(`${field}.volumeMode`, spec.volumeMode, VOLUME_MODES));
  }
  addErrors(errors, validateSources(field, spec, options));
  return errors.concat(validateClassName(`${field}.volumeAttributesClassName`, spec.volumeAttributesClassName));
}

function validateSize(field: string, size: string | undefined): FieldError[] {
  if (size === undefined) return [required(field)];
  return (parseQuantity(size) ?? 0n) <= 0n ? [invalid(field, size, 'must be greater than zero')] : [];
}

function validateSources(field: string, spec: ClaimSpec, options: ClaimOptions): FieldError[] {
  const errors: FieldError[] = [];
  const { dataSource: source, dataSourceRef: reference } = spec;
  if (source !== undefined) addErrors(errors, validateDataSource(`${field}.dataSource`, source, options));
  if (reference === undefined) return errors;
  const { namespace = '' } = reference;
  addErrors(errors, validateDataSource(`${field}.dataSourceRef`, reference, options));
  if (namespace !== '') {
    addErrors(errors, syntax(`${field}.dataSourceRef.namespace`, namespace, dns1123Label(namespace)));
  }
  if (source === undefined) return errors;
  // Upstream shows the path of the other field as the value.
  const at = `${field}.dataSource`;
  if (namespace !== '') {
    errors.push(invalid(field, at, 'may not be specified when dataSourceRef.namespace is specified'));
  } else if (!isSame(source, reference)) errors.push(invalid(field, at, 'must match dataSourceRef'));
  return errors;
}

function isSame(a: DataSource, b: DataSource): boolean {
  return a.apiGroup === b.apiGroup && a.kind === b.kind && a.name === b.name;
}

function validateDataSource(
  field: string,
  { apiGroup = '', kind = '', name = '' }: DataSource,
  { anyGroup = false }: ClaimOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${field}.name`));
  if (kind === '') errors.push(required(`${field}.kind`));
  if (apiGroup === '' && kind !== 'PersistentVolumeClaim') {
    errors.push(invalid(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (apiGroup !== '' && !anyGroup)
    addErrors(errors, syntax(`${field}.apiGroup`, apiGroup, dns1123Subdomain(apiGroup)));
  return errors;
}
