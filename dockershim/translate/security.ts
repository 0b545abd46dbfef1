// CRI's security contexts as Docker's HostConfig fields, for sandboxes and containers. Pure: a seccomp profile of the
// node is read by the caller. What Docker has no means for is refused by the name of its field.

import type { HostConfig } from 'dockerode';
import type { LinuxContainerSecurityContext__Output } from '../../proto/gen/runtime/v1/LinuxContainerSecurityContext.ts';
import type { LinuxSandboxSecurityContext__Output } from '../../proto/gen/runtime/v1/LinuxSandboxSecurityContext.ts';
import type { NamespaceOption__Output } from '../../proto/gen/runtime/v1/NamespaceOption.ts';
import type { SELinuxOption__Output } from '../../proto/gen/runtime/v1/SELinuxOption.ts';
import type { SecurityProfile__Output } from '../../proto/gen/runtime/v1/SecurityProfile.ts';
import { invalid, unsupported } from '../errors.ts';
import type { DockerFacts } from './facts.ts';

const FIELD = 'linux.security_context';

interface Profiles {
  readonly seccomp: SecurityProfile__Output | null;
  readonly seccomp_profile_path: string;
  readonly privileged: boolean;
}

/** The message, else the older text: "" and "unconfined", "runtime/default", "localhost/PATH". */
function profileOf(message: SecurityProfile__Output | null, text: string): SecurityProfile__Output {
  if (message !== null) return message;
  const localhost = /^localhost\/(.*)$/s.exec(text)?.[1];
  if (localhost !== undefined) return { profile_type: 'Localhost', localhost_ref: localhost };
  const isDefault = text === 'runtime/default' || text === 'docker/default';
  return { profile_type: isDefault ? 'RuntimeDefault' : 'Unconfined', localhost_ref: '' };
}

/** The file of the seccomp profile that has to be read; undefined where none has to. */
export function seccompFile(security: Profiles | null): string | undefined {
  if (security === null || security.privileged) return undefined;
  const profile = profileOf(security.seccomp, security.seccomp_profile_path);
  if (profile.profile_type !== 'Localhost') return undefined;
  if (!profile.localhost_ref.startsWith('/')) {
    throw invalid(`${FIELD}.seccomp.localhost_ref`, `"${profile.localhost_ref}" is no absolute path`);
  }
  return profile.localhost_ref;
}

/** `text`: the profile of `seccompFile`. A privileged container has none, as with containerd. */
function seccompOption(security: Profiles, facts: DockerFacts, text: string | undefined): string[] {
  if (security.privileged) return ['seccomp=unconfined'];
  const { profile_type } = profileOf(security.seccomp, security.seccomp_profile_path);
  if (profile_type === 'Unconfined') return facts.security.has('seccomp') ? ['seccomp=unconfined'] : [];
  if (!facts.security.has('seccomp')) throw unsupported(`${FIELD}.seccomp`, 'this Docker has no seccomp');
  // Without an option Docker uses its own profile.
  if (profile_type === 'RuntimeDefault') return [];
  return [`seccomp=${text ?? ''}`];
}

/** Where Docker's own profile cannot be loaded, a container has none, as with containerd. */
const unconfined = ({ apparmorUnloadable }: DockerFacts): string[] =>
  apparmorUnloadable ? ['apparmor=unconfined'] : [];

function apparmorOption(security: LinuxContainerSecurityContext__Output, facts: DockerFacts): string[] {
  const { apparmor, apparmor_profile, privileged } = security;
  if (apparmor === null && apparmor_profile === '') return unconfined(facts);
  const { profile_type, localhost_ref } = profileOf(apparmor, apparmor_profile);
  if (!facts.security.has('apparmor')) {
    if (profile_type === 'Localhost') throw unsupported(`${FIELD}.apparmor`, 'apparmor is not supported');
    return unconfined(facts);
  }
  if (privileged && profile_type === 'RuntimeDefault') return [];
  if (profile_type === 'RuntimeDefault') return [];
  return [profile_type === 'Unconfined' ? 'apparmor=unconfined' : `apparmor=${localhost_ref}`];
}

