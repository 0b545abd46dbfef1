// From a container's volumeMounts to bind mounts for the runtime. The mapping is pure; only subPaths need acting.

import { lstatSync, mkdirSync, rmdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import { isErrno } from '../../lib/errors.ts';
import { mountAt } from '../../lib/mountinfo.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { Mounter } from '../ports/mounter.ts';
import type { ContainerDevice, ContainerMount, MountedImage } from '../ports/runtime.ts';
import type { PreparedVolume } from './registry.ts';
import { mountOf } from './shared-root.ts';
import { callsFor, type OpenPath, SubPathError, safeOpenSubPath, subPathProblem } from './sub-path.ts';
import { subPathTarget } from './volume-type.ts';

export type VolumeMount = NonNullable<Container['volumeMounts']>[number];

export interface MountPlan {
  readonly volume: string;
  readonly container: string;
  readonly volumePath: string;
  /** Undefined mounts the volume whole. */
  readonly subPath: string | undefined;
  /** Where the subPath is mounted for the container. */
  readonly subPathTarget: string;
  /** What the runtime is to mount instead; the subPath is then a path in it, and the runtime's to find. */
  readonly image: MountedImage | undefined;
  readonly mount: Omit<ContainerMount, 'hostPath'>;
}

const PROPAGATION: Readonly<Record<string, ContainerMount['propagation']>> = {
  None: 'private',
  HostToContainer: 'hostToContainer',
  Bidirectional: 'bidirectional',
};

/** Names of the volumes that any container of the pod mounts; the others are never set up, as in the kubelet. */
export function volumesInUse(pod: Pod): ReadonlySet<string> {
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
  const all: readonly (Container | EphemeralContainer)[] = [...initContainers, ...containers, ...ephemeralContainers];
  return new Set(
    all.flatMap((container) => [
      ...(container.volumeMounts ?? []).map(({ name }) => name),
      ...(container.volumeDevices ?? []).map(({ name }) => name),
    ]),
  );
}

/** Expands $(NAME) by the container's environment; $$ is a dollar. Throws for a name that is not there. */
export function expandSubPath(text: string, env: readonly { readonly name: string; readonly value: string }[]): string {
  return text.replace(/\$(?:\$|\(([^()]*)\))/g, (whole, name: string | undefined) => {
    if (name === undefined) return whole === '$$' ? '$' : whole;
    const value = env.find((variable) => variable.name === name)?.value;
    if (value === undefined) throw new Error(`missing value for "${name}"`);
    return value;
  });
}

/** Pure. Throws an Error for what cannot be mounted as requested. */
export function planMount(
  mount: VolumeMount,
  index: number,
  at: { readonly podDir: string; readonly container: string },
  volumes: ReadonlyMap<string, PreparedVolume>,
  env: readonly { readonly name: string; readonly value: string }[],
  recursiveReadOnlyMounts: boolean,
): MountPlan {
  const volume = volumes.get(mount.name);
  if (volume === undefined || volume.device !== undefined) {
    throw new Error(`cannot find volume "${mount.name}" to mount into container "${at.container}"`);
  }
  const propagation = getOwn(PROPAGATION, mount.mountPropagation ?? 'None');
  if (propagation === undefined) throw new Error(`invalid MountPropagation mode: "${mount.mountPropagation}"`);
  const readOnly = mount.readOnly === true || volume.plan.readOnly;
  const subPath =
    mount.subPathExpr === undefined || mount.subPathExpr === '' ? mount.subPath : expandSubPath(mount.subPathExpr, env);
  const problem = subPathProblem(subPath ?? '');
  if (problem !== undefined) throw new Error(problem);
  return {
    volume: mount.name,
    container: at.container,
    volumePath: volume.plan.path,
    subPath: subPath === '' ? undefined : subPath,
    subPathTarget: subPathTarget(at.podDir, mount.name, at.container, index),
    image: volume.plan.image === undefined ? undefined : { ...volume.plan.image, subPath: subPath ?? '' },
    mount: {
      containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
      readOnly,
      propagation,
      selinuxRelabel: volume.plan.managed,
      recursiveReadOnly: recursiveReadOnly(mount, recursiveReadOnlyMounts),
    },
  };
}

/** Pure. The device of a volume in block mode; read-only where the volume is. */
export function planDevice(
  device: NonNullable<Container['volumeDevices']>[number],
  container: string,
  volumes: ReadonlyMap<string, PreparedVolume>,
): ContainerDevice {
  const volume = volumes.get(device.name);
  if (!device.devicePath.startsWith('/')) {
    throw new Error(`error DevicePath \`${device.devicePath}\` must be an absolute path`);
  }
  if (volume?.device === undefined) {
    throw new Error(`cannot find volume "${device.name}" to pass into container "${container}"`);
  }
  return {
    hostPath: volume.device.podMap,
    containerPath: device.devicePath,
    permissions: volume.plan.readOnly ? 'r' : 'mrw',
  };
}

/** Pure. Groups that volumes add to every container of the pod, without those of the pod itself. */
export function volumeGroups(pod: Pod, volumes: Iterable<PreparedVolume>): readonly number[] {
  const own = pod.spec.securityContext?.supplementalGroups ?? [];
  const groups = [...volumes].flatMap(({ group }) => (group === undefined || own.includes(group) ? [] : [group]));
  return [...new Set(groups)];
}

/** KEP-3857: Enabled must hold or fail; IfPossible takes what the runtime can. Both are for read-only mounts alone. */
function recursiveReadOnly(mount: VolumeMount, supported: boolean): boolean {
  const { recursiveReadOnly: mode = 'Disabled', mountPropagation = 'None' } = mount;
  if (mode === 'Disabled') return false;
  const failed = 'failed to resolve recursive read-only mode';
  const refused = (why: string): Error =>
    new Error(`${failed}: volume "${mount.name}" requested recursive read-only mode, but it is not ${why}`);
  if (mount.readOnly !== true) throw refused('read-only');
  if (mountPropagation !== 'None') throw refused(`compatible with propagation "${mountPropagation}"`);
  if (mode !== 'Enabled' && mode !== 'IfPossible')
    throw new Error(`${failed}: unknown recursive read-only mode "${mode}"`);
  if (mode === 'Enabled' && !supported) throw refused('supported by the runtime');
  return supported;
}

/** The mount for the runtime; a subPath is first bound to a place of its own that the pod cannot move. */
export async function makeMount(plan: MountPlan, mounter: Mounter, tracer: Tracer): Promise<ContainerMount> {
  const { volume, container, volumePath, subPath, subPathTarget: target } = plan;
  if (plan.image !== undefined) return { ...plan.mount, hostPath: '', image: plan.image };
  if (subPath === undefined) return { ...plan.mount, hostPath: volumePath };
  try {
    await tracer.span('volume', 'PrepareSubPath', { volume, container, subPath }, () =>
      bindSubPath(volumePath, subPath, target, mounter),
    );
  } catch (error) {
    // The reason is on the trace alone: it could show the machine's files to the pod's author.
    const what = error instanceof SubPathError && error.making ? 'create subPath directory' : 'prepare subPath';
    throw new Error(`failed to ${what} for volumeMount "${volume}" of container "${container}"`, { cause: error });
  }
  return { ...plan.mount, hostPath: target };
}

async function bindSubPath(volumePath: string, subPath: string, target: string, mounter: Mounter): Promise<void> {
  const entries = await mounter.list();
  const opened = await safeOpenSubPath(volumePath, subPath, callsFor(mountOf(entries, volumePath)?.fsType));
  try {
    if (mountAt(entries, target) !== undefined) {
      if (isSame(opened, target)) return;
      await mounter.unmount(target);
    }
    makeTarget(target, opened.isDirectory);
    // Through our own handle: mount(8) runs as a child, so /proc/self would be the wrong process.
    const source = `/proc/${process.pid}/fd/${opened.fd}`;
    await mounter.mount({ source, target, options: ['bind'] });
  } finally {
    await opened.close();
  }
}

/** Makes the file or directory to bind onto; what was there of the other kind goes. */
function makeTarget(target: string, directory: boolean): void {
  mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
  const there = lstatSync(target, { throwIfNoEntry: false });
  if (there?.isDirectory() === directory) return;
  if (there?.isDirectory() === true) rmdirSync(target);
  else if (there !== undefined) unlinkSync(target);
  if (directory) mkdirSync(target, 0o750);
  else writeFileSync(target, '', { flag: 'wx', mode: 0o640 });
}

/** Whether what is mounted at `target` is what was opened. */
function isSame(opened: OpenPath, target: string): boolean {
  try {
    const { ino, dev } = statSync(target);
    return ino === opened.ino && dev === opened.dev;
  } catch (error) {
    // A mount whose file system is gone has to be replaced.
    if (isErrno(error, 'ENOENT', 'ESTALE', 'EIO', 'ENOTCONN')) return false;
    throw error;
  }
}
