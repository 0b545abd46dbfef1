// Security contexts: container over pod over the node's default, as the API defines them. Pure.

import type { Container, EphemeralContainer, Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { LinuxContainerSecurityContext } from '../../../proto/gen/runtime/v1/LinuxContainerSecurityContext.ts';
import type { LinuxSandboxSecurityContext } from '../../../proto/gen/runtime/v1/LinuxSandboxSecurityContext.ts';
import type { SELinuxOption } from '../../../proto/gen/runtime/v1/SELinuxOption.ts';
import type { SecurityProfile } from '../../../proto/gen/runtime/v1/SecurityProfile.ts';
import type { RuntimeImage } from '../../ports/runtime.ts';
import { type IdRange, namespaceOptions } from './namespaces.ts';

type AnyContainer = Container | EphemeralContainer;
type ContainerSecurity = NonNullable<Container['securityContext']>;
type SeccompProfile = NonNullable<ContainerSecurity['seccompProfile']>;
type SELinuxOptions = NonNullable<ContainerSecurity['seLinuxOptions']>;

export interface SecuritySettings {
  readonly seccompDefault: boolean;
  readonly seccompProfileRoot: string;
}

/** The parts of /proc and /sys that expose or change the machine, hidden from ordinary containers. */
const MASKED_PATHS = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const READONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** A reference that holds either the message for the user, or nothing wrong. */
export function runAsNonRootProblem(pod: Pod, container: AnyContainer, image: RuntimeImage): string | undefined {
  const security = container.securityContext;
  const nonRoot = security?.runAsNonRoot ?? pod.spec.securityContext?.runAsNonRoot;
  if (nonRoot !== true) return undefined;
  const which = `(pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})", container: ${container.name})`;
  const user = security?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (user !== undefined) {
    return user === 0 ? `container's runAsUser breaks non-root policy ${which}` : undefined;
  }
  if (image.uid !== undefined) {
    return image.uid === 0 ? `container has runAsNonRoot and image will run as root ${which}` : undefined;
  }
  if (image.username !== undefined && image.username !== '') {
    return `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${which}`;
  }
  return `container has runAsNonRoot and image will run as root ${which}`;
}

function seccomp(profile: SeccompProfile | undefined, settings: SecuritySettings): SecurityProfile {
  switch (profile?.type) {
    case 'RuntimeDefault':
      return { profile_type: 'RuntimeDefault' };
    case 'Localhost':
      return {
        profile_type: 'Localhost',
        localhost_ref: `${settings.seccompProfileRoot}/${profile.localhostProfile ?? ''}`,
      };
    case 'Unconfined':
      return { profile_type: 'Unconfined' };
    default:
      return { profile_type: settings.seccompDefault ? 'RuntimeDefault' : 'Unconfined' };
  }
}

interface AppArmor {
  readonly profile: SecurityProfile;
  /** The same in the words of runtimes that do not know the message yet. */
  readonly legacy: string;
}

function appArmorByName(name: string): AppArmor | undefined {
  if (name === 'runtime/default') return { profile: { profile_type: 'RuntimeDefault' }, legacy: name };
  if (name === 'unconfined') return { profile: { profile_type: 'Unconfined' }, legacy: name };
  const localhost = /^localhost\/(.+)$/.exec(name)?.[1];
  if (localhost === undefined) return undefined;
  return { profile: { profile_type: 'Localhost', localhost_ref: localhost }, legacy: name };
}

/** The field of the container, else the annotation of old, else the pod's field. */
function appArmor(pod: Pod, container: AnyContainer): AppArmor | undefined {
  const annotated = getOwn(
    pod.metadata.annotations,
    `container.apparmor.security.beta.kubernetes.io/${container.name}`,
  );
  const own = container.securityContext?.appArmorProfile;
  if (own === undefined && annotated !== undefined) return appArmorByName(annotated);
  const profile = own ?? pod.spec.securityContext?.appArmorProfile;
  switch (profile?.type) {
    case 'RuntimeDefault':
      return appArmorByName('runtime/default');
    case 'Unconfined':
      return appArmorByName('unconfined');
    case 'Localhost':
      return appArmorByName(`localhost/${profile.localhostProfile ?? ''}`);
    default:
      return undefined;
  }
}

function seLinux(options: SELinuxOptions | undefined): { selinux_options?: SELinuxOption } {
  if (options === undefined) return {};
  const { user, role, type, level } = options;
  return {
    selinux_options: {
      ...(user === undefined ? {} : { user }),
      ...(role === undefined ? {} : { role }),
      ...(type === undefined ? {} : { type }),
      ...(level === undefined ? {} : { level }),
    },
  };
}

/**
 * Groups of the first process: fsGroup, so that it can read its volumes, then the pod's supplementalGroups, and what
 * volumes require.
 */
function groups(
  pod: Pod,
  more: readonly number[] = [],
): Pick<LinuxSandboxSecurityContext, 'supplemental_groups' | 'supplemental_groups_policy'> {
  const security = pod.spec.securityContext;
  const list = [
    ...(security?.fsGroup === undefined ? [] : [security.fsGroup]),
    ...(security?.supplementalGroups ?? []),
    ...more,
  ];
  // Newer than the types: SupplementalGroupsPolicy (KEP-3619).
  const strict = security !== undefined && Reflect.get(security, 'supplementalGroupsPolicy') === 'Strict';
  return { supplemental_groups: list, supplemental_groups_policy: strict ? 'Strict' : 'Merge' };
}

function user(
  uid: number | undefined,
  gid: number | undefined,
): Pick<LinuxSandboxSecurityContext, 'run_as_user' | 'run_as_group'> {
  return {
    ...(uid === undefined ? {} : { run_as_user: { value: uid } }),
    ...(gid === undefined ? {} : { run_as_group: { value: gid } }),
  };
}

/** The sandbox runs nothing but the pause process: it always gets the runtime's seccomp profile. */
export function sandboxSecurity(pod: Pod, userns: IdRange | undefined): LinuxSandboxSecurityContext {
  const security = pod.spec.securityContext;
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  return {
    namespace_options: namespaceOptions(pod, userns),
    privileged: containers.some((container) => container.securityContext?.privileged === true),
    seccomp: { profile_type: 'RuntimeDefault' },
    ...user(security?.runAsUser, security?.runAsGroup),
    ...groups(pod),
    ...seLinux(security?.seLinuxOptions),
  };
}

/** Who the first process runs as: container, else pod, else the image's own user, which is root where it names none. */
function containerUser(
  pod: Pod,
  own: ContainerSecurity | undefined,
  image: RuntimeImage,
): LinuxContainerSecurityContext {
  const whole = pod.spec.securityContext;
  const { username = '' } = image;
  const uid = own?.runAsUser ?? whole?.runAsUser ?? image.uid ?? (username === '' ? 0 : undefined);
  const gid = own?.runAsGroup ?? whole?.runAsGroup;
  return { ...user(uid, gid), ...(uid === undefined ? { run_as_username: username } : {}) };
}

export function containerSecurity(
  pod: Pod,
  container: AnyContainer,
  image: RuntimeImage,
  context: {
    readonly settings: SecuritySettings;
    readonly userns: IdRange | undefined;
    /** Beside the pod's own. */
    readonly groups?: readonly number[];
    readonly targetId?: string;
  },
): LinuxContainerSecurityContext {
  const own = container.securityContext;
  const whole = pod.spec.securityContext;
  const privileged = own?.privileged === true;
  // Runtimes ignore both lists for a privileged container: as from a kubelet, they come all the same.
  const unmasked = own?.procMount === 'Unmasked';
  const armor = appArmor(pod, container);
  const capabilities = own?.capabilities;
  return {
    namespace_options: namespaceOptions(pod, context.userns, context.targetId),
    privileged,
    readonly_rootfs: own?.readOnlyRootFilesystem === true,
    no_new_privs: own?.allowPrivilegeEscalation === false,
    ...containerUser(pod, own, image),
    ...groups(pod, context.groups),
    ...(capabilities === undefined
      ? {}
      : {
          capabilities: {
            add_capabilities: [...(capabilities.add ?? [])],
            drop_capabilities: [...(capabilities.drop ?? [])],
          },
        }),
    seccomp: seccomp(own?.seccompProfile ?? whole?.seccompProfile, context.settings),
    ...(armor === undefined ? {} : { apparmor: armor.profile, apparmor_profile: armor.legacy }),
    ...seLinux(own?.seLinuxOptions ?? whole?.seLinuxOptions),
    masked_paths: unmasked ? [] : MASKED_PATHS,
    readonly_paths: unmasked ? [] : READONLY_PATHS,
  };
}
