// The checks of the baseline level of the Pod Security Standards, with the words of k8s.io/pod-security-admission/policy.
// Pure.

import { getOwn } from '../../../lib/own-property.ts';
import type { Container, PodSpec } from '../../kinds/shapes.ts';
import { allContainers, type CheckPod, containersWith, named, plural, quoted, setters, sorted } from './result.ts';

const present = (text: string | undefined): text is string => text !== undefined && text !== '';

export const hostNamespaces: CheckPod = (spec) => {
  const used = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true);
  if (used.length === 0) return undefined;
  return { reason: 'host namespaces', detail: used.map((field) => `${field}=true`).join(', ') };
};

export const hostPathVolumes: CheckPod = (spec) => {
  const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath !== undefined).map(({ name = '' }) => name);
  if (names.length === 0) return undefined;
  return { reason: 'hostPath volumes', detail: `${plural('volume', 'volumes', names.length)} ${quoted(names)}` };
};

export const hostPorts: CheckPod = (spec) => {
  const portsOf = ({ ports = [] }: Container): string[] =>
    ports.flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]));
  const names = containersWith(spec, (container) => portsOf(container).length > 0);
  if (names.length === 0) return undefined;
  const ports = sorted(allContainers(spec).flatMap(portsOf));
  const use = plural('uses', 'use', names.length);
  const what = plural('hostPort', 'hostPorts', ports.length);
  return { reason: 'hostPort', detail: `${named(names)} ${use} ${what} ${ports.join(', ')}` };
};

