// Rules for what a PersistentVolume is stored on: exactly one source, and what it needs to be found.

import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import { addErrors, forbidden, invalid, required, syntax } from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import * as sources from '../shared/volume-sources.ts';
import { validateDriverName } from './shared.ts';

type VolumeSpec = Loose<PersistentVolumeSpec>;

type Rules = {
  readonly [Name in (typeof SOURCES)[number]]: (
    field: string,
    source: NonNullable<VolumeSpec[Name]>,
    volumeName: string,
  ) => FieldError[];
};

/** In upstream's order: each after the first is one too many. */
export const SOURCES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
] as const;

/** Secrets that are checked; nodeStageSecretRef is not. */
export const SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const;

function validateCsi(field: string, csi: NonNullable<VolumeSpec['csi']>): FieldError[] {
  const errors = validateDriverName(`${field}.driver`, csi.driver);
  if ((csi.volumeHandle ?? '') === '') errors.push(required(`${field}.volumeHandle`));
  for (const secret of SECRETS) {
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

function validateGlusterfs(field: string, source: NonNullable<VolumeSpec['glusterfs']>): FieldError[] {
  const errors = sources.requireTexts(field, source, ['endpoints', 'path']);
  const { endpointsNamespace: namespace } = source;
  if (namespace === undefined) return errors;
  const at = `${field}.endpointsNamespace`;
  const why = 'if the endpointnamespace is set, it must be a valid namespace name';
  return errors.concat(
    namespace === '' ? [invalid(at, namespace, why)] : syntax(at, namespace, dns1123Label(namespace)),
  );
}

const RULES: Rules = {
  hostPath: sources.validateHostPath,
  gcePersistentDisk: (field, source) => {
    const at = field.replace(/gcePersistentDisk$/, 'persistentDisk');
    return [...sources.requireTexts(at, source, ['pdName']), ...sources.validatePartition(at, source.partition)];
  },
  awsElasticBlockStore: (field, source) => [
    ...sources.requireTexts(field, source, ['volumeID']),
    ...sources.validatePartition(field, source.partition),
  ],
  glusterfs: validateGlusterfs,
  flocker: sources.validateFlocker,
  nfs: sources.validateNfs,
  rbd: sources.validateRbd,
  quobyte: sources.validateQuobyte,
  cephfs: sources.validateMonitors,
  iscsi: (field, source, name) => sources.validateIscsi(field, source, name),
  cinder: (field, source) => sources.validateCinder(field, source, true),
  fc: sources.validateFc,
  flexVolume: sources.validateFlex,
  azureFile: (field, source) => [
    ...sources.requireTexts(field, source, ['secretName', 'shareName']),
    ...(source.secretNamespace === '' ? [required(`${field}.secretNamespace`)] : []),
  ],
  vsphereVolume: (field, source) => sources.requireTexts(field, source, ['volumePath']),
  photonPersistentDisk: (field, source) => sources.requireTexts(field, source, ['pdID']),
  portworxVolume: (field, source) => sources.requireTexts(field, source, ['volumeID']),
  azureDisk: sources.validateAzureDisk,
  scaleIO: (field, source) => sources.requireTexts(field, source, ['gateway', 'system', 'volumeName']),
  local: sources.validateLocal,
  storageos: (field, source) => sources.validateStorageOs(field, source, true),
  csi: validateCsi,
};

function validateOne<Name extends (typeof SOURCES)[number]>(
  field: string,
  name: Name,
  spec: VolumeSpec,
  volumeName: string,
): FieldError[] {
  const source = spec[name];
  return source === undefined ? [] : RULES[name](`${field}.${name}`, source, volumeName);
}

/** `field`: of the volume's spec. */
export function validateVolumeSource(field: string, spec: VolumeSpec, volumeName: string): FieldError[] {
  const [first, ...more] = SOURCES.filter((source) => spec[source] !== undefined);
  if (first === undefined) return [required(field, 'must specify a volume type')];
  const errors = validateOne(field, first, spec, volumeName);
  for (const name of more) {
    if (name === 'flexVolume') addErrors(errors, validateOne(field, name, spec, volumeName));
    else {
      const shown = name === 'cephfs' ? 'cephFS' : name;
      errors.push(forbidden(`${field}.${shown}`, 'may not specify more than 1 volume type'));
    }
  }
  if (spec.local !== undefined && first === 'local' && spec.nodeAffinity === undefined) {
    errors.push(required(`${field}.nodeAffinity`, 'Local volume requires node affinity'));
  }
  return errors;
}
