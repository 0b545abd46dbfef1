// Rules for where a container has its volumes: as directories (mounts) or as block devices.

import { addErrors, forbidden, invalid, notFound, notSupported, required, syntax } from '../field-errors.ts';
import { localPath, noBacksteps } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Volume } from '../shapes.ts';

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const RECURSIVE = ['Disabled', 'Enabled', 'IfPossible'];

type Mount = NonNullable<Container['volumeMounts']>[number];

export function validateMounts(
  field: string,
  container: Container,
  volumes: ReadonlyMap<string, Volume>,
): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  const devices = new Map((container.volumeDevices ?? []).map(({ name = '', devicePath = '' }) => [name, devicePath]));
  const devicePaths = new Set(devices.values());
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const at = `${field}[${index}]`;
    const { name = '', mountPath = '' } = mount;
    if (name === '') errors.push(required(`${at}.name`));
    if (!volumes.has(name)) errors.push(notFound(`${at}.name`, name));
    if (mountPath === '') errors.push(required(`${at}.mountPath`));
    if (paths.has(mountPath)) errors.push(invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    if (devices.has(name)) errors.push(invalid(`${at}.name`, name, 'must not already exist in volumeDevices'));
    if (devicePaths.has(mountPath)) {
      errors.push(invalid(`${at}.mountPath`, mountPath, 'must not already exist as a path in volumeDevices'));
    }
    // Upstream names these as fields of the list.
    addErrors(errors, validateSubPath(field, at, mount), validatePropagation(field, mount, container));
  }
  return errors;
}

function validateSubPath(field: string, at: string, { subPath = '', subPathExpr = '' }: Mount): FieldError[] {
  const errors = syntax(`${field}.subPath`, subPath, localPath(subPath));
  if (subPathExpr === '') return errors;
  if (subPath !== '') {
    errors.push(invalid(`${at}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive'));
  }
  return errors.concat(syntax(`${field}.subPathExpr`, subPathExpr, localPath(subPathExpr)));
}

function validatePropagation(field: string, mount: Mount, container: Container): FieldError[] {
  const errors: FieldError[] = [];
  const { mountPropagation: propagation, recursiveReadOnly: recursive } = mount;
  if (propagation !== undefined) {
    const at = `${field}.mountPropagation`;
    if (!PROPAGATIONS.includes(propagation)) errors.push(notSupported(at, propagation, PROPAGATIONS));
    if (propagation === 'Bidirectional' && container.securityContext?.privileged !== true) {
      errors.push(forbidden(at, 'Bidirectional mount propagation is available only to privileged containers'));
    }
  }
  const at = `${field}.recursiveReadOnly`;
  if (recursive === 'Enabled' || recursive === 'IfPossible') {
    if (mount.readOnly !== true) errors.push(forbidden(at, 'may only be specified when readOnly is true'));
    if (propagation !== undefined && propagation !== 'None') {
      errors.push(forbidden(at, 'may only be specified when mountPropagation is None or not specified'));
    }
  } else if (recursive !== undefined && recursive !== 'Disabled') errors.push(notSupported(at, recursive, RECURSIVE));
  return errors;
}

export function validateDevices(
  field: string,
  container: Container,
  volumes: ReadonlyMap<string, Volume>,
): FieldError[] {
  const errors: FieldError[] = [];
  const [names, paths] = [new Set<string>(), new Set<string>()];
  const mounts = new Map((container.volumeMounts ?? []).map(({ name = '', mountPath = '' }) => [name, mountPath]));
  const mountPaths = new Set(mounts.values());
  for (const [index, { name = '', devicePath = '' }] of (container.volumeDevices ?? []).entries()) {
    const at = `${field}[${index}]`;
    const volume = volumes.get(name);
    if (name === '') errors.push(required(`${at}.name`));
    if (names.has(name)) errors.push(invalid(`${at}.name`, name, 'must be unique'));
    if (volume === undefined) errors.push(notFound(`${at}.name`, name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      const why = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
      errors.push(invalid(`${at}.name`, name, why));
    }
    if (devicePath === '') errors.push(required(`${at}.devicePath`));
    if (paths.has(devicePath)) errors.push(invalid(`${at}.devicePath`, devicePath, 'must be unique'));
    if (noBacksteps(devicePath).length > 0) {
      errors.push(invalid(`${at}.devicePath`, devicePath, "can not contain backsteps ('..')"));
    } else paths.add(devicePath);
    if (mounts.has(name)) errors.push(invalid(`${at}.name`, name, 'must not already exist in volumeMounts'));
    if (mountPaths.has(devicePath)) {
      errors.push(invalid(`${at}.devicePath`, devicePath, 'must not already exist as a path in volumeMounts'));
    }
    if (name !== '') names.add(name);
  }
  return errors;
}
