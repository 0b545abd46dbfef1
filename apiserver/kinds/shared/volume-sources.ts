// Rules for the kinds of storage that pods and PersistentVolumes name by the same fields. Most of them only need what
// finds the storage.

import { addErrors, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { dns1123Label, localPath, noBacksteps } from '../names.ts';
import type { FieldError } from '../resource.ts';

type Text = string | undefined;

/** Fields that have to be there, in this order. */
export function requireTexts<T extends object>(
  field: string,
  source: T,
  names: readonly (keyof T & string)[],
): FieldError[] {
  const values = new Map<string, unknown>(Object.entries(source));
  return names.flatMap((name) => ((values.get(name) ?? '') === '' ? [required(`${field}.${name}`)] : []));
}

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

export function validateHostPath(field: string, { path = '', type }: { path?: Text; type?: Text }): FieldError[] {
  if (path === '') return [required(`${field}.path`)];
  const errors = syntax(`${field}.path`, path, noBacksteps(path));
  if (type !== undefined && !HOST_PATH_TYPES.includes(type)) {
    errors.push(notSupported(`${field}.type`, type, HOST_PATH_TYPES));
  }
  return errors;
}

export function validateLocal(field: string, { path = '' }: { path?: Text }): FieldError[] {
  return path === '' ? [required(`${field}.path`)] : syntax(`${field}.path`, path, noBacksteps(path));
}

export function validateGitRepo(
  field: string,
  { repository = '', directory = '' }: { repository?: Text; directory?: Text },
): FieldError[] {
  const errors = repository === '' ? [required(`${field}.repository`)] : [];
  return errors.concat(syntax(`${field}.directory`, directory, localPath(directory)));
}

export function validateNfs(field: string, source: { server?: Text; path?: Text }): FieldError[] {
  const errors = requireTexts(field, source, ['server', 'path']);
  const { path = '' } = source;
  if (!path.startsWith('/')) errors.push(invalid(`${field}.path`, path, 'must be an absolute path'));
  return errors;
}

const PARTITION = 'must be between 1 and 255, inclusive';

export function validatePartition(field: string, partition = 0): FieldError[] {
  return partition < 0 || partition > 255 ? [invalid(`${field}.partition`, partition, PARTITION)] : [];
}

const IQN = /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)$/;
const EUI = /^eui.[0-9a-zA-Z]{16}$/;
const NAA = /^naa.[0-9a-zA-Z]{32}$/;
/** Longer ones are refused unread: the pattern may start anywhere. */
const MAX_ISCSI_NAME = 1024;

interface Iscsi {
  targetPortal?: Text;
  iqn?: Text;
  lun?: number | undefined;
  chapAuthDiscovery?: boolean | undefined;
  chapAuthSession?: boolean | undefined;
  secretRef?: { name?: Text } | undefined;
  initiatorName?: Text;
}

function hasIscsiPrefix(name: string): boolean {
  return name.startsWith('iqn') || name.startsWith('eui') || name.startsWith('naa');
}

function isIscsiName(name: string): boolean {
  if (name.length > MAX_ISCSI_NAME) return false;
  if (name.startsWith('iqn')) return IQN.test(name);
  return name.startsWith('eui') ? EUI.test(name) : NAA.test(name);
}

const ISCSI_LENGTH =
  'Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.';

/** `volumeName`: of a PersistentVolume, whose secret has to be named. A pod's own rule is isTooLongForIscsi. */
export function validateIscsi(field: string, source: Iscsi, volumeName?: string): FieldError[] {
  const errors = requireTexts(field, source, ['targetPortal']);
  const { targetPortal = '', iqn = '', lun = 0, initiatorName: initiator } = source;
  if (volumeName !== undefined && isTooLongForIscsi(volumeName, source)) {
    errors.push(invalid(`${field}.targetportal`, targetPortal, ISCSI_LENGTH));
  }
  const badPrefix =
    volumeName === undefined ? 'must be valid format starting with iqn, eui, or naa' : 'must be valid format';
  if (iqn === '') errors.push(required(`${field}.iqn`));
  else if (!hasIscsiPrefix(iqn)) errors.push(invalid(`${field}.iqn`, iqn, badPrefix));
  else if (!isIscsiName(iqn)) errors.push(invalid(`${field}.iqn`, iqn, 'must be valid format'));
  addErrors(errors, validateLun(`${field}.lun`, lun));
  const usesChap = source.chapAuthDiscovery === true || source.chapAuthSession === true;
  if (usesChap && source.secretRef === undefined) errors.push(required(`${field}.secretRef`));
  if (volumeName !== undefined && source.secretRef !== undefined) {
    addErrors(errors, requireTexts(`${field}.secretRef`, source.secretRef, ['name']));
  }
  if (initiator === undefined) return errors;
  if (!hasIscsiPrefix(initiator)) errors.push(invalid(`${field}.initiatorname`, initiator, badPrefix));
  else if (!isIscsiName(initiator)) errors.push(invalid(`${field}.initiatorname`, initiator, 'must be valid format'));
  return errors;
}

export function isTooLongForIscsi(volumeName: string, { initiatorName, targetPortal = '' }: Iscsi): boolean {
  return initiatorName !== undefined && `${volumeName}:${targetPortal}`.length > 64;
}

export { ISCSI_LENGTH };

function validateLun(field: string, lun: number): FieldError[] {
  return lun < 0 || lun > 255 ? [invalid(field, lun, 'must be between 0 and 255, inclusive')] : [];
}

interface FibreChannel {
  targetWWNs?: readonly string[] | undefined;
  wwids?: readonly string[] | undefined;
  lun?: number | undefined;
}

