// The Identity service: who the driver is, what it can do as a whole, and whether it can work on this machine.

import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import type { IdentityDefinition } from '../../proto/gen/csi/v1/Identity.ts';
import { precondition } from './errors.ts';
import { DRIVER_NAME, VENDOR_VERSION } from './names.ts';
import type { Service } from './work.ts';

/** Without these nothing works; mkfs.xfs and its like are only needed for xfs volumes. */
const PROGRAMS = ['losetup', 'mount', 'umount', 'blkid', 'mkfs.ext4', 'cp'];

async function isInPath(program: string): Promise<boolean> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    try {
      await access(join(directory, program), constants.X_OK);
      return true;
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) throw error;
    }
  }
  return false;
}

export const identity: Service<IdentityDefinition> = {
  GetPluginInfo: async () => ({ name: DRIVER_NAME, vendor_version: VENDOR_VERSION, manifest: {} }),

  GetPluginCapabilities: async () => ({
    capabilities: [
      { service: { type: 'CONTROLLER_SERVICE' } },
      { service: { type: 'VOLUME_ACCESSIBILITY_CONSTRAINTS' } },
      { volume_expansion: { type: 'ONLINE' } },
    ],
  }),

  /** Reads PATH and /dev: cheap enough for any number of calls. */
  Probe: async () => {
    const found = await Promise.all(PROGRAMS.map(isInPath));
    const missing = PROGRAMS.filter((_, index) => found[index] === false);
    if (missing.length > 0) throw precondition(`programs are missing: ${missing.join(', ')}`);
    try {
      await access('/dev/loop-control', constants.R_OK | constants.W_OK);
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'EACCES', 'EPERM')) throw error;
      throw precondition('/dev/loop-control cannot be opened: the kernel has no loop devices here, or /dev hides them');
    }
    return { ready: { value: true } };
  },
};
