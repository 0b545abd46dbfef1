// A volume's image as a device: attached, formatted, grown, measured, detached. The Node service above decides the order
// of the steps, the tools below run them.

import { stat, statfs } from 'node:fs/promises';
import { changeGroup } from '../../lib/change-group.ts';
import { readMounts } from '../../lib/mounts.ts';
import type { VolumeUsage } from '../../proto/gen/csi/v1/VolumeUsage.ts';
import type { Capability, FilesystemType } from './capability.ts';
import { checkSpaceToFormat } from './condition.ts';
import { precondition } from './errors.ts';
import {
  checkFilesystem,
  filesystemOptions,
  growMounted,
  growUnmounted,
  makeFilesystem,
  probeFilesystem,
} from './filesystems.ts';
import { freeBytes, imageSize } from './images.ts';
import { attachLoop, detachLoop, type LoopDevice, listLoopDevices, refreshLoop, whenReleased } from './loop-devices.ts';
import { loopOf, type Mount, mountAt, mountDevice } from './mounts.ts';
import type { VolumeRecord } from './records.ts';
import type { Work } from './work.ts';

/** Loop devices of one volume's image. */
export async function loopsOf(work: Work, volumeId: string): Promise<readonly LoopDevice[]> {
  const image = work.store.volumeImage(volumeId);
  return (await listLoopDevices()).filter((each) => each.image === image && !each.deleted);
}

/** How long NodeStageVolume waits for a filesystem that NodeUnstageVolume has unmounted, ms; the kubelet waits for 2 min. */
const HELD_ELSEWHERE_MS = 60_000;

/**
 * A device that was detached and is still there; undefined when it has gone. A mount namespace that was made while it was
 * mounted keeps it until that namespace's own mount is taken down, mostly a moment later. What is mounted until then is the same
 * filesystem as it was, closed for writing when it was so, and e2fsck and resize2fs refuse it: so this waits. It does not
 * where the filesystem is mounted in this namespace, which keeps it for as long.
 */
async function heldDevice(work: Work, held: LoopDevice | undefined): Promise<LoopDevice | undefined> {
  if (held === undefined) return undefined;
  const isMountedHere = (await readMounts()).some((mount) => loopOf(mount) === held.device);
  if (isMountedHere) return held;
  const isGone = await whenReleased(held.device, held.image, HELD_ELSEWHERE_MS, work.driver.clock);
  return isGone ? undefined : held;
}

/**
 * The device of a volume, read-only or not; attached now unless it is. It has the size that the image has. One with
 * autoclear is taken only to be mounted again: two devices under one filesystem would destroy it, and the mount keeps it.
 */
export async function attach(
  work: Work,
  volumeId: string,
  readonly: boolean,
  use: 'mount' | 'block' = 'block',
): Promise<string> {
  const existing = (await loopsOf(work, volumeId)).filter((each) => each.readonly === readonly);
  const kept =
    existing.find((each) => !each.autoclear) ?? (use === 'mount' ? await heldDevice(work, existing[0]) : undefined);
  if (kept === undefined) return attachLoop(work.store.volumeImage(volumeId), readonly, work.run);
  await refreshLoop(kept.device, work.run);
  return kept.device;
}

/** All of them, or only those that are read-only. */
export async function detachAll(work: Work, volumeId: string, only: 'all' | 'readonly' = 'all'): Promise<void> {
  for (const each of await loopsOf(work, volumeId)) {
    if (only === 'all' || each.readonly) await detachLoop(each.device, work.run);
  }
}

/** The volume's mount at `path`, whichever of its devices it is of. */
export async function ownMountAt(work: Work, volumeId: string, path: string): Promise<Mount | undefined> {
  const mount = mountAt(await readMounts(), path);
  if (mount === undefined) return undefined;
  const device = loopOf(mount);
  return (await loopsOf(work, volumeId)).some((each) => each.device === device) ? mount : undefined;
}

/** Throws FAILED_PRECONDITION when something that is not the volume is mounted there. */
export async function refuseForeignMount(work: Work, volumeId: string, path: string): Promise<void> {
  if (mountAt(await readMounts(), path) === undefined) return;
  if ((await ownMountAt(work, volumeId, path)) === undefined)
    throw precondition(`something else is mounted at ${path}`);
}

