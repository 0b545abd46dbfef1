// Rules for a PersistentVolume's spec: exactly one source, sound capacity and modes, and what of it may never change.

import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { parseQuantity } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, notSupported, optionalOneOf, required } from '../field-errors.ts';
import { validateNodeSelector } from '../pods/validate-scheduling.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { validateAccessModes, validateClassName, validateVolumeMode } from './shared.ts';
import { SECRETS, SOURCES, validateVolumeSource } from './validate-source.ts';

export type VolumeSpec = Loose<PersistentVolumeSpec>;

const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];
/** `inline` is a spec inside a VolumeAttachment: it has a source and access modes, and no claim or policy. */
export function validateVolumeSpec(field: string, spec: VolumeSpec, { inline = false, name = '' } = {}): FieldError[] {
  const errors: FieldError[] = [];
  if (inline) {
    for (const name of ['claimRef', 'persistentVolumeReclaimPolicy', 'storageClassName'] as const) {
      if ((spec[name] ?? '') !== '')
        errors.push(forbidden(`${field}.${name}`, 'must not be specified for inline volumes'));
    }
  }
  addErrors(errors, validateAccessModes(`${field}.accessModes`, spec.accessModes, ''));
  if (!inline) addErrors(errors, validateCapacity(`${field}.capacity`, spec.capacity));
  addErrors(
    errors,
    optionalOneOf(`${field}.persistentVolumeReclaimPolicy`, spec.persistentVolumeReclaimPolicy, RECLAIM_POLICIES),
    validateAffinity(field, spec),
    validateVolumeSource(field, spec, name),
    validateClassName(`${field}.storageClassName`, spec.storageClassName),
    validateVolumeMode(`${field}.volumeMode`, spec.volumeMode),
  );
  if (spec.hostPath?.path === '/' && spec.persistentVolumeReclaimPolicy === 'Recycle') {
    errors.push(
      forbidden(`${field}.persistentVolumeReclaimPolicy`, "may not be 'recycle' for a hostPath mount of '/'"),
    );
  }
  const { volumeAttributesClassName: attributes } = spec;
  if (attributes === undefined || inline) return errors;
  const at = `${field}.volumeAttributesClassName`;
  addErrors(
    errors,
    attributes === '' ? [required(at, 'an empty string is disallowed')] : validateClassName(at, attributes),
  );
  if (spec.csi === undefined) {
    errors.push(required(`${field}.csi`, 'has to be specified when using volumeAttributesClassName'));
  }
  return errors;
}

function validateCapacity(field: string, capacity: VolumeSpec['capacity']): FieldError[] {
  const entries = Object.entries(capacity ?? {});
  const errors: FieldError[] = entries.length === 0 ? [required(field)] : [];
  if (capacity?.['storage'] === undefined || entries.length > 1) {
    errors.push(notSupported(field, capacity ?? null, ['storage']));
  }
  for (const [name, quantity] of entries) {
    if ((parseQuantity(quantity ?? '0') ?? 0n) <= 0n) {
      errors.push(invalid(`${field}[${name}]`, quantity, 'must be greater than zero'));
    }
  }
  return errors;
}

function validateAffinity(field: string, spec: VolumeSpec): FieldError[] {
  const { nodeAffinity } = spec;
  if (nodeAffinity === undefined) return [];
  if (nodeAffinity.required === undefined) {
    return [required(`${field}.nodeAffinity.required`, 'must specify required node constraints')];
  }
  return validateNodeSelector(`${field}.nodeAffinity.required`, nodeAffinity.required);
}

/** What of a volume stays as it was made; a secret that is missing may still be added. */
export function validateVolumeSpecUpdate(spec: VolumeSpec, old: VolumeSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (!sameJson(sourceOf(spec, old), sourceOf(old, old))) {
    errors.push(forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'));
  }
  if (spec.volumeMode !== old.volumeMode) errors.push(invalid('volumeMode', spec.volumeMode, IMMUTABLE));
  if (old.nodeAffinity !== undefined && !sameJson(asBefore(spec.nodeAffinity, old.nodeAffinity), old.nodeAffinity)) {
    const why = 'field is immutable, except for updating from beta label to GA';
    errors.push(invalid('nodeAffinity', spec.nodeAffinity ?? null, why));
  }
  return errors;
}

/** Labels that may become those that took their places. */
const GA_LABELS: Readonly<Record<string, string>> = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
};

type Affinity = VolumeSpec['nodeAffinity'];

/** With the labels that `old` has, where those of `affinity` took their places. */
function asBefore(affinity: Affinity, old: Affinity): Affinity {
  const result = structuredClone(affinity);
  for (const [index, term] of (result?.required?.nodeSelectorTerms ?? []).entries()) {
    const before = old?.required?.nodeSelectorTerms?.[index]?.matchExpressions ?? [];
    for (const [place, requirement] of (term.matchExpressions ?? []).entries()) {
      const key = before[place]?.key ?? '';
      const renamed = getOwn(GA_LABELS, key);
      if (renamed !== undefined && renamed === requirement.key) requirement.key = key;
    }
  }
  return result;
}

function sourceOf(spec: VolumeSpec, old: VolumeSpec): object {
  const source = Object.fromEntries(SOURCES.map((name) => [name, spec[name]]));
  if (spec.csi === undefined) return source;
  const csi = { ...spec.csi };
  for (const secret of SECRETS) if (old.csi?.[secret] === undefined) delete csi[secret];
  return { ...source, csi };
}
