// PersistentVolumeClaims: the row, its defaults, the default class, the rules for growing one, and how kubectl get
// prints them.

import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, optionalOneOf, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Subdomain } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Loose, type Of } from '../shapes.ts';
import { validateLabelSelector } from '../shared/selectors.ts';
import {
  CLASS_ANNOTATION,
  orUnset,
  shortModes,
  validateAccessModes,
  validateClassName,
  validateVolumeMode,
} from './shared.ts';

export type ClaimSpec = Loose<PersistentVolumeClaimSpec>;
type Claim = Of<PersistentVolumeClaim>;
type DataSource = { apiGroup?: string | undefined; kind?: string | undefined; name?: string | undefined };

const of = (object: KubeObject): Claim => as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim');
const FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

/** The defaults of a claim's spec; those of a claim template inside a pod are the same. */
export function defaultClaimSpec(spec: ClaimSpec): void {
  spec.volumeMode ??= 'Filesystem';
  // The older field and the newer say the same, unless the newer reaches into another namespace.
  const { dataSource, dataSourceRef } = spec;
  if (dataSource !== undefined && dataSourceRef === undefined) spec.dataSourceRef = { ...dataSource };
  else if (dataSource === undefined && dataSourceRef !== undefined && (dataSourceRef.namespace ?? '') === '') {
    const { namespace: _, ...local } = dataSourceRef;
    spec.dataSource = local;
  }
}

/** The claim's class: '' is "none", undefined is "whatever the default is". */
function classNameOf(claim: Claim): string | undefined {
  return claim.metadata.annotations?.[CLASS_ANNOTATION] ?? claim.spec?.storageClassName;
}

function requested(claim: Claim): string {
  return claim.spec?.resources?.requests?.['storage'] ?? '0';
}

/** `field` is the path of the spec: "spec", or in a pod's claim template. */
export function validateClaimSpec(field: string, spec: ClaimSpec): FieldError[] {
  const errors = validateAccessModes(`${field}.accessModes`, spec.accessModes, 'at least 1 access mode is required');
  if (spec.selector !== undefined) addErrors(errors, validateLabelSelector(`${field}.selector`, spec.selector));
  const size = spec.resources?.requests?.['storage'];
  if (size === undefined) errors.push(required(`${field}.resources[storage]`));
  else if ((parseQuantity(size) ?? 0n) <= 0n) {
    errors.push(invalid(`${field}.resources[storage]`, size, 'must be greater than zero'));
  }
  addErrors(
    errors,
    validateClassName(`${field}.storageClassName`, spec.storageClassName),
    validateVolumeMode(`${field}.volumeMode`, spec.volumeMode),
  );
  if (spec.dataSource !== undefined) addErrors(errors, validateDataSource(`${field}.dataSource`, spec.dataSource));
  if (spec.dataSourceRef !== undefined) {
    addErrors(errors, validateDataSource(`${field}.dataSourceRef`, spec.dataSourceRef));
    const { namespace = '', ...local } = spec.dataSourceRef;
    if (namespace !== '' && spec.dataSource !== undefined) {
      errors.push(
        invalid(field, `${field}.dataSource`, 'may not be specified when dataSourceRef.namespace is specified'),
      );
    } else if (namespace === '' && !sameJson(local, spec.dataSource)) {
      errors.push(invalid(field, `${field}.dataSource`, 'must match dataSourceRef'));
    }
  }
  const attributes = spec.volumeAttributesClassName ?? '';
  if (attributes !== '') {
    addErrors(errors, syntax(`${field}.volumeAttributesClassName`, attributes, dns1123Subdomain(attributes)));
  }
  return errors;
}

