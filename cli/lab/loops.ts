// Detaches the loop devices whose files are a lab's: the CSI driver's volumes, and devices on top of them. Needs neither
// the driver nor its records.

import { thaw } from '../../csi/driver/filesystems.ts';
import { detachLoop, listLoopDevices } from '../../csi/driver/loop-devices.ts';
import { exec } from '../../lib/exec.ts';
import { isWithin } from '../../lib/mountinfo.ts';
import { readMounts } from '../../lib/mounts.ts';
import { resolvePath } from '../../lib/resolve-path.ts';

/**
 * Thaws the filesystems below the directory: a driver that was killed during a snapshot leaves one frozen, and the kernel
 * never releases a frozen one after its unmount.
 */
export async function thawBelow(directory: string): Promise<void> {
  const resolved = resolvePath(directory);
  const mounted = (await readMounts()).filter(
    (mount) => mount.source.startsWith('/dev/loop') && isWithin(mount.path, resolved),
  );
  const once = new Map(mounted.map((mount) => [mount.device, mount.path]));
  for (const path of once.values()) await thaw(path, exec);
}

/**
 * Detaches every loop device whose file is, or was before it was removed, below the directory; also those that are on
 * one of these devices in turn. To be called when nothing of the directory is mounted any more.
 */
export async function detachLoopsBelow(directory: string): Promise<void> {
  const resolved = resolvePath(directory);
  const ours = new Set<string>();
  // A loop device on a device file below a pod's directory is named by that path, or by the device's own.
  for (let before = -1; before !== ours.size; ) {
    before = ours.size;
    for (const loop of await listLoopDevices()) {
      if (isWithin(loop.image, resolved) || ours.has(loop.image)) ours.add(loop.device);
    }
  }
  // Those on top first: the lower ones are in use until then.
  for (const device of [...ours].reverse()) await detachLoop(device, exec);
}
