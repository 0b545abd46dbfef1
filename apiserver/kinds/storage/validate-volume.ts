// Rules for a PersistentVolume's spec: exactly one source, sound capacity and modes, and what of it may never change.

import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import {
  addErrors,
  forbidden,
  IMMUTABLE,
  invalid,
  notSupported,
  optionalOneOf,
  required,
  syntax,
} from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain, noBacksteps } from '../names.ts';
import { validateNodeSelector } from '../pods/validate-scheduling.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { validateAccessModes, validateClassName, validateDriverName, validateVolumeMode } from './shared.ts';
import { STORAGE_SOURCES } from './sources.ts';

export type VolumeSpec = Loose<PersistentVolumeSpec>;

const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];
const SOURCES = ([...STORAGE_SOURCES, 'azureFile', 'csi', 'glusterfs', 'local'] as const).toSorted();

/** `inline` is a spec inside a VolumeAttachment: it has a source and access modes, and no claim or policy. */
export function validateVolumeSpec(field: string, spec: VolumeSpec, { inline = false } = {}): FieldError[] {
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
    validateSource(field, spec),
    validateClassName(`${field}.storageClassName`, spec.storageClassName),
    validateVolumeMode(`${field}.volumeMode`, spec.volumeMode),
  );
  if (spec.hostPath?.path === '/' && spec.persistentVolumeReclaimPolicy === 'Recycle') {
    errors.push(
      forbidden(`${field}.persistentVolumeReclaimPolicy`, "may not be 'recycle' for a hostPath mount of '/'"),
    );
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
  if (nodeAffinity === undefined) {
    return spec.local === undefined ? [] : [required(`${field}.nodeAffinity`, 'Local volume requires node affinity')];
  }
  if (nodeAffinity.required === undefined) {
    return [required(`${field}.nodeAffinity.required`, 'must specify required node constraints')];
  }
  return validateNodeSelector(`${field}.nodeAffinity.required`, nodeAffinity.required);
}

function validateSource(field: string, spec: VolumeSpec): FieldError[] {
  const sources = SOURCES.filter((source) => spec[source] !== undefined);
  if (sources.length === 0) return [required(field, 'must specify a volume type')];
  const errors = sources
    .slice(1)
    .map((source) => forbidden(`${field}.${source}`, 'may not specify more than 1 volume type'));
  if (spec.hostPath !== undefined) {
    const path = spec.hostPath.path ?? '';
    addErrors(
      errors,
      path === '' ? [required(`${field}.hostPath.path`)] : syntax(`${field}.hostPath.path`, path, noBacksteps(path)),
    );
  }
  if (spec.local !== undefined) {
    const path = spec.local.path ?? '';
    addErrors(
      errors,
      path === '' ? [required(`${field}.local.path`)] : syntax(`${field}.local.path`, path, noBacksteps(path)),
    );
  }
  if (spec.nfs !== undefined) {
    const { server = '', path = '' } = spec.nfs;
    if (server === '') errors.push(required(`${field}.nfs.server`));
    if (path === '') errors.push(required(`${field}.nfs.path`));
    else if (!path.startsWith('/')) errors.push(invalid(`${field}.nfs.path`, path, 'must be an absolute path'));
  }
  if (spec.csi !== undefined) addErrors(errors, validateCsi(`${field}.csi`, spec.csi));
  return errors;
}

const SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const;

function validateCsi(field: string, csi: NonNullable<VolumeSpec['csi']>): FieldError[] {
  const errors = validateDriverName(`${field}.driver`, csi.driver);
  if ((csi.volumeHandle ?? '') === '') errors.push(required(`${field}.volumeHandle`));
  for (const secret of [...SECRETS, 'nodeStageSecretRef'] as const) {
    const reference = csi[secret];
    if (reference === undefined) continue;
    const { name = '', namespace = '' } = reference;
    const at = `${field}.${secret}`;
    addErrors(errors, name === '' ? [required(`${at}.name`)] : syntax(`${at}.name`, name, dns1123Subdomain(name)));
    addErrors(
      errors,
      namespace === '' ? [required(`${at}.namespace`)] : syntax(`${at}.namespace`, namespace, dns1123Label(namespace)),
    );
  }
  return errors;
}

/** What of a volume stays as it was made; a secret that is missing may still be added. */
export function validateVolumeSpecUpdate(spec: VolumeSpec, old: VolumeSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (!sameJson(sourceOf(spec, old), sourceOf(old, old))) {
    errors.push(forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'));
  }
  if (spec.volumeMode !== old.volumeMode) errors.push(invalid('volumeMode', spec.volumeMode, IMMUTABLE));
  if (old.nodeAffinity !== undefined && !sameJson(spec.nodeAffinity, old.nodeAffinity)) {
    const why = 'field is immutable, except for updating from beta label to GA';
    errors.push(invalid('nodeAffinity', spec.nodeAffinity ?? null, why));
  }
  return errors;
}

function sourceOf(spec: VolumeSpec, old: VolumeSpec): object {
  const source = Object.fromEntries(SOURCES.map((name) => [name, spec[name]]));
  if (spec.csi === undefined) return source;
  const csi = { ...spec.csi };
  for (const secret of SECRETS) if (old.csi?.[secret] === undefined) delete csi[secret];
  return { ...source, csi };
}
