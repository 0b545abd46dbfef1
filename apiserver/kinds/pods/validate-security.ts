// Rules for security contexts of pods and containers, and for sysctls.

import { addErrors, forbidden, invalid, notSupported, oneOf, optionalOneOf, required } from '../field-errors.ts';
import { duplicates } from '../metadata.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSecurityContext, PodSpec } from '../shapes.ts';

type SecurityContext = NonNullable<Container['securityContext']>;
type Seccomp = NonNullable<SecurityContext['seccompProfile']>;
type AppArmor = NonNullable<SecurityContext['appArmorProfile']>;

const MAX_ID = 2 ** 31 - 1;
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9]$/;
/** The pattern as the message prints it. */
const SYSCTL_PATTERN = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9]';

function validateId(field: string, id: number | undefined): FieldError[] {
  if (id === undefined || (id >= 0 && id <= MAX_ID)) return [];
  return [invalid(field, id, `must be between 0 and ${MAX_ID}, inclusive`)];
}

function validateSeccomp(field: string, profile: Seccomp): FieldError[] {
  const errors = oneOf(`${field}.type`, profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined']);
  const path = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (path === undefined)
      errors.push(required(`${field}.localhostProfile`, 'must be set when seccomp type is Localhost'));
    else if (path.startsWith('/') || path.split('/').includes('..')) {
      errors.push(
        invalid(`${field}.localhostProfile`, path, 'must be a relative path within the seccomp profile root'),
      );
    }
  } else if (path !== undefined) {
    errors.push(invalid(`${field}.localhostProfile`, path, 'can only be set when seccomp type is Localhost'));
  }
  return errors;
}

function validateAppArmor(field: string, profile: AppArmor): FieldError[] {
  const errors = oneOf(`${field}.type`, profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined']);
  const name = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (name === undefined || name.trim() === '') {
      errors.push(required(`${field}.localhostProfile`, 'must be set when AppArmor type is Localhost'));
    } else if (name.trim() !== name) {
      errors.push(invalid(`${field}.localhostProfile`, name, 'must not be padded with whitespace'));
    }
  } else if (name !== undefined) {
    errors.push(invalid(`${field}.localhostProfile`, name, 'can only be set when AppArmor type is Localhost'));
  }
  return errors;
}

/** What both contexts have. */
function validateShared(field: string, context: SecurityContext | PodSecurityContext): FieldError[] {
  return [
    ...validateId(`${field}.runAsUser`, context.runAsUser),
    ...validateId(`${field}.runAsGroup`, context.runAsGroup),
    ...(context.seccompProfile === undefined ? [] : validateSeccomp(`${field}.seccompProfile`, context.seccompProfile)),
    ...(context.appArmorProfile === undefined
      ? []
      : validateAppArmor(`${field}.appArmorProfile`, context.appArmorProfile)),
  ];
}

export function validateSecurityContext(
  field: string,
  context: SecurityContext | undefined,
  spec: PodSpec,
): FieldError[] {
  if (context === undefined) return [];
  const errors = validateShared(field, context);
  if (context.procMount !== undefined) {
    addErrors(errors, oneOf(`${field}.procMount`, context.procMount, ['Default', 'Unmasked']));
    if (context.procMount === 'Unmasked' && spec.hostUsers !== false) {
      errors.push(invalid(`${field}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`'));
    }
  }
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged === true) {
      errors.push(invalid(field, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'));
    }
    if ((context.capabilities?.add ?? []).some((name) => name === 'CAP_SYS_ADMIN' || name === 'SYS_ADMIN')) {
      errors.push(
        invalid(field, context, 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN'),
      );
    }
  }
  return errors;
}

export function validatePodSecurityContext(field: string, spec: PodSpec): FieldError[] {
  const context = spec.securityContext;
  if (context === undefined) return [];
  const errors = validateShared(field, context);
  addErrors(errors, validateId(`${field}.fsGroup`, context.fsGroup));
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    addErrors(errors, validateId(`${field}.supplementalGroups[${index}]`, group));
  }
  addErrors(
    errors,
    optionalOneOf(`${field}.fsGroupChangePolicy`, context.fsGroupChangePolicy, ['OnRootMismatch', 'Always']),
    optionalOneOf(`${field}.supplementalGroupsPolicy`, context.supplementalGroupsPolicy, ['Merge', 'Strict']),
    optionalOneOf(`${field}.seLinuxChangePolicy`, context.seLinuxChangePolicy, ['MountOption', 'Recursive']),
  );
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    errors.push(
      invalid(`${field}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled'),
    );
  }
  addErrors(errors, validateSysctls(`${field}.sysctls`, context.sysctls ?? [], spec));
  return errors;
}

function validateSysctls(
  field: string,
  sysctls: NonNullable<PodSecurityContext['sysctls']>,
  spec: PodSpec,
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, sysctl] of sysctls.entries()) {
    const at = `${field}[${index}].name`;
    const name = sysctl.name ?? '';
    if (name === '') errors.push(required(at));
    else if (name.length > 253 || !SYSCTL.test(name)) {
      errors.push(invalid(at, name, `must have at most 253 characters and match regex ^${SYSCTL_PATTERN}$`));
    } else {
      const dotted = name.replaceAll('/', '.');
      if (dotted.startsWith('net.') && spec.hostNetwork === true) {
        errors.push(invalid(at, name, "may not be specified when 'hostNetwork' is true"));
      }
      if (/^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/.test(dotted) && spec.hostIPC === true) {
        errors.push(invalid(at, name, "may not be specified when 'hostIPC' is true"));
      }
    }
  }
  return errors.concat(
    duplicates(
      sysctls,
      (index) => `${field}[${index}].name`,
      (sysctl) => sysctl.name?.replaceAll('/', '.'),
    ),
  );
}

/** Fields that a pod for the named operating system may not set. */
export function validateOs(field: string, spec: PodSpec): FieldError[] {
  if (spec.os === undefined) return [];
  const name = spec.os.name ?? '';
  if (name === '') return [required(`${field}.os.name`)];
  if (name !== 'linux' && name !== 'windows') return [notSupported(`${field}.os`, name, ['linux', 'windows'])];
  const errors: FieldError[] = [];
  if (name === 'linux') {
    if (spec.securityContext?.windowsOptions !== undefined) {
      errors.push(
        forbidden(`${field}.securityContext.windowsOptions`, 'windows options cannot be set for a linux pod'),
      );
    }
    return errors;
  }
  const context = spec.securityContext;
  const windowsForbids = 'cannot be set for a windows pod';
  for (const part of [
    'seLinuxOptions',
    'seccompProfile',
    'fsGroup',
    'fsGroupChangePolicy',
    'sysctls',
    'runAsUser',
    'runAsGroup',
    'supplementalGroups',
    'appArmorProfile',
  ] as const) {
    if (context?.[part] !== undefined) errors.push(forbidden(`${field}.securityContext.${part}`, windowsForbids));
  }
  for (const part of ['hostPID', 'hostIPC', 'hostNetwork', 'shareProcessNamespace'] as const) {
    if (spec[part] === true) errors.push(forbidden(`${field}.${part}`, windowsForbids));
  }
  return errors;
}
