// PersistentVolumeClaims: the row, its defaults, the default class, the rules for growing one, and how kubectl get
// prints them.

import type { PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../lib/quantity.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, forbidden, IMMUTABLE, invalid, optionalOneOf } from '../field-errors.ts';
import { defineKind, validateObjectMeta, validateObjectMetaUpdate } from '../metadata.ts';
import { dns1123Subdomain } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { claimWarnings } from '../shared/claim-warnings.ts';
import { validateLabelSelector } from '../shared/selectors.ts';
import { type ClaimOptions, type ClaimSpec, validateClaimSpec } from './claim-spec.ts';
import { CLASS_ANNOTATION, orUnset, shortModes } from './shared.ts';

type Claim = Of<PersistentVolumeClaim>;

const of = (object: KubeObject): Claim => as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim');
const FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

/** The defaults of a claim's spec; those of a claim template inside a pod are the same. */
export function defaultClaimSpec(spec: ClaimSpec): void {
  spec.volumeMode ??= 'Filesystem';
}

/** A source of another kind than these is only named by the newer field. */
function isOlderSource({ apiGroup = '', kind }: NonNullable<ClaimSpec['dataSource']>): boolean {
  if (apiGroup === '') return kind === 'PersistentVolumeClaim';
  return apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot';
}

/** What a claim is copied from; sources in other namespaces are a feature that is off. */
function settleSources(spec: ClaimSpec, old?: ClaimSpec): void {
  if ((spec.dataSourceRef?.namespace ?? '') !== '' && (old?.dataSourceRef?.namespace ?? '') === '') {
    delete spec.dataSourceRef;
  }
  const isNew = old?.dataSource === undefined && old?.dataSourceRef === undefined;
  if (isNew && spec.dataSource !== undefined && !isOlderSource(spec.dataSource)) delete spec.dataSource;
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

/** What was stored before it was validated stays valid. */
function optionsOf(spec: ClaimSpec): ClaimOptions {
  return {
    anyGroup: spec.dataSource?.apiGroup !== undefined || spec.dataSourceRef?.apiGroup !== undefined,
    anyValue: spec.selector !== undefined && validateLabelSelector('', spec.selector).length > 0,
  };
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [claim, before] = [of(object), of(old)];
  const options = optionsOf(before.spec ?? {});
  const errors = validateClaimSpec('spec', claim.spec ?? {}, options);
  addErrors(errors, validateObjectMetaUpdate(object, old));
  addErrors(errors, validateObjectMeta(object.metadata, true, dns1123Subdomain));
  addErrors(errors, validateClaimSpec('spec', claim.spec ?? {}, options));
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
    errors.push(invalid('volumeMode', claim.spec?.volumeMode, IMMUTABLE));
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
  updateMeta: ['rules', 'own'],
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const { spec } = of(object);
      if (spec !== undefined) defaultClaimSpec(spec);
      const claim = of(object);
      claim.status ??= {};
      claim.status.phase ??= 'Pending';
    },
    prepareForCreate: (object) => {
      const claim = of(object);
      claim.status = { phase: 'Pending' };
      if (claim.spec !== undefined) settleSources(claim.spec);
    },
    prepareForUpdate: (object, old) => {
      const { spec } = of(object);
      of(object).status = of(old).status;
      if (spec !== undefined) settleSources(spec, of(old).spec ?? {});
    },
    warnings: (object) => [
      ...(object.metadata.annotations?.[CLASS_ANNOTATION] === undefined
        ? []
        : [
            `metadata.annotations[${CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead`,
          ]),
      ...claimWarnings('spec', of(object).spec ?? {}),
    ],
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
