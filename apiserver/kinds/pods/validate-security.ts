// Rules for security contexts of pods and containers, and for sysctls. What an operating system lacks is validate-os.ts.

import { addErrors, duplicate, invalid, notSupported, required, syntax, tooLong } from '../field-errors.ts';
import { localPath } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSecurityContext, PodSpec } from '../shapes.ts';
import { validateWindowsOptions } from './validate-os.ts';

type SecurityContext = NonNullable<Container['securityContext']>;
type Seccomp = NonNullable<SecurityContext['seccompProfile']>;
type AppArmor = NonNullable<SecurityContext['appArmorProfile']>;

const MAX_ID = 2 ** 31 - 1;
/** The pattern as the message prints it. */
const SYSCTL_PATTERN = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';

function validateId(field: string, id: number | undefined): FieldError[] {
  if (id === undefined || (id >= 0 && id <= MAX_ID)) return [];
  return [invalid(field, id, `must be between 0 and ${MAX_ID}, inclusive`)];
}

const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];

function validateSeccomp(field: string, profile: Seccomp | undefined): FieldError[] {
  if (profile === undefined) return [];
  const { type = '', localhostProfile: path } = profile;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${field}.type`, 'type is required when seccompProfile is set'));
  else if (!PROFILE_TYPES.includes(type)) errors.push(notSupported(`${field}.type`, type, PROFILE_TYPES));
  const at = `${field}.localhostProfile`;
  if (type !== 'Localhost') {
    // Upstream shows the whole profile.
    if (path !== undefined) errors.push(invalid(at, profile, 'can only be set when seccomp type is Localhost'));
    return errors;
  }
  return errors.concat(
    path === undefined
      ? [required(at, 'must be set when seccomp type is Localhost')]
      : syntax(at, path, localPath(path)),
  );
}

const MAX_PROFILE = 4095;

function validateAppArmor(field: string, profile: AppArmor | undefined): FieldError[] {
  if (profile === undefined) return [];
  const { type = '', localhostProfile: name } = profile;
  const at = `${field}.localhostProfile`;
  if (type === '') return [required(`${field}.type`, 'type is required when appArmorProfile is set')];
  if (!PROFILE_TYPES.includes(type)) return [notSupported(`${field}.type`, type, PROFILE_TYPES)];
  if (type !== 'Localhost') {
    return name === undefined ? [] : [invalid(at, name, 'can only be set when AppArmor type is Localhost')];
  }
  if (name === undefined) return [required(at, 'must be set when AppArmor type is Localhost')];
  const errors: FieldError[] = [];
  if (name.trim() !== name) errors.push(invalid(at, name, 'must not be padded with whitespace'));
  else if (name === '') errors.push(required(at, 'must be set when AppArmor type is Localhost'));
  if (Buffer.byteLength(name) > MAX_PROFILE) errors.push(tooLong(at, MAX_PROFILE));
  return errors;
}

export function validateSecurityContext(
  field: string,
  context: SecurityContext | undefined,
  spec: PodSpec,
): FieldError[] {
  if (context === undefined) return [];
  const errors = [
    ...validateId(`${field}.runAsUser`, context.runAsUser),
    ...validateId(`${field}.runAsGroup`, context.runAsGroup),
  ];
  const { procMount } = context;
  if (procMount !== undefined) {
    const types = ['Default', 'Unmasked'];
    if (!types.includes(procMount)) errors.push(notSupported(`${field}.procMount`, procMount, types));
    if (procMount === 'Unmasked' && spec.hostUsers !== false) {
      errors.push(invalid(`${field}.procMount`, procMount, '`hostUsers` must be false to use `Unmasked`'));
    }
  }
  addErrors(errors, validateSeccomp(`${field}.seccompProfile`, context.seccompProfile));
  if (context.allowPrivilegeEscalation === false) {
    const cannot = 'cannot set `allowPrivilegeEscalation` to false and';
    if (context.privileged === true) errors.push(invalid(field, context, `${cannot} \`privileged\` to true`));
    for (const name of context.capabilities?.add ?? []) {
      if (name !== 'CAP_SYS_ADMIN') continue;
      errors.push(invalid(field, context, `${cannot} \`capabilities.Add\` CAP_SYS_ADMIN`));
    }
  }
  addErrors(
    errors,
    validateWindowsOptions(`${field}.windowsOptions`, context.windowsOptions),
    validateAppArmor(`${field}.appArmorProfile`, context.appArmorProfile),
  );
  return errors;
}

export function validatePodSecurityContext(field: string, spec: PodSpec): FieldError[] {
  const context = spec.securityContext;
  if (context === undefined) return [];
  const errors = (['fsGroup', 'runAsUser', 'runAsGroup'] as const).flatMap((id) =>
    validateId(`${field}.${id}`, context[id]),
  );
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    addErrors(errors, validateId(`${field}.supplementalGroups[${index}]`, group));
  }
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    errors.push(
      invalid(`${field}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled'),
    );
  }
  addErrors(
    errors,
    validateSysctls(`${field}.sysctls`, context.sysctls ?? [], spec),
    among(`${field}.fsGroupChangePolicy`, context.fsGroupChangePolicy, ['Always', 'OnRootMismatch']),
    validateSeccomp(`${field}.seccompProfile`, context.seccompProfile),
    validateWindowsOptions(`${field}.windowsOptions`, context.windowsOptions),
    validateAppArmor(`${field}.appArmorProfile`, context.appArmorProfile),
    among(`${field}.supplementalGroupsPolicy`, context.supplementalGroupsPolicy, ['Merge', 'Strict']),
    among(`${field}.seLinuxChangePolicy`, context.seLinuxChangePolicy, ['Recursive']),
  );
  return errors;
}

function among(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [notSupported(field, value, supported)];
}

function validateSysctls(
  field: string,
  sysctls: NonNullable<PodSecurityContext['sysctls']>,
  spec: PodSpec,
): FieldError[] {
  const names = new Set<string>();
  return sysctls.flatMap(({ name = '' }, index) => {
    const at = `${field}[${index}].name`;
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(at));
    else if (name.length > 253 || !isSysctl(name)) {
      errors.push(invalid(at, name, `must have at most 253 characters and match regex ^${SYSCTL_PATTERN}$`));
    } else if (names.has(name)) errors.push(duplicate(at, name));
    names.add(name);
    const dotted = withDots(name);
    if (dotted.startsWith('net.') && spec.hostNetwork === true) {
      errors.push(invalid(at, name, "may not be specified when 'hostNetwork' is true"));
    }
    if (/^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/.test(dotted) && spec.hostIPC === true) {
      errors.push(invalid(at, name, "may not be specified when 'hostIPC' is true"));
    }
    return errors;
  });
}

/** Whichever of "." and "/" comes first separates; the other one is part of a name. */
function withDots(name: string): string {
  return name.search(/[./]/) === name.indexOf('/')
    ? name.replaceAll(/[./]/g, (one) => (one === '/' ? '.' : '/'))
    : name;
}

function isSysctl(name: string): boolean {
  return name.split(/[./]/).every((part) => /^[a-z0-9][-_a-z0-9]*$/.test(part) && !/[-_]$/.test(part));
}
