// emptyDir volumes: scratch space of the pod, on disk or in memory. What is in it belongs to the pod: it is set up once,
// and a note beside the volume says so, so that a restarted agent leaves it alone.

import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { makeDirectory, makeTmpfs, tmpfsSize } from './directories.ts';
import { applyFsGroup } from './ownership.ts';
import { type VolumePlan, type VolumeType, volumeDir, volumeMetaDir } from './volume-type.ts';

const plugin = 'kubernetes.io/empty-dir';

export interface EmptyDirPlan extends VolumePlan {
  readonly medium: 'disk' | 'memory';
  readonly sizeBytes: number | undefined;
  readonly gid: number | undefined;
  /** The directory of the note. */
  readonly meta: string;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

export const emptyDirVolume: VolumeType<EmptyDirPlan> = {
  plugin,
  plan(input) {
    const { medium = '', sizeLimit } = input.volume.emptyDir ?? {};
    if (medium !== '' && medium !== 'Memory') throw new Error(`emptyDir medium "${medium}" is not supported`);
    return {
      path: volumeDir(input.podDir, plugin, input.volume.name),
      readOnly: false,
      managed: true,
      medium: medium === 'Memory' ? 'memory' : 'disk',
      sizeBytes: medium === 'Memory' ? tmpfsSize(input, sizeLimit) : undefined,
      gid: input.pod.spec.securityContext?.fsGroup,
      meta: volumeMetaDir(input.podDir, plugin, input.volume.name),
    };
  },
  async mount(plan, _pod, host) {
    const ready = join(plan.meta, 'ready');
    // A tmpfs that is gone (the machine was restarted) is made again, ownership included.
    const fresh =
      plan.medium === 'memory'
        ? await makeTmpfs(plan.path, plan.sizeBytes, host)
        : await makeDirectory(plan.path, 0o777);
    if (!fresh && (await exists(ready))) return;
    if (plan.gid !== undefined) await applyFsGroup(plan.path, plan.gid);
    await mkdir(plan.meta, { recursive: true, mode: 0o750 });
    await writeFile(ready, '');
  },
};
