// Rules for annotations that mean something to a pod: fields as they were before they were fields, and the cost of its
// deletion.

import { getOwn } from '../../../lib/own-property.ts';
import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { addErrors, forbidden, invalid } from '../field-errors.ts';
import { localPath } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { PodSpec } from '../shapes.ts';
import { containersOf } from './validate-os.ts';

type Annotations = { readonly [key: string]: string | undefined };

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';

export function validatePodAnnotations(field: string, annotations: Annotations = {}, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const mirror = getOwn(annotations, MIRROR_ANNOTATION);
  if (mirror !== undefined && (spec.nodeName ?? '') === '') {
    const why = 'must set spec.nodeName if mirror pod annotation is set';
    errors.push(invalid(`${field}[${MIRROR_ANNOTATION}]`, mirror, why));
  }
  const cost = getOwn(annotations, DELETION_COST);
  if (cost !== undefined && !isInt32(cost)) {
    errors.push(invalid(`${field}[${DELETION_COST}]`, cost, 'must be a 32bit integer'));
  }
  const seccomp = getOwn(annotations, SECCOMP_POD);
  if (seccomp !== undefined) addErrors(errors, validateSeccomp(`${field}.${SECCOMP_POD}`, seccomp));
  for (const [key, value = ''] of Object.entries(annotations)) {
    if (key.startsWith(SECCOMP_CONTAINER)) addErrors(errors, validateSeccomp(`${field}.${key}`, value));
  }
  for (const [key, value = ''] of Object.entries(annotations)) {
    if (!key.startsWith(APPARMOR)) continue;
    const name = key.slice(APPARMOR.length);
    if (!containersOf('', spec).some(([, container]) => container.name === name)) {
      errors.push(invalid(`${field}[${key}]`, name, 'container not found'));
    }
    if (value !== '' && value !== 'runtime/default' && value !== 'unconfined' && !value.startsWith('localhost/')) {
      errors.push(invalid(`${field}[${key}]`, value, `invalid AppArmor profile name: ${JSON.stringify(value)}`));
    }
  }
  return errors;
}

function isInt32(value: string): boolean {
  if (!/^(0|-?[1-9]\d{0,9})$/.test(value)) return false;
  const number = Number(value);
  return number >= -(2 ** 31) && number < 2 ** 31;
}

function validateSeccomp(field: string, profile: string): FieldError[] {
  if (profile === 'runtime/default' || profile === 'docker/default' || profile === 'unconfined') return [];
  if (!profile.startsWith('localhost/')) return [invalid(field, profile, 'must be a valid seccomp profile')];
  const path = profile.slice('localhost/'.length);
  return localPath(path).map((message) => invalid(field, path, message));
}

/** On create, where a profile is given in both ways. */
export function validateProfilesMatch(field: string, annotations: Annotations = {}, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { seccompProfile, appArmorProfile } = spec.securityContext ?? {};
  addErrors(
    errors,
    matchProfile(
      `${field}.securityContext.seccompProfile`,
      'seccomp',
      getOwn(annotations, SECCOMP_POD),
      seccompProfile,
    ),
  );
  for (const [at, { name = '', securityContext }] of containersOf(field, spec)) {
    const text = getOwn(annotations, `${SECCOMP_CONTAINER}${name}`);
    addErrors(
      errors,
      matchProfile(`${at}.securityContext.seccompProfile`, 'seccomp', text, securityContext?.seccompProfile),
    );
  }
  if (spec.os?.name === 'windows') return errors;
  for (const [at, { name = '', securityContext }] of containersOf(field, spec)) {
    const profile = securityContext?.appArmorProfile ?? appArmorProfile;
    const text = getOwn(annotations, `${APPARMOR}${name}`);
    addErrors(errors, matchProfile(`${at}.securityContext.appArmorProfile`, 'apparmor', text, profile));
  }
  return errors;
}

interface Profile {
  readonly type?: string | undefined;
  readonly localhostProfile?: string | undefined;
}

function matchProfile(
  field: string,
  what: 'seccomp' | 'apparmor',
  annotation: string | undefined,
  profile: Profile | undefined,
): FieldError[] {
  if (annotation === undefined || profile === undefined) return [];
  const other = [forbidden(`${field}.type`, `${what} type in annotation and field must match`)];
  switch (profile.type) {
    case 'Unconfined':
      return annotation === 'unconfined' ? [] : other;
    case 'RuntimeDefault':
      return annotation === 'runtime/default' || (what === 'seccomp' && annotation === 'docker/default') ? [] : other;
    case 'Localhost':
      if (!annotation.startsWith('localhost/')) return other;
      return annotation.slice('localhost/'.length) === profile.localhostProfile
        ? []
        : [forbidden(`${field}.localhostProfile`, `${what} profile in annotation and field must match`)];
    default:
      return [];
  }
}