function validateDataSource(field: string, { apiGroup = '', kind = '', name = '' }: DataSource): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${field}.name`));
  if (kind === '') errors.push(required(`${field}.kind`));
  if (apiGroup === '' && kind !== 'PersistentVolumeClaim') {
    errors.push(invalid(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  } else if (apiGroup !== '') addErrors(errors, syntax(`${field}.apiGroup`, apiGroup, dns1123Subdomain(apiGroup)));
  return errors;
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [claim, before] = [of(object), of(old)];
  const errors = validateClaimSpec('spec', claim.spec ?? {});
  const [now, was] = [structuredClone(claim.spec ?? {}), structuredClone(before.spec ?? {})];
  // Binding, and the class that came after the claim.
  if ((was.volumeName ?? '') === '') now.volumeName = was.volumeName;
  if (classNameOf(before) === undefined && (now.storageClassName ?? '') !== '')
    now.storageClassName = was.storageClassName;
  // Both spellings of "copy from": an older client drops the one that it does not know.
  if (was.dataSource !== undefined) now.dataSource ??= was.dataSource;
  if (was.dataSourceRef !== undefined) now.dataSourceRef ??= was.dataSourceRef;
  if (before.status?.phase === 'Bound') {
    if (now.resources !== undefined && was.resources?.requests !== undefined) {
      now.resources = { ...now.resources, requests: { ...now.resources.requests, storage: requested(before) } };
    }
    now.volumeAttributesClassName = was.volumeAttributesClassName;
  }
  if (!sameJson(now, was)) errors.push(forbidden('spec', FIXED));
  const [size, wasSize] = [parseQuantity(requested(claim)) ?? 0n, parseQuantity(requested(before)) ?? 0n];
  const capacity = parseQuantity(before.status?.capacity?.['storage'] ?? '0') ?? 0n;
  if (size < wasSize && size <= capacity) {
    errors.push(forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  }
  if (claim.spec?.volumeMode !== before.spec?.volumeMode) {
    errors.push(invalid('spec.volumeMode', claim.spec?.volumeMode, IMMUTABLE));
  }
  const [annotation, wasAnnotation] = [claim, before].map((one) => one.metadata.annotations?.[CLASS_ANNOTATION] ?? '');
  if (annotation !== wasAnnotation && !(wasAnnotation !== '' && claim.spec?.storageClassName === wasAnnotation)) {
    errors.push(invalid(`metadata.annotations[${CLASS_ANNOTATION}]`, annotation, IMMUTABLE));
  }
  return errors;
}

function validateStatus(object: KubeObject): FieldError[] {
  const status = of(object).status ?? {};
  const errors = optionalOneOf('status.phase', status.phase, ['Bound', 'Lost', 'Pending']);
  for (const list of ['capacity', 'allocatedResources'] as const) {
    for (const [name, quantity] of Object.entries(status[list] ?? {})) {
      if ((parseQuantity(quantity ?? '0') ?? 0n) < 0n) {
        errors.push(invalid(`status.${list}[${name}]`, quantity, 'must be greater than or equal to 0'));
      }
    }
  }
  return errors;
}

export const persistentvolumeclaims = defineKind({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.core.v1.PersistentVolumeClaim',
  strategy: {
    applyDefaults: (object) => {
      const { spec } = of(object);
      if (spec !== undefined) defaultClaimSpec(spec);
    },
    prepareForCreate: (object) => {
      of(object).status = { phase: 'Pending' };
    },
    validateCreate: (object) => validateClaimSpec('spec', of(object).spec ?? {}),
    validateUpdate,
    validateStatusUpdate: validateStatus,
    selectableFields: { name: (object) => object.metadata.name ?? '' },
    table: namedTable(
      [
        text('Status', 'Whether the claim is pending, bound, or has lost its volume.'),
        text('Volume', 'The volume that the claim is bound to.'),
        text('Capacity', 'The storage of that volume.'),
        text('Access Modes', 'The ways in which that volume can be mounted.'),
        text('StorageClass', 'The class that the claim asks for.'),
        text('VolumeAttributesClass', 'The VolumeAttributesClass that the claim asks for.'),
      ],
      (object) => {
        const claim = of(object);
        const { metadata, spec = {}, status = {} } = claim;
        const bound = (spec.volumeName ?? '') !== '';
        return [
          metadata.deletionTimestamp === undefined ? (status.phase ?? '') : 'Terminating',
          spec.volumeName ?? '',
          bound ? (status.capacity?.['storage'] ?? '0') : '',
          bound ? shortModes(status.accessModes) : '',
          classNameOf(claim) ?? '',
          orUnset(spec.volumeAttributesClassName),
        ];
      },
      {
        columns: [text('VolumeMode', 'Whether the volume is a filesystem or a block device.', 1)],
        cells: (object) => [orUnset(of(object).spec?.volumeMode)],
      },
    ),
  },
});
