// nfs volumes: an export of another machine, mounted once per pod. Owners and modes are the server's; nothing in
// it is ever changed or removed.

import { accessSync, constants, mkdirSync, rmdirSync } from 'node:fs';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { mountAt } from '../../lib/mountinfo.ts';
import { type VolumePlan, type VolumeType, volumeDir } from './volume-type.ts';

const plugin = 'kubernetes.io/nfs';
/** What mount(8) hands an NFS mount to. */
const HELPERS: readonly string[] = ['/sbin/mount.nfs', '/usr/sbin/mount.nfs'];

export interface NfsPlan extends VolumePlan {
  /** "server:/path" */
  readonly source: string;
  readonly options: readonly string[];
}

/** An IPv6 address is written in brackets. */
function host(server: string): string {
  return server.includes(':') && !server.startsWith('[') ? `[${server}]` : server;
}

export const nfsVolume: VolumeType<NfsPlan> = {
  plugin,
  plan({ volume, podDir, mountOptions = [], readOnly = false }) {
    const { server = '', path = '', readOnly: own = false } = volume.nfs ?? {};
    if (server === '' || server.startsWith('-')) throw new Error(`nfs server "${server}" is not a host`);
    if (!path.startsWith('/')) throw new Error(`nfs path "${path}" must be absolute`);
    const readOnlyAtAll = own || readOnly;
    return {
      path: volumeDir(podDir, plugin, volume.name),
      readOnly: readOnlyAtAll,
      managed: false,
      source: `${host(server)}:${path}`,
      options: [...new Set([...mountOptions, ...(readOnlyAtAll ? ['ro'] : [])])],
    };
  },
  async mount({ path, source, options }, _pod, { mounter }) {
    if (mountAt(await mounter.list(), path)?.fsType.startsWith('nfs') === true) return;
    mkdirSync(path, { recursive: true, mode: 0o750 });
    try {
      await mounter.mount({ fsType: 'nfs', source, target: path, options });
    } catch (error) {
      rmdirSync(path);
      const hint = HELPERS.some(isProgram)
        ? ''
        : '; this machine has no mount.nfs, without which mount cannot speak to NFS servers (Debian: nfs-common)';
      throw new Error(`${errorMessage(error)}${hint}`, { cause: error });
    }
  },
};

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES')) return false;
    throw error;
  }
}