/**
 * The volume with the requested filesystem on it: made when the device is blank, grown when the volume is larger,
 * never made over anything. mkfs is announced in the record, so that one that was killed is known for what it is.
 */
async function format(work: Work, volume: VolumeRecord, device: string, type: FilesystemType): Promise<VolumeRecord> {
  let current = volume;
  if (current.filesystem === undefined) {
    const found = current.formatting === undefined ? await probeFilesystem(device, work.run) : undefined;
    if (found !== undefined && found !== type) {
      throw precondition(`volume ${volume.id} holds ${found} and cannot be used as ${type}`);
    }
    if (found === undefined) {
      const image = await imageSize(work.store.volumeImage(volume.id));
      checkSpaceToFormat(
        { capacityBytes: current.capacityBytes, image, freeBytes: await freeBytes(work.store.stateDir) },
        type,
      );
      current = await work.putVolume({ ...current, formatting: type });
      await makeFilesystem(type, device, work.run);
    }
    const { formatting: _done, ...rest } = current;
    // What was found was not made by this driver: its size is unknown, and growing it does no harm.
    const bytes = found === undefined ? current.capacityBytes : 0;
    current = await work.putVolume({ ...rest, filesystem: { type, bytes } });
  }
  if (type === 'ext4' && (current.filesystem?.bytes ?? 0) < current.capacityBytes) {
    await growUnmounted(device, work.run);
    current = await work.putVolume({ ...current, filesystem: { type, bytes: current.capacityBytes } });
  }
  return current;
}

/** Formats the volume as it needs and mounts it at `path`, which has to be a directory. */
export async function mountVolume(
  work: Work,
  volume: VolumeRecord,
  capability: Extract<Capability, { type: 'mount' }>,
  path: string,
  readonly: boolean,
): Promise<void> {
  const { fsType, flags, group } = capability;
  const device = await attach(work, volume.id, false, 'mount');
  const formatted = await format(work, volume, device, fsType);
  const untouched = formatted === volume;
  if (fsType === 'ext4' && untouched && !readonly) await checkFilesystem(device, work.run);
  const options = [...filesystemOptions(fsType, group), ...flags, ...(readonly && !flags.includes('ro') ? ['ro'] : [])];
  await mountDevice(device, path, fsType, options, work.run);
  if (readonly) return;
  // xfs grows only while it is mounted.
  if (fsType === 'xfs' && (formatted.filesystem?.bytes ?? 0) < formatted.capacityBytes) {
    await growMounted('xfs', device, path, work.run);
    await work.putVolume({ ...formatted, filesystem: { type: fsType, bytes: formatted.capacityBytes } });
  }
  await applyMountGroup(work, capability, path);
}

export async function applyMountGroup(work: Work, capability: Capability, path: string): Promise<void> {
  if (capability.type === 'block' || capability.group === '') return;
  await work.step();
  // Disk filesystems have no mount option that does this.
  await changeGroup(path, Number(capability.group));
}

/** Makes the kernel read the size of a larger image, and grows the filesystem that is mounted at `path`. */
export async function growOnNode(work: Work, volume: VolumeRecord, mounted: string | undefined): Promise<void> {
  const loops = await loopsOf(work, volume.id);
  for (const each of loops) await refreshLoop(each.device, work.run);
  const type = volume.filesystem?.type;
  if (mounted === undefined || (type !== 'ext4' && type !== 'xfs')) return;
  if ((volume.filesystem?.bytes ?? 0) >= volume.capacityBytes) return;
  const device = loops.find((each) => !each.readonly)?.device;
  if (device === undefined) throw precondition(`volume ${volume.id} has lost its loop device: stage it again`);
  await growMounted(type, device, mounted, work.run);
  await work.putVolume({ ...volume, filesystem: { type, bytes: volume.capacityBytes } });
}

/** Bytes and inodes of a mounted filesystem. */
export async function filesystemUsage(path: string): Promise<VolumeUsage[]> {
  const { blocks, bfree, bavail, bsize, files, ffree } = await statfs(path);
  return [
    { unit: 'BYTES', total: blocks * bsize, used: (blocks - bfree) * bsize, available: bavail * bsize },
    { unit: 'INODES', total: files, used: files - ffree, available: ffree },
  ];
}

export async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return false;
    throw error;
  }
}
