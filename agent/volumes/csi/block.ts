// A block volume's device for one pod: bound into the volume's own map, where each pod's use is seen, and linked below
// the pod's directory, where containers get it from. As the kubelet maps devices, without its loop device.

import { mkdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isErrno } from '../../../lib/errors.ts';
import { mountAt } from '../../../lib/mountinfo.ts';
import type { Mounter } from '../../ports/mounter.ts';
import type { MappedDevice } from '../registry.ts';
import { removeEmpty } from './notes.ts';

export interface DevicePlace extends MappedDevice {
  /** The device as the driver published it, or as a local volume has it. */
  readonly target: string;
}

/** The kubelet's two events about a device that a pod has now. Pure. */
export function mappedMessages(volume: string, { globalMap, podMap }: MappedDevice): readonly string[] {
  const succeeded = `MapVolume.MapPodDevice succeeded for volume "${volume}"`;
  return [`${succeeded} globalMapPath "${dirname(globalMap)}"`, `${succeeded} volumeMapPath "${dirname(podMap)}"`];
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EINVAL')) return undefined;
    throw error;
  }
}

/** Idempotent, also after a crash half-way. */
export async function mapDevice({ target, globalMap, podMap }: DevicePlace, mounter: Mounter): Promise<void> {
  mkdirSync(dirname(globalMap), { recursive: true, mode: 0o750 });
  writeFileSync(globalMap, '', { flag: 'a', mode: 0o640 });
  if (mountAt(await mounter.list(), globalMap) === undefined) {
    await mounter.mount({ source: target, target: globalMap, options: ['bind'] });
  }
  if (linkOf(podMap) === target) return;
  mkdirSync(dirname(podMap), { recursive: true, mode: 0o750 });
  rmSync(podMap, { force: true });
  symlinkSync(target, podMap);
}

export async function unmapDevice({ globalMap, podMap }: DevicePlace, mounter: Mounter): Promise<void> {
  rmSync(podMap, { force: true });
  removeEmpty(dirname(podMap));
  await mounter.unmount(globalMap);
  rmSync(globalMap, { force: true });
}
