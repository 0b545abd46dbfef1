// Rules about the operating system that a pod is for: what Linux and Windows lack, and options of Windows.

import { addErrors, forbidden, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSpec } from '../shapes.ts';

type Options = NonNullable<NonNullable<Container['securityContext']>['windowsOptions']>;

/** Every container with its path, init containers first. */
export function containersOf(field: string, spec: PodSpec): (readonly [at: string, container: Container])[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, index) => [`${field}.${list}[${index}]`, container] as const),
  );
}

export function validateOs(field: string, spec: PodSpec): FieldError[] {
  if (spec.os === undefined) return [];
  const { name = '' } = spec.os;
  if (name === '') return [required(`${field}.os.name`)];
  if (name === 'linux') return validateLinux(field, spec);
  return name === 'windows' ? validateWindows(field, spec) : [notSupported(`${field}.os`, name, ['linux', 'windows'])];
}

function validateLinux(field: string, spec: PodSpec): FieldError[] {
  const holders = [[field, spec] as const, ...containersOf(field, spec)];
  return holders.flatMap(([at, { securityContext }]) =>
    securityContext?.windowsOptions === undefined
      ? []
      : [forbidden(`${at}.securityContext.windowsOptions`, 'windows options cannot be set for a linux pod')],
  );
}

const CONTAINER_FIELDS = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const;

/** In upstream's order. */
function validateWindows(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const cannot = (at: string): void => {
    errors.push(forbidden(`${field}.${at}`, 'cannot be set for a windows pod'));
  };
  const context = spec.securityContext ?? {};
  const own = (...names: (keyof typeof context)[]): void => {
    for (const name of names) if (context[name] !== undefined) cannot(`securityContext.${name}`);
  };
  own('appArmorProfile', 'seLinuxOptions');
  if (spec.hostUsers !== undefined) cannot('hostUsers');
  if (spec.hostPID === true) cannot('hostPID');
  if (spec.hostIPC === true) cannot('hostIPC');
  own('seccompProfile', 'fsGroup', 'fsGroupChangePolicy');
  if ((context.sysctls ?? []).length > 0) cannot('securityContext.sysctls');
  if (spec.shareProcessNamespace !== undefined) cannot('shareProcessNamespace');
  own('runAsUser', 'runAsGroup', 'supplementalGroups', 'supplementalGroupsPolicy', 'seLinuxChangePolicy');
  for (const [at, { securityContext }] of containersOf('', spec)) {
    for (const name of CONTAINER_FIELDS) {
      if (securityContext?.[name] !== undefined) cannot(`${at.slice(1)}.securityContext.${name}`);
    }
  }
  return errors;
}

/** Containers in the host's processes: all of a pod's or none. */
export function validateHostProcess(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess;
  const all = containersOf(field, spec);
  let count = 0;
  for (const [at, { securityContext }] of all) {
    const own = securityContext?.windowsOptions?.hostProcess;
    if (ofPod !== undefined && own !== undefined && own !== ofPod) {
      const why = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
      errors.push(invalid(`${at}.securityContext.windowsOptions.hostProcess`, own, why));
    }
    if (own ?? ofPod ?? false) count++;
  }
  if (count === 0) return errors;
  if (count !== all.length) {
    const why = 'If pod contains any hostProcess containers then all containers must be HostProcess containers';
    errors.push(invalid(field, '', why));
  }
  if (spec.hostNetwork !== true) {
    const why = 'hostNetwork must be true if pod contains any hostProcess containers';
    errors.push(invalid(`${field}.hostNetwork`, false, why));
  }
  return errors;
}

const MAX_GMSA_KIB = 64;
const MAX_DOMAIN = 256;
const MAX_USER = 104;

export function validateWindowsOptions(field: string, options: Options | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const { gmsaCredentialSpecName: name, gmsaCredentialSpec: text, runAsUserName } = options ?? {};
  if (name !== undefined) addErrors(errors, syntax(`${field}.gmsaCredentialSpecName`, name, dns1123Subdomain(name)));
  if (text === '') {
    errors.push(invalid(`${field}.gmsaCredentialSpec`, text, 'gmsaCredentialSpec cannot be an empty string'));
  } else if (text !== undefined && Buffer.byteLength(text) > MAX_GMSA_KIB * 1024) {
    errors.push(
      invalid(`${field}.gmsaCredentialSpec`, text, `gmsaCredentialSpec size must be under ${MAX_GMSA_KIB} KiB`),
    );
  }
  if (runAsUserName === undefined) return errors;
  return errors.concat(syntax(`${field}.runAsUserName`, runAsUserName, userNameErrors(runAsUserName)));
}

/** "DOMAIN\\user" or "user". */
function userNameErrors(text: string): string[] {
  if (text === '') return ['runAsUserName cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  if (/[\u0000-\u001f\u007f]/.test(text)) return ['runAsUserName cannot contain control characters'];
  const parts = text.split('\\');
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash'];
  const [domain, user = ''] = parts.length === 2 ? [parts[0] ?? '', parts[1]] : [undefined, parts[0]];
  const errors: string[] = [];
  if (domain !== undefined && domain.length >= MAX_DOMAIN) {
    errors.push(`runAsUserName's Domain length must be under ${MAX_DOMAIN} characters`);
  }
  if (domain !== undefined && !isDomain(domain)) {
    errors.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  }
  if (user === '') errors.push("runAsUserName's User cannot be empty");
  else if (user.length > MAX_USER) {
    errors.push(`runAsUserName's User length must not be longer than ${MAX_USER} characters`);
  }
  if (/^[. ]+$/.test(user)) errors.push("runAsUserName's User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    errors.push('runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]');
  }
  return errors;
}

function isDomain(text: string): boolean {
  const netBios = text.length <= 15 && /^[^\\/:*?"<>|.][^\\/:*?"<>|]*$/.test(text);
  return (
    netBios ||
    text.split('.').every((part) => part.length <= 63 && /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$/.test(part))
  );
}
