// Filesystems on devices: what is there, making one, growing one, and holding one still. Runs the
// field's own tools; decides nothing about volumes.

import { type Exec, execOk } from '../../lib/exec.ts';
import type { FilesystemType } from './capability.ts';
import { DriverError, precondition } from './errors.ts';

/** What is on a device: a filesystem or another content that blkid recognises; undefined for a blank one. */
export async function probeFilesystem(device: string, run: Exec): Promise<string | undefined> {
  const result = await run('blkid', [
    '--probe',
    '--match-tag',
    'TYPE',
    '--match-tag',
    'PTTYPE',
    '--output',
    'value',
    device,
  ]);
  // 2: nothing is known to be there.
  if (result.code === 2) return undefined;
  if (result.code !== 0)
    throw new DriverError('INTERNAL', `blkid ${device}: ${result.stderr.trim() || `exit ${result.code}`}`);
  return result.stdout.trim().split('\n')[0];
}

const MKFS: Readonly<Record<FilesystemType, readonly string[]>> = {
  // No blocks are kept for root. Nothing is discarded: that would make holes in an image that has its blocks, mkfs's own
  // discard as well as the kernel's lazy zeroing of inode tables. Journal and tables take their blocks now: an ext4 whose
  // journal finds no room on a full disk below is read-only from then on, while one that lacks room for data is not.
  ext4: ['-q', '-F', '-m', '0', '-E', 'nodiscard,lazy_itable_init=0,lazy_journal_init=0'],
  xfs: ['-q', '-f', '-K'],
};

export async function makeFilesystem(type: FilesystemType, device: string, run: Exec): Promise<void> {
  await execOk(`mkfs.${type}`, [...MKFS[type], device], {}, run);
}

/** Mount options that the kind of filesystem needs. A copy of an xfs volume has the original's UUID. Pure. */
export function filesystemOptions(type: FilesystemType, group: string): readonly string[] {
  return [...(type === 'xfs' ? ['nouuid'] : []), ...(group === '' ? [] : ['grpid'])];
}

/**
 * Mends what an ext4 brings along from a crash, or from a disk that was full, before it is mounted writable; a sound one takes
 * it a moment. Throws INTERNAL for damage that only a person may mend. xfs does this when it is mounted.
 */
export async function checkFilesystem(device: string, run: Exec): Promise<void> {
  const { code, stdout, stderr } = await run('e2fsck', ['-p', device]);
  // 0: sound, 1: mended, 4: errors are left. Above that it could not check (the device is in use): mount will fail, or not.
  if (code === 4) {
    throw new DriverError(
      'INTERNAL',
      `e2fsck -p found errors on ${device} that it does not mend by itself: ${(stdout || stderr).trim()}`,
    );
  }
}

/** Before it is mounted: only ext4 can. */
export async function growUnmounted(device: string, run: Exec): Promise<void> {
  // resize2fs requires a check first; exit code 1: errors were corrected.
  const check = await run('e2fsck', ['-f', '-p', device]);
  if (check.code !== 0 && check.code !== 1) {
    throw new DriverError('INTERNAL', `e2fsck ${device}: ${(check.stdout || check.stderr).trim()}`);
  }
  await execOk('resize2fs', [device], {}, run);
}

/**
 * While it is mounted at `path`. Throws FAILED_PRECONDITION when the kernel does not allow it: ext4's online growth needs
 * CAP_SYS_RESOURCE, which a container may lack.
 */
export async function growMounted(type: FilesystemType, device: string, path: string, run: Exec): Promise<void> {
  if (type === 'xfs') {
    await execOk('xfs_growfs', [path], {}, run);
    return;
  }
  const result = await run('resize2fs', [device]);
  if (result.code === 0) return;
  const output = (result.stderr || result.stdout).trim();
  if (/permission denied|operation not permitted/i.test(output)) {
    throw precondition(
      `ext4 cannot grow while it is mounted: the driver lacks CAP_SYS_RESOURCE; it grows when it is staged next. resize2fs: ${output}`,
    );
  }
  throw new DriverError('INTERNAL', `resize2fs ${device}: ${output}`);
}

/** Nothing is written to the filesystem until `thaw`, and all that was is on the device. */
export async function freeze(path: string, run: Exec): Promise<void> {
  await execOk('fsfreeze', ['--freeze', path], {}, run);
}

/** No error when it is not frozen. */
export async function thaw(path: string, run: Exec): Promise<void> {
  const result = await run('fsfreeze', ['--unfreeze', path]);
  if (result.code === 0 || /invalid argument/i.test(result.stderr)) return;
  throw new DriverError('INTERNAL', `fsfreeze ${path}: ${result.stderr.trim()}`);
}

export async function flushDevice(device: string, run: Exec): Promise<void> {
  await execOk('blockdev', ['--flushbufs', device], {}, run);
}
