// local PersistentVolumes: a directory of this node, bound into the pod's own place; a block device, mounted once for
// all pods (formatted when it is empty) or given to containers as it is. Never used by a pod directly.

import { mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { mountAt } from '../../lib/mountinfo.ts';
import { podReference } from '../model/event-reference.ts';
import type { MountEntry, Mounter } from '../ports/mounter.ts';
import { mapDevice, unmapDevice } from './csi/block.ts';
import { removeEmpty } from './csi/notes.ts';
import { Serial } from './csi/serial.ts';
import { makeDirectory } from './directories.ts';
import { failedStep } from './mount-failures.ts';
import { applyFsGroup } from './ownership.ts';
import type { MappedDevice } from './registry.ts';
import { mountOf } from './shared-root.ts';
import { unmountBelow } from './unmount.ts';
import { type VolumePlan, type VolumeType, volumeDir } from './volume-type.ts';

const plugin = 'kubernetes.io/local-volume';
const ESCAPED = 'kubernetes.io~local-volume';

export interface LocalPlan extends VolumePlan {
  /** The PersistentVolume. */
  readonly name: string;
  /** Where all pods of the node have theirs. */
  readonly podsDir: string;
  /** What the PersistentVolume names. */
  readonly source: string;
  readonly fsType: string;
  /** Where a block device with a file system is mounted for all pods. */
  readonly globalPath: string;
  readonly mountOptions: readonly string[];
  readonly gid: number | undefined;
}

const globalMounts = new Serial();

/** `<root>` of `<root>/pods/<uid>`. */
const rootOf = (podDir: string): string => dirname(dirname(podDir));

const globalRoot = (podDir: string): string => join(rootOf(podDir), 'plugins/kubernetes.io/local-volume/mounts');

export const localVolume: VolumeType<LocalPlan> = {
  plugin,
  plan({ pod, volume, podDir, mountOptions = [], readOnly = false }) {
    const { path = '', fsType = 'ext4' } = volume.local ?? {};
    if (!path.startsWith('/')) throw new Error(`local volume path "${path}" is not absolute`);
    if (path.split('/').includes('..')) throw new Error(`local volume path ${path} must not contain '..'`);
    return {
      path: volumeDir(podDir, plugin, volume.name),
      name: volume.name,
      podsDir: dirname(podDir),
      readOnly,
      managed: !readOnly,
      source: path,
      fsType: fsType === '' ? 'ext4' : fsType,
      globalPath: join(globalRoot(podDir), volume.name),
      mountOptions,
      gid: pod.spec.securityContext?.fsGroup,
    };
  },
  async mount(plan, pod, { mounter, recorder, tracer }) {
    const isDirectory = isUsableDirectory(plan);
    const { gid } = plan;
    // Serialised with the other pods that use it, and with the unmount after the last of them.
    await globalMounts.run(plan.globalPath, async () => {
      const source = isDirectory ? plan.source : await mountGlobally(plan, mounter);
      const made = await makeDirectory(plan.path, 0o750);
      const entries = await mounter.list();
      const fresh = made || mountAt(entries, plan.path) === undefined;
      const isShared = hasOtherUsers(entries, realpathSync(source), plan);
      if (fresh) {
        if (isShared && gid !== undefined && statSync(source).gid !== gid) {
          const why = `The requested fsGroup is ${gid}, but the volume ${plan.name} has GID ${statSync(source).gid}.`;
          const message = `${why} The volume may not be shareable.`;
          recorder.event(podReference(pod), 'Warning', 'AlreadyMountedVolume', message);
        }
        const options = ['bind', ...(plan.readOnly ? ['ro'] : []), ...plan.mountOptions];
        await mounter.mount({ source, target: plan.path, options });
      }
      // The first pod's group has it. Where an agent died over it, the root is not the group's yet.
      if (gid === undefined || plan.readOnly || isShared) return;
      const policy = fresh ? pod.spec.securityContext?.fsGroupChangePolicy : 'OnRootMismatch';
      await applyFsGroup(plan.path, { gid, policy, tracer });
    });
  },
};

/** True for a directory, false for a block device. Throws the kubelet's failure for everything else. */
function isUsableDirectory({ source, name }: LocalPlan): boolean {
  const failed = (why: string, cause?: unknown): Error =>
    failedStep('MountVolume.NewMounter initialization', name, why, { cause });
  try {
    const kind = statSync(source);
    if (kind.isDirectory() || kind.isBlockDevice()) return kind.isDirectory();
  } catch (error) {
    throw failed(isErrno(error, 'ENOENT') ? `path "${source}" does not exist` : errorMessage(error), error);
  }
  throw failed('only directory and block device are supported');
}

/** Whether another pod has `source`, links resolved, mounted too. Pure. */
export function hasOtherUsers(
  entries: readonly MountEntry[],
  source: string,
  { podsDir, path: own }: Pick<LocalPlan, 'podsDir' | 'path'>,
): boolean {
  const on = mountOf(entries, source);
  if (on === undefined) return false;
  const root = join(on.root, relative(on.path, source));
  const isSame = (entry: MountEntry): boolean =>
    entry.device === on.device && entry.root === root && !entry.rootDeleted;
  return entries.some((entry) => entry.path !== own && entry.path.startsWith(`${podsDir}/`) && isSame(entry));
}

async function mountGlobally(
  { source, globalPath, fsType, mountOptions }: LocalPlan,
  mounter: Mounter,
): Promise<string> {
  mkdirSync(globalPath, { recursive: true, mode: 0o750 });
  if (mountAt(await mounter.list(), globalPath) === undefined) {
    await mounter.formatIfEmpty(source, fsType);
    await mounter.mount({ fsType, source, target: globalPath, options: mountOptions });
  }
  return globalPath;
}

export interface LocalDevice {
  readonly place: MappedDevice;
  map(mounter: Mounter): Promise<void>;
}

function devicePlace(podDir: string, name: string, target: string) {
  const uid = podDir.slice(dirname(podDir).length + 1);
  return {
    target,
    globalMap: join(rootOf(podDir), 'plugins', ESCAPED, 'volumeDevices', name, uid),
    podMap: join(podDir, 'volumeDevices', ESCAPED, name),
  };
}

/** The device of a volume in block mode. */
export function mapLocalDevice(podDir: string, name: string, source: string): LocalDevice {
  const place = devicePlace(podDir, name, source);
  return {
    place,
    async map(mounter) {
      if (!statSync(source).isBlockDevice()) throw new Error(`${source} is not a block device`);
      await mapDevice(place, mounter);
    },
  };
}

/** Takes down every local volume of the pod, from what is on disk, and the devices that no other pod has mounted. */
export async function tearDownLocal(podDir: string, mounter: Mounter): Promise<void> {
  await unmapLocalDevices(podDir, mounter);
  await unmountBelow(join(podDir, 'volumes', ESCAPED), mounter);
  const root = globalRoot(podDir);
  const mounted = (await mounter.list()).filter(({ path }) => dirname(path) === root);
  for (const { path } of mounted) {
    await globalMounts.run(path, async () => {
      const entries = await mounter.list();
      const device = mountAt(entries, path)?.device;
      const pods = `${dirname(podDir)}/`;
      if (device === undefined || entries.some((entry) => entry.device === device && entry.path.startsWith(pods)))
        return;
      await mounter.unmount(path);
      removeEmpty(path);
    });
  }
}

async function unmapLocalDevices(podDir: string, mounter: Mounter): Promise<void> {
  let names: string[] = [];
  try {
    names = readdirSync(join(podDir, 'volumeDevices', ESCAPED));
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
  for (const name of names) await unmapDevice(devicePlace(podDir, name, ''), mounter);
}
