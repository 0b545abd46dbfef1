// After a start: the records are compared with the mount table and the loop devices. What is no longer
// true is marked as not done, so that the next call does it again; what cannot be used any more is removed.

import { existsSync } from 'node:fs';
import { readMounts } from '../../lib/mounts.ts';
import { sameJson } from '../../lib/same-json.ts';
import { thaw } from './filesystems.ts';
import { detachLoop, type LoopDevice, listLoopDevices } from './loop-devices.ts';
import { loopOf, type Mount, mountAt } from './mounts.ts';
import type { NodeRecord } from './records.ts';
import type { Driver } from './work.ts';

export interface Reality {
  readonly mounts: readonly Mount[];
  /** Of the one volume's image. */
  readonly loops: readonly LoopDevice[];
  /** Whether there is anything at a path. */
  readonly exists: (path: string) => boolean;
}

function isMounted(path: string, reality: Reality): boolean {
  const mount = mountAt(reality.mounts, path);
  if (mount === undefined) return false;
  const device = loopOf(mount);
  return reality.loops.some((loop) => loop.device === device);
}

/**
 * Clears every step of the record that is no longer true. A record with neither a mount nor a place (the kubelet's
 * directory is gone, or the crash came before the first step) is dropped: no call will undo it. Pure.
 */
export function reconcile(record: NodeRecord, reality: Reality): NodeRecord {
  const { staging, frozen: _thawed, ...rest } = record;
  const mounted =
    staging !== undefined &&
    (staging.capability.type === 'mount'
      ? isMounted(staging.path, reality)
      : reality.loops.some((loop) => loop.readonly === staging.readonly));
  const keptStaging = staging !== undefined && (mounted || reality.exists(staging.path));
  return {
    ...rest,
    ...(keptStaging ? { staging: { ...staging, done: staging.done && mounted } } : {}),
    publications: record.publications
      .filter((each) => reality.exists(each.target))
      .map((each) => ({ ...each, done: each.done && isMounted(each.target, reality) })),
  };
}

/** Loop devices of the driver's images that are in no record and not mounted. Pure. */
export function leftoverLoops(
  loops: readonly LoopDevice[],
  mounts: readonly Mount[],
  images: { readonly directory: string; readonly used: ReadonlySet<string> },
): readonly LoopDevice[] {
  const mounted = new Set(mounts.map(loopOf));
  return loops.filter(
    (loop) =>
      loop.image.startsWith(`${images.directory}/`) && !images.used.has(loop.image) && !mounted.has(loop.device),
  );
}

export async function recover(driver: Driver): Promise<void> {
  const { store, exec, log } = driver;
  for (const record of store.allOnNode()) {
    // Thaw first: a call on a frozen filesystem blocks for ever.
    if (record.frozen === true && record.staging !== undefined) {
      await thaw(record.staging.path, exec);
      log('warn', 'Thawed a filesystem that was frozen when the driver ended', { volume: record.volumeId });
    }
  }
  const [mounts, loops] = [await readMounts(), await listLoopDevices()];
  for (const record of store.allOnNode()) {
    const image = store.volumeImage(record.volumeId);
    const own = loops.filter((loop) => loop.image === image && !loop.deleted);
    const now = reconcile(record, { mounts, loops: own, exists: existsSync });
    if (sameJson(now, record)) continue;
    await store.putOnNode(now);
    log('info', 'Updated the record of a volume on this node: its mounts or devices are gone', {
      volume: record.volumeId,
    });
  }
  const mounted = new Set(mounts.map(loopOf));
  const isUsed = (image: string): boolean => loops.some((loop) => loop.image === image && mounted.has(loop.device));
  const used = new Set(store.allOnNode().map((record) => store.volumeImage(record.volumeId)));
  for (const loop of leftoverLoops(loops, mounts, { directory: store.stateDir, used })) {
    await detachLoop(loop.device, exec);
    log('info', 'Detached an unused loop device', { device: loop.device, image: loop.image });
  }
  for (const volume of store.volumes()) {
    // An inline volume lives as long as its publication. One that is still mounted is in use.
    const stays =
      volume.ephemeral !== true || store.onNode(volume.id) !== undefined || isUsed(store.volumeImage(volume.id));
    if (stays) continue;
    await store.removeVolume(volume.id);
    log('info', 'Removed an inline volume whose pod is gone', { volume: volume.id });
  }
}
