// Rules for a pod's volumes and for where containers mount them: exactly one source each, sound paths, no clashes.

import { parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, duplicate, forbidden, invalid, notFound, oneOf, required, syntax } from '../field-errors.ts';
import { configMapKey, dns1123Label, dns1123Subdomain, localPath, noBacksteps } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Volume } from '../shapes.ts';
import { validateClaimSpec } from '../storage/claims.ts';
import { validateDownwardSource } from './validate-env.ts';

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
const MODE_RANGE = 'must be a number between 0 and 0777 (octal), both inclusive';
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];

export function validateVolumes(field: string, volumes: readonly Volume[]): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, volume] of volumes.entries()) {
    const at = `${field}[${index}]`;
    const name = volume.name ?? '';
    addErrors(errors, validateSource(at, volume));
    if (name === '') errors.push(required(`${at}.name`));
    else if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    else addErrors(errors, syntax(`${at}.name`, name, dns1123Label(name)));
    names.add(name);
  }
  return errors;
}

function validateSource(field: string, volume: Volume): FieldError[] {
  const sources = Object.entries(volume).filter(([name, value]) => name !== 'name' && value !== undefined);
  if (sources.length === 0) return [required(field, 'must specify a volume type')];
  const errors = sources
    .slice(1)
    .map(([name]) => forbidden(`${field}.${name}`, 'may not specify more than 1 volume type'));
  return errors.concat(validateOneSource(field, volume));
}

function validateOneSource(field: string, volume: Volume): FieldError[] {
  if (volume.emptyDir !== undefined) return validateEmptyDir(`${field}.emptyDir`, volume.emptyDir);
  if (volume.hostPath !== undefined) return validateHostPath(`${field}.hostPath`, volume.hostPath);
  if (volume.secret !== undefined) {
    return [
      ...requireName(`${field}.secret.secretName`, volume.secret.secretName),
      ...validateItems(`${field}.secret`, volume.secret),
    ];
  }
  if (volume.configMap !== undefined) {
    return [
      ...requireName(`${field}.configMap.name`, volume.configMap.name),
      ...validateItems(`${field}.configMap`, volume.configMap),
    ];
  }
  if (volume.downwardAPI !== undefined) {
    return [
      ...validateMode(`${field}.downwardAPI.defaultMode`, volume.downwardAPI.defaultMode),
      ...validateDownwardFiles(`${field}.downwardAPI`, volume.downwardAPI.items ?? []),
    ];
  }
  if (volume.projected !== undefined) return validateProjected(`${field}.projected`, volume.projected);
  if (volume.persistentVolumeClaim !== undefined) {
    return requireName(`${field}.persistentVolumeClaim.claimName`, volume.persistentVolumeClaim.claimName);
  }
  if (volume.nfs !== undefined) {
    const { server = '', path = '' } = volume.nfs;
    return [
      ...requireName(`${field}.nfs.server`, server),
      ...(path === '' ? [required(`${field}.nfs.path`)] : []),
      ...(path !== '' && !path.startsWith('/') ? [invalid(`${field}.nfs.path`, path, 'must be an absolute path')] : []),
    ];
  }
  if (volume.csi !== undefined) return requireName(`${field}.csi.driver`, volume.csi.driver);
  if (volume.image !== undefined) {
    return [
      ...requireName(`${field}.image.reference`, volume.image.reference),
      ...oneOf(`${field}.image.pullPolicy`, volume.image.pullPolicy ?? 'IfNotPresent', PULL_POLICIES),
    ];
  }
  if (volume.ephemeral !== undefined) return validateEphemeral(`${field}.ephemeral`, volume.ephemeral);
  return [];
}

function requireName(field: string, name: string | undefined): FieldError[] {
  return name === undefined || name === '' ? [required(field)] : [];
}

function validateEmptyDir(field: string, source: NonNullable<Volume['emptyDir']>): FieldError[] {
  const limit = parseQuantity(source.sizeLimit ?? '0') ?? 0n;
  const errors: FieldError[] = [];
  if (limit < 0n) errors.push(forbidden(`${field}.sizeLimit`, 'SizeLimit field must be a valid resource quantity'));
  const medium = source.medium ?? '';
  if (medium !== '' && medium !== 'Memory' && medium !== 'HugePages' && !medium.startsWith('HugePages-')) {
    errors.push(invalid(`${field}.medium`, medium, 'must be "", "Memory", "HugePages" or "HugePages-<size>"'));
  }
  return errors;
}