/** Hosts that a container has a probe or a hook call. */
function hostsOf({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): string[] {
  return [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
    .flatMap((handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host])
    .filter(present);
}

export const hostProbes: CheckPod = (spec) => {
  const names = sorted(containersWith(spec, (container) => hostsOf(container).length > 0));
  if (names.length === 0) return undefined;
  const hosts = sorted(allContainers(spec).flatMap(hostsOf));
  const use = plural('uses', 'use', names.length);
  const what = plural('probe or lifecycle host', 'probe or lifecycle hosts', hosts.length);
  return { reason: 'probe or lifecycle host', detail: `${named(names)} ${use} ${what} ${quoted(hosts)}` };
};

export const privileged: CheckPod = (spec) => {
  const names = containersWith(spec, ({ securityContext }) => securityContext?.privileged === true);
  if (names.length === 0) return undefined;
  return { reason: 'privileged', detail: `${named(names)} must not set securityContext.privileged=true` };
};

export const procMount: CheckPod = (spec) => {
  const mountOf = ({ securityContext }: Container): string => securityContext?.procMount ?? 'Default';
  const names = containersWith(spec, (container) => mountOf(container) !== 'Default');
  if (names.length === 0) return undefined;
  const types = sorted(allContainers(spec).map(mountOf)).filter((type) => type !== 'Default');
  return { reason: 'procMount', detail: `${named(names)} must not set securityContext.procMount to ${quoted(types)}` };
};

const DEFAULT_CAPABILITIES = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

export const capabilities: CheckPod = (spec) => {
  const beyond = ({ securityContext }: Container): string[] =>
    (securityContext?.capabilities?.add ?? []).filter((name) => !DEFAULT_CAPABILITIES.has(name));
  const names = containersWith(spec, (container) => beyond(container).length > 0);
  if (names.length === 0) return undefined;
  const added = sorted(allContainers(spec).flatMap(beyond));
  return {
    reason: 'non-default capabilities',
    detail: `${named(names)} must not include ${quoted(added)} in securityContext.capabilities.add`,
  };
};

const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

export const appArmorProfile: CheckPod = (spec, { annotations = {} }) => {
  /** The type that is wrong; undefined where the profile is fine, or there is none. */
  const badType = (profile: { type?: string | undefined } | undefined): string | undefined =>
    profile === undefined || profile.type === 'RuntimeDefault' || profile.type === 'Localhost'
      ? undefined
      : (profile.type ?? '');
  const ofPod = badType(spec.securityContext?.appArmorProfile);
  const ofContainer = ({ securityContext }: Container) => badType(securityContext?.appArmorProfile);
  const names = containersWith(spec, (container) => ofContainer(container) !== undefined);
  const values = sorted([ofPod, ...allContainers(spec).map(ofContainer)].flatMap((type) => type ?? []));
  const notes = Object.entries(annotations)
    .filter(([key]) => key.startsWith(APPARMOR_ANNOTATION))
    .filter(([, value]) => value !== '' && value !== 'runtime/default' && !value.startsWith('localhost/'))
    .map(([key, value]) => `${key}="${value}"`)
    .sort();
  const who = setters(ofPod !== undefined, names);
  if (notes.length > 0) who.push(plural('annotation', 'annotations', notes.length));
  if (who.length === 0) return undefined;
  const all = [...values, ...notes];
  return {
    reason: plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', all.length),
    detail: `${who.join(' and ')} must not set AppArmor profile type to ${quoted(all)}`,
  };
};

const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t'];

/** `types`: SELinux types that are allowed beside those of version 1.0. */
export const seLinuxOptions =
  (...types: readonly string[]): CheckPod =>
  (spec) => {
    const allowed = new Set([...SELINUX_TYPES, ...types]);
    const options = [
      spec.securityContext,
      ...allContainers(spec).map((container) => container.securityContext),
    ].flatMap((context) => context?.seLinuxOptions ?? []);
    type Options = (typeof options)[number];
    const bad = (one: Options | undefined): boolean =>
      one !== undefined && (!allowed.has(one.type ?? '') || present(one.user) || present(one.role));
    const names = containersWith(spec, ({ securityContext }) => bad(securityContext?.seLinuxOptions));
    const who = setters(bad(spec.securityContext?.seLinuxOptions), names);
    if (who.length === 0) return undefined;
    const badTypes = sorted(options.map(({ type = '' }) => type).filter((type) => !allowed.has(type)));
    const data = badTypes.length === 0 ? [] : [`${plural('type', 'types', badTypes.length)} ${quoted(badTypes)}`];
    if (options.some(({ user }) => present(user))) data.push('user may not be set');
    if (options.some(({ role }) => present(role))) data.push('role may not be set');
    return {
      reason: 'seLinuxOptions',
      detail: `${who.join(' and ')} set forbidden securityContext.seLinuxOptions: ${data.join('; ')}`,
    };
  };

const SECCOMP_ANNOTATION = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';

/** Before version 1.19 profiles were annotations. */
export const seccompAnnotations: CheckPod = (spec, { annotations = {} }) => {
  const keys = [SECCOMP_ANNOTATION, ...allContainers(spec).map(({ name = '' }) => `${SECCOMP_CONTAINER}${name}`)];
  const forbidden = sorted(
    keys.flatMap((key) => {
      const value = getOwn(annotations, key);
      const fine = value === undefined || ['runtime/default', 'docker/default'].includes(value);
      return fine || value.startsWith('localhost/') ? [] : [`${key}="${value}"`];
    }),
  );
  if (forbidden.length === 0) return undefined;
  return {
    reason: 'seccompProfile',
    detail: `forbidden ${plural('annotation', 'annotations', forbidden.length)} ${forbidden.join(', ')}`,
  };
};

type Profile = { type?: string | undefined } | undefined;
export const validSeccomp = (profile: Profile): boolean =>
  profile?.type === 'Localhost' || profile?.type === 'RuntimeDefault';
const badSeccomp = (profile: Profile): boolean => profile !== undefined && !validSeccomp(profile);

export const seccompProfile: CheckPod = (spec) => {
  const ofPod = spec.securityContext?.seccompProfile;
  const profileOf = ({ securityContext }: Container) => securityContext?.seccompProfile;
  const names = containersWith(spec, (container) => badSeccomp(profileOf(container)));
  const who = setters(badSeccomp(ofPod), names);
  if (who.length === 0) return undefined;
  const values = sorted(
    [ofPod, ...allContainers(spec).map(profileOf)].filter(badSeccomp).map((profile) => profile?.type ?? ''),
  );
  return {
    reason: 'seccompProfile',
    detail: `${who.join(' and ')} must not set securityContext.seccompProfile.type to ${quoted(values)}`,
  };
};

const SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
];

/** `more`: sysctls that are allowed beside those of version 1.0. */
export const sysctls =
  (...more: readonly string[]): CheckPod =>
  (spec: PodSpec) => {
    const names = (spec.securityContext?.sysctls ?? []).map(({ name = '' }) => name);
    const forbidden = names.filter((name) => !SYSCTLS.includes(name) && !more.includes(name));
    return forbidden.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: forbidden.join(', ') };
  };

export const windowsHostProcess: CheckPod = (spec) => {
  const names = containersWith(spec, ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true);
  const who = setters(spec.securityContext?.windowsOptions?.hostProcess === true, names);
  if (who.length === 0) return undefined;
  const detail = `${who.join(' and ')} must not set securityContext.windowsOptions.hostProcess=true`;
  return { reason: 'hostProcess', detail };
};
