// PersistentVolumes: the row, its defaults and rules, and how kubectl get prints them.

import type { PersistentVolume } from 'kubernetes-types/core/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { namedTable, text } from '../columns.ts';
import { optionalOneOf } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as } from '../shapes.ts';
import { termWarnings } from '../shared/node-label-warnings.ts';
import { CLASS_ANNOTATION, orUnset, shortModes } from './shared.ts';
import { validateVolumeSpec, validateVolumeSpecUpdate } from './validate-volume.ts';

const of = (object: KubeObject) => as<PersistentVolume>(object, 'PersistentVolume');
const PHASES = ['Available', 'Bound', 'Failed', 'Pending', 'Released'];

function validateStatus(object: KubeObject): FieldError[] {
  return optionalOneOf('status.phase', of(object).status?.phase, PHASES);
}

const ANNOTATIONS: Readonly<Record<string, string>> = {
  [CLASS_ANNOTATION]: 'deprecated since v1.8; use "storageClassName" attribute instead',
  'volume.beta.kubernetes.io/mount-options': 'deprecated since v1.31; use "mountOptions" attribute instead',
};
const RECYCLE =
  'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.';
const SOURCES = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const;

function volumeWarnings(object: KubeObject): string[] {
  const { metadata, spec = {} } = of(object);
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return [
    ...Object.entries(ANNOTATIONS)
      .filter(([key]) => getOwn(metadata.annotations, key) !== undefined)
      .map(([key, message]) => `metadata.annotations[${key}]: ${message}`),
    ...(spec.persistentVolumeReclaimPolicy === 'Recycle' ? [`spec.persistentVolumeReclaimPolicy: ${RECYCLE}`] : []),
    ...terms.flatMap((term, index) => termWarnings(`spec.nodeAffinity.required.nodeSelectorTerms[${index}]`, term)),
    ...SOURCES.filter(([source]) => spec[source] !== undefined).map(([, name, message]) => `spec.${name}: ${message}`),
  ];
}

export const persistentvolumes = defineKind({
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  singular: 'persistentvolume',
  shortNames: ['pv'],
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.core.v1.PersistentVolume',
  updateMeta: ['rules', 'create', 'rules', 'create', 'own'],
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      const volume = of(object);
      volume.status ??= {};
      volume.status.phase ??= 'Pending';
      const { spec } = volume;
      if (spec === undefined) return;
      spec.persistentVolumeReclaimPolicy ??= 'Retain';
      spec.volumeMode ??= 'Filesystem';
      if (spec.hostPath !== undefined) spec.hostPath.type ??= '';
    },
    prepareForCreate: (object) => {
      const since = object.metadata.creationTimestamp;
      of(object).status = { phase: 'Pending', ...(since === undefined ? {} : { lastPhaseTransitionTime: since }) };
    },
    warnings: volumeWarnings,
    validateCreate: (object) => validateVolumeSpec('spec', of(object).spec ?? {}, { name: object.metadata.name ?? '' }),
    validateUpdate: (object, old) => validateVolumeSpecUpdate(of(object).spec ?? {}, of(old).spec ?? {}),
    validateStatusUpdate: validateStatus,
    selectableFields: { name: (object) => object.metadata.name ?? '' },
    table: namedTable(
      [
        text('Capacity', 'The storage of the volume.'),
        text('Access Modes', 'All ways the volume can be mounted.'),
        text('Reclaim Policy', 'What happens to the volume when it is released from its claim.'),
        text('Status', 'Whether the volume is available, bound to a claim, or released by a claim.'),
        text('Claim', 'The claim that the volume is bound to.'),
        text('StorageClass', 'The class that the volume belongs to.'),
        text('VolumeAttributesClass', 'The VolumeAttributesClass of the volume.'),
        text('Reason', 'Why the volume is in its state.'),
      ],
      (object) => {
        const { metadata, spec = {}, status = {} } = of(object);
        const claim = spec.claimRef;
        return [
          spec.capacity?.['storage'] ?? '0',
          shortModes(spec.accessModes),
          spec.persistentVolumeReclaimPolicy ?? '',
          metadata.deletionTimestamp === undefined ? (status.phase ?? '') : 'Terminating',
          claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`,
          metadata.annotations?.[CLASS_ANNOTATION] ?? spec.storageClassName ?? '',
          orUnset(spec.volumeAttributesClassName),
          status.reason ?? '',
        ];
      },
      {
        columns: [text('VolumeMode', 'Whether the volume is a filesystem or a block device.', 1)],
        cells: (object) => [orUnset(of(object).spec?.volumeMode)],
      },
    ),
  },
});
