// Whether SELinux is on, as the kubelet finds out: its file system is mounted, and a policy has labelled this process.

import { readFile, statfs } from 'node:fs/promises';
import { isErrno } from '../../lib/errors.ts';

const SELINUX_DIRECTORY = '/sys/fs/selinux';
/** statfs(2): SELINUX_MAGIC. */
const SELINUX_MAGIC = 0xf97cff8c;

/** `fsType`: of the directory, where there is one; `label`: of this process. Before a policy is loaded that is "kernel". */
export function isSELinuxOn(fsType: number | undefined, label: string): boolean {
  return fsType !== undefined && fsType >>> 0 === SELINUX_MAGIC && label.replace(/[\0\n]+$/, '') !== 'kernel';
}

export async function readSELinux(): Promise<boolean> {
  try {
    const { type } = await statfs(SELINUX_DIRECTORY);
    return isSELinuxOn(type, await readFile('/proc/self/attr/current', 'utf8'));
  } catch (error) {
    // EINVAL: no security module of this kernel labels processes.
    if (isErrno(error, 'ENOENT', 'EINVAL')) return false;
    throw error;
  }
}