function validateHostPath(field: string, source: NonNullable<Volume['hostPath']>): FieldError[] {
  const path = source.path ?? '';
  if (path === '') return [required(`${field}.path`)];
  const errors = syntax(`${field}.path`, path, noBacksteps(path));
  const type = source.type ?? '';
  if (type !== '') addErrors(errors, oneOf(`${field}.type`, type, HOST_PATH_TYPES));
  return errors;
}

function validateMode(field: string, mode: number | undefined): FieldError[] {
  return mode !== undefined && (mode < 0 || mode > 0o777) ? [invalid(field, mode, MODE_RANGE)] : [];
}

interface KeyFiles {
  defaultMode?: number | undefined;
  items?: { key?: string | undefined; path?: string | undefined; mode?: number | undefined }[] | undefined;
}

/** Keys of a secret or config map and the files they become. */
function validateItems(field: string, source: KeyFiles): FieldError[] {
  return [
    ...validateMode(`${field}.defaultMode`, source.defaultMode),
    ...(source.items ?? []).flatMap((item, index) => {
      const at = `${field}.items[${index}]`;
      const errors =
        (item.key ?? '') === '' ? [required(`${at}.key`)] : syntax(`${at}.key`, item.key, configMapKey(item.key ?? ''));
      return errors.concat(validateFilePath(`${at}.path`, item.path), validateMode(`${at}.mode`, item.mode));
    }),
  ];
}

function validateFilePath(field: string, path: string | undefined): FieldError[] {
  if (path === undefined || path === '') return [required(field)];
  const errors = syntax(field, path, localPath(path));
  if (path.startsWith('..') && !path.startsWith('../') && path !== '..') {
    errors.push(invalid(field, path, "must not start with '..'"));
  }
  return errors;
}

type DownwardItems = NonNullable<NonNullable<Volume['downwardAPI']>['items']>;

function validateDownwardFiles(field: string, items: DownwardItems): FieldError[] {
  return items.flatMap((item) => [
    ...validateFilePath(`${field}.path`, item.path),
    ...validateDownwardSource(field, item),
    ...validateMode(`${field}.mode`, item.mode),
  ]);
}

function validateProjected(field: string, source: NonNullable<Volume['projected']>): FieldError[] {
  const errors = validateMode(`${field}.defaultMode`, source.defaultMode);
  const paths = new Set<string>();
  const takePath = (at: string, path: string | undefined): void => {
    if (path === undefined || path === '') return;
    if (paths.has(path)) errors.push(invalid(at, path, `conflicting duplicate paths`));
    paths.add(path);
  };
  for (const [index, projection] of (source.sources ?? []).entries()) {
    const at = `${field}.sources[${index}]`;
    const kinds = Object.entries(projection).filter(([, value]) => value !== undefined);
    for (const [kind] of kinds.slice(1)) {
      errors.push(forbidden(`${at}.${kind}`, 'may not specify more than 1 volume type'));
    }
    if (kinds.length === 0) errors.push(required(at, 'must specify a volume type'));
    for (const kind of ['secret', 'configMap'] as const) {
      const files = projection[kind];
      if (files === undefined) continue;
      addErrors(
        errors,
        requireName(`${at}.${kind}.name`, files.name),
        validateItems(`${at}.${kind}`, { items: files.items }),
      );
      for (const item of files.items ?? []) takePath(`${at}.${kind}`, item.path);
    }
    if (projection.downwardAPI !== undefined) {
      addErrors(errors, validateDownwardFiles(`${at}.downwardAPI`, projection.downwardAPI.items ?? []));
      for (const item of projection.downwardAPI.items ?? []) takePath(`${at}.downwardAPI`, item.path);
    }
    const token = projection.serviceAccountToken;
    if (token !== undefined) {
      const seconds = token.expirationSeconds ?? 3600;
      if (seconds < 600) {
        errors.push(
          invalid(
            `${at}.serviceAccountToken.expirationSeconds`,
            seconds,
            'may not specify a duration less than 10 minutes',
          ),
        );
      }
      if (seconds > 2 ** 32) {
        errors.push(
          invalid(
            `${at}.serviceAccountToken.expirationSeconds`,
            seconds,
            'may not specify a duration larger than 2^32 seconds',
          ),
        );
      }
      addErrors(errors, validateFilePath(`${at}.serviceAccountToken.path`, token.path));
      takePath(`${at}.serviceAccountToken`, token.path);
    }
    const bundle = projection.clusterTrustBundle;
    if (bundle !== undefined) {
      if ((bundle.name ?? '') === '' && (bundle.signerName ?? '') === '') {
        errors.push(required(at, 'either name or signerName must be specified'));
      }
      addErrors(errors, validateFilePath(`${at}.clusterTrustBundle.path`, bundle.path));
      takePath(`${at}.clusterTrustBundle`, bundle.path);
    }
  }
  return errors;
}

