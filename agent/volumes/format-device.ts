// Formats an empty block device, as the kubelet's mount utilities do. A device with any content is
// never touched.

import type { Exec } from '../../lib/exec.ts';
import { getOwn } from '../../lib/own-property.ts';

const TIMEOUT_MS = 120_000;
/** The kubelet's mkfs options. */
const MKFS_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  ext3: ['-F', '-m0'],
  ext4: ['-F', '-m0'],
};

/** Rejects with mkfs's error output. Does nothing when blkid finds any file system, partition table or other content. */
export async function formatIfEmpty(device: string, fsType: string, exec: Exec): Promise<void> {
  const probe = await exec('blkid', ['-p', '-s', 'TYPE', '-s', 'PTTYPE', '-o', 'export', device], {
    timeoutMs: TIMEOUT_MS,
  });
  // 2 is "nothing found"; 8 is "something ambivalent is there".
  if (probe.code === 0) return;
  if (probe.code !== 2) {
    throw new Error(`blkid ${device} failed: ${(probe.stderr || probe.stdout).trim() || `exit status ${probe.code}`}`);
  }
  const made = await exec(`mkfs.${fsType}`, [...(getOwn(MKFS_OPTIONS, fsType) ?? []), device], {
    timeoutMs: TIMEOUT_MS,
  });
  if (made.code !== 0) {
    throw new Error(`mkfs.${fsType} ${device} failed: ${(made.stderr || made.stdout).trim()}`);
  }
}