export function validateFc(field: string, { targetWWNs = [], wwids = [], lun }: FibreChannel): FieldError[] {
  const errors: FieldError[] = [];
  if (targetWWNs.length === 0 && wwids.length === 0) {
    errors.push(required(`${field}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both'));
  }
  if (targetWWNs.length > 0 && wwids.length > 0) {
    errors.push(invalid(`${field}.targetWWNs`, targetWWNs, 'targetWWNs and wwids can not be specified simultaneously'));
  }
  if (targetWWNs.length === 0) return errors;
  return errors.concat(
    lun === undefined
      ? [required(`${field}.lun`, 'lun is required if targetWWNs is specified')]
      : validateLun(`${field}.lun`, lun),
  );
}

const HOST_PORTS = 'must be a host:port pair or multiple pairs separated by commas';

export function validateQuobyte(
  field: string,
  source: { registry?: Text; tenant?: Text; volume?: Text },
): FieldError[] {
  const { registry = '', tenant = '', volume = '' } = source;
  const errors: FieldError[] = [];
  if (registry === '') errors.push(required(`${field}.registry`, HOST_PORTS));
  else if (tenant.length >= 65) {
    errors.push(required(`${field}.tenant`, 'must be a UUID and may not exceed a length of 64 characters'));
  } else {
    for (const pair of registry.split(',')) {
      if (!/^(\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(pair))
        errors.push(invalid(`${field}.registry`, registry, HOST_PORTS));
    }
  }
  if (volume === '') errors.push(required(`${field}.volume`));
  return errors;
}

export function validateFlocker(field: string, source: { datasetName?: Text; datasetUUID?: Text }): FieldError[] {
  const { datasetName = '', datasetUUID = '' } = source;
  const errors: FieldError[] = [];
  if (datasetName === '' && datasetUUID === '') {
    errors.push(required(field, 'one of datasetName and datasetUUID is required'));
  }
  if (datasetName !== '' && datasetUUID !== '') {
    errors.push(invalid(field, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'));
  }
  if (datasetName.includes('/')) errors.push(invalid(`${field}.datasetName`, datasetName, "must not contain '/'"));
  return errors;
}

export function validateRbd(
  field: string,
  source: { monitors?: readonly string[] | undefined; image?: Text },
): FieldError[] {
  return [...validateMonitors(field, source), ...requireTexts(field, source, ['image'])];
}

export function validateMonitors(
  field: string,
  { monitors = [] }: { monitors?: readonly string[] | undefined },
): FieldError[] {
  return monitors.length === 0 ? [required(`${field}.monitors`)] : [];
}

type SecretRef = { name?: Text; namespace?: Text } | undefined;

/** A secret of a PersistentVolume is in some namespace. */
function validateSecretRef(field: string, reference: SecretRef, withNamespace: boolean): FieldError[] {
  return reference === undefined
    ? []
    : requireTexts(`${field}.secretRef`, reference, withNamespace ? ['name', 'namespace'] : ['name']);
}

export function validateCinder(
  field: string,
  source: { volumeID?: Text; secretRef?: SecretRef },
  withNamespace: boolean,
): FieldError[] {
  return [...requireTexts(field, source, ['volumeID']), ...validateSecretRef(field, source.secretRef, withNamespace)];
}

export function validateStorageOs(
  field: string,
  source: { volumeName?: Text; volumeNamespace?: Text; secretRef?: SecretRef },
  withNamespace: boolean,
): FieldError[] {
  const { volumeName = '', volumeNamespace = '' } = source;
  const errors =
    volumeName === ''
      ? [required(`${field}.volumeName`)]
      : syntax(`${field}.volumeName`, volumeName, dns1123Label(volumeName));
  if (volumeNamespace !== '') {
    addErrors(errors, syntax(`${field}.volumeNamespace`, volumeNamespace, dns1123Label(volumeNamespace)));
  }
  return errors.concat(validateSecretRef(field, source.secretRef, withNamespace));
}

export function validateFlex(
  field: string,
  source: { driver?: Text; options?: { readonly [name: string]: Text } | undefined },
): FieldError[] {
  const errors = requireTexts(field, source, ['driver']);
  for (const name of Object.keys(source.options ?? {})) {
    const namespace = `.${(name.includes('/') ? name.slice(0, name.indexOf('/')) : name).toLowerCase()}`;
    if (namespace.endsWith('.kubernetes.io') || namespace.endsWith('.k8s.io')) {
      errors.push(invalid(`${field}.options[${name}]`, name, 'kubernetes.io and k8s.io namespaces are reserved'));
    }
  }
  return errors;
}

const CACHING_MODES = ['None', 'ReadOnly', 'ReadWrite'];
const DISK_KINDS = ['Dedicated', 'Managed', 'Shared'];
const MANAGED_URI = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';
const BLOB_URI = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';

export function validateAzureDisk(
  field: string,
  source: { diskName?: Text; diskURI?: Text; cachingMode?: Text; kind?: Text },
): FieldError[] {
  const errors = requireTexts(field, source, ['diskName', 'diskURI']);
  const { diskURI = '', cachingMode, kind } = source;
  if (cachingMode !== undefined && !CACHING_MODES.includes(cachingMode)) {
    errors.push(notSupported(`${field}.cachingMode`, cachingMode, CACHING_MODES));
  }
  if (kind === undefined) return errors;
  if (!DISK_KINDS.includes(kind)) errors.push(notSupported(`${field}.kind`, kind, DISK_KINDS));
  const [prefix, form] = kind === 'Managed' ? ['/subscriptions/', MANAGED_URI] : ['https://', BLOB_URI];
  if (!diskURI.startsWith(prefix)) errors.push(notSupported(`${field}.diskURI`, diskURI, [form]));
  return errors;
}