function validateEphemeral(field: string, source: NonNullable<Volume['ephemeral']>): FieldError[] {
  const template = source.volumeClaimTemplate;
  if (template === undefined) return [required(`${field}.volumeClaimTemplate`)];
  return validateClaimSpec(`${field}.volumeClaimTemplate.spec`, template.spec ?? {});
}

const PROPAGATIONS = ['None', 'HostToContainer', 'Bidirectional'];

export function validateMounts(
  field: string,
  container: Container,
  volumes: ReadonlyMap<string, Volume>,
  ephemeral: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const at = `${field}.volumeMounts[${index}]`;
    const { name = '', mountPath = '', subPath = '', subPathExpr = '' } = mount;
    if (name === '') errors.push(required(`${at}.name`));
    else if (!volumes.has(name)) errors.push(notFound(`${at}.name`, name));
    if (mountPath === '') errors.push(required(`${at}.mountPath`));
    if (paths.has(mountPath)) errors.push(invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    if (subPath !== '' && subPathExpr !== '') {
      errors.push(invalid(`${at}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive'));
    }
    addErrors(errors, syntax(`${at}.subPath`, subPath, localPath(subPath)));
    addErrors(errors, syntax(`${at}.subPathExpr`, subPathExpr, localPath(subPathExpr)));
    if (ephemeral && subPath !== '')
      errors.push(forbidden(`${at}.subPath`, 'cannot be set for an Ephemeral Container'));
    if (ephemeral && subPathExpr !== '') {
      errors.push(forbidden(`${at}.subPathExpr`, 'cannot be set for an Ephemeral Container'));
    }
    if (mount.mountPropagation !== undefined) {
      addErrors(errors, oneOf(`${at}.mountPropagation`, mount.mountPropagation, PROPAGATIONS));
      if (mount.mountPropagation === 'Bidirectional' && container.securityContext?.privileged !== true) {
        errors.push(
          forbidden(
            `${at}.mountPropagation`,
            'Bidirectional mount propagation is available only to privileged containers',
          ),
        );
      }
    }
    if (mount.recursiveReadOnly !== undefined) {
      addErrors(
        errors,
        oneOf(`${at}.recursiveReadOnly`, mount.recursiveReadOnly, ['Disabled', 'Enabled', 'IfPossible']),
      );
      if (mount.recursiveReadOnly !== 'Disabled' && mount.readOnly !== true) {
        errors.push(forbidden(`${at}.recursiveReadOnly`, 'may only be specified when readOnly is true'));
      }
    }
    if (container.volumeDevices?.some((device) => device.name === name)) {
      errors.push(invalid(`${at}.name`, name, 'must not already exist in volumeDevices'));
    }
  }
  return errors.concat(validateDevices(field, container, volumes));
}

function validateDevices(field: string, container: Container, volumes: ReadonlyMap<string, Volume>): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  for (const [index, device] of (container.volumeDevices ?? []).entries()) {
    const at = `${field}.volumeDevices[${index}]`;
    const { name = '', devicePath = '' } = device;
    const volume = volumes.get(name);
    if (name === '') errors.push(required(`${at}.name`));
    else if (volume === undefined) errors.push(notFound(`${at}.name`, name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      errors.push(
        invalid(
          `${at}.name`,
          name,
          'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
        ),
      );
    }
    if (devicePath === '') errors.push(required(`${at}.devicePath`));
    else addErrors(errors, syntax(`${at}.devicePath`, devicePath, noBacksteps(devicePath)));
    if (paths.has(devicePath)) errors.push(invalid(`${at}.devicePath`, devicePath, 'must be unique'));
    paths.add(devicePath);
  }
  return errors;
}

export function validateImagePullSecrets(
  field: string,
  secrets: readonly { name?: string | undefined }[],
): FieldError[] {
  return secrets.flatMap((secret, index) =>
    (secret.name ?? '') === ''
      ? [required(`${field}[${index}].name`)]
      : syntax(`${field}[${index}].name`, secret.name, dns1123Subdomain(secret.name ?? '')),
  );
}