/** Without SELinux on the machine the options have no effect, as with containerd. */
function selinuxOptions(options: SELinuxOption__Output | null, facts: DockerFacts): string[] {
  if (options === null || !facts.security.has('selinux')) return [];
  const parts = Object.entries({
    user: options.user,
    role: options.role,
    type: options.type,
    level: options.level,
  });
  return parts.flatMap(([name, value]) => (value === '' ? [] : [`label=${name}:${value}`]));
}

type WithUser = Pick<
  LinuxContainerSecurityContext__Output,
  'run_as_user' | 'run_as_group' | 'supplemental_groups' | 'supplemental_groups_policy'
> & { readonly run_as_username?: string };

/** Docker's `User`: "uid", "name" or with ":gid"; '' is the image's. */
export function userOf(security: WithUser | null): string {
  if (security === null) return '';
  const { run_as_user, run_as_group, run_as_username = '' } = security;
  const user = run_as_user?.value ?? run_as_username;
  if (run_as_group === null) return user;
  if (user === '') throw invalid(`${FIELD}.run_as_group`, 'user group is specified without user');
  return `${user}:${run_as_group.value}`;
}

function groupsOf(security: WithUser): string[] {
  // With a group named, Docker takes no groups from the image's /etc/group; without one it always does.
  if (security.supplemental_groups_policy === 'Strict' && security.run_as_group === null) {
    throw unsupported(`${FIELD}.supplemental_groups_policy`, 'Docker can be strict only where run_as_group is set');
  }
  return [...security.supplemental_groups];
}

/** Namespaces that CRI can ask for and Docker cannot make. */
export function checkNamespaces(options: NamespaceOption__Output | null): void {
  const field = `${FIELD}.namespace_options`;
  if (options === null) return;
  if (options.network === 'CONTAINER') throw unsupported(`${field}.network`, 'CONTAINER is for no sandbox');
  if (options.ipc === 'CONTAINER' || options.ipc === 'TARGET') {
    throw unsupported(`${field}.ipc`, `${options.ipc} is neither POD nor NODE`);
  }
  if (options.userns_options !== null && options.userns_options.mode === 'POD') {
    throw unsupported(`${field}.userns_options`, 'Docker maps the users of all containers or of none');
  }
}

function withoutContext(facts: DockerFacts): HostConfig {
  return facts.apparmorUnloadable ? { SecurityOpt: unconfined(facts) } : {};
}

/** HostConfig's security fields of a pause container. */
export function sandboxSecurity(
  security: LinuxSandboxSecurityContext__Output | null,
  facts: DockerFacts,
  seccomp: string | undefined,
): HostConfig {
  if (security === null) return withoutContext(facts);
  return {
    GroupAdd: groupsOf(security),
    SecurityOpt: [
      ...seccompOption({ ...security, privileged: false }, facts, seccomp),
      ...unconfined(facts),
      ...selinuxOptions(security.selinux_options, facts),
    ],
  };
}

/** HostConfig's security fields of a container. `seccomp`: the text of `seccompFile`'s profile. */
export function containerSecurity(
  security: LinuxContainerSecurityContext__Output | null,
  facts: DockerFacts,
  seccomp: string | undefined,
): HostConfig {
  if (security === null) return withoutContext(facts);
  const { capabilities, privileged } = security;
  if ((capabilities?.add_ambient_capabilities.length ?? 0) > 0) {
    throw unsupported(`${FIELD}.capabilities.add_ambient_capabilities`, 'Docker sets no ambient capabilities');
  }
  return {
    Privileged: privileged,
    ReadonlyRootfs: security.readonly_rootfs,
    CapAdd: capabilities?.add_capabilities ?? [],
    CapDrop: capabilities?.drop_capabilities ?? [],
    GroupAdd: groupsOf(security),
    SecurityOpt: [
      ...seccompOption(security, facts, seccomp),
      ...apparmorOption(security, facts),
      ...selinuxOptions(security.selinux_options, facts),
      ...(security.no_new_privs ? ['no-new-privileges'] : []),
    ],
    // Nothing is hidden from a privileged container.
    ...(privileged ? {} : { MaskedPaths: security.masked_paths, ReadonlyPaths: security.readonly_paths }),
  };
}
