// emptyDir volumes: scratch space of the pod, on disk, in memory or in huge pages. What is in it belongs to the pod: it is
// set up once, and a note beside the volume records that, so that a restarted agent leaves it alone.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory, makeHugetlbfs, makeTmpfs, tmpfsSize } from './directories.ts';
import { hugePagesOption, isHugePagesMedium } from './huge-pages.ts';
import { applyFsGroup } from './ownership.ts';
import { type VolumePlan, type VolumeType, volumeDir, volumeMetaDir } from './volume-type.ts';

const plugin = 'kubernetes.io/empty-dir';
const MODE = 0o777;

export interface EmptyDirPlan extends VolumePlan {
  readonly medium:
    | { readonly kind: 'disk' }
    | { readonly kind: 'memory'; readonly sizeBytes: number | undefined }
    | { readonly kind: 'hugePages'; readonly option: string };
  readonly gid: number | undefined;
  /** The directory of the note. */
  readonly meta: string;
}

export const emptyDirVolume: VolumeType<EmptyDirPlan> = {
  plugin,
  plan(input) {
    const { medium = '', sizeLimit } = input.volume.emptyDir ?? {};
    const plan = {
      path: volumeDir(input.podDir, plugin, input.volume.name),
      readOnly: false,
      managed: true,
      gid: input.pod.spec.securityContext?.fsGroup,
      meta: volumeMetaDir(input.podDir, plugin, input.volume.name),
    };
    if (medium === '') return { ...plan, medium: { kind: 'disk' } };
    if (medium === 'Memory') return { ...plan, medium: { kind: 'memory', sizeBytes: tmpfsSize(input, sizeLimit) } };
    if (!isHugePagesMedium(medium)) throw new Error(`unknown storage medium "${medium}"`);
    return { ...plan, medium: { kind: 'hugePages', option: hugePagesOption(medium, input.pod) } };
  },
  async mount({ path, medium, gid, meta }, _pod, host) {
    const ready = join(meta, 'ready');
    // A tmpfs that is gone (the machine was restarted) is made again, ownership included.
    let fresh: boolean;
    if (medium.kind === 'disk') fresh = await makeDirectory(path, MODE);
    else if (medium.kind === 'memory') fresh = await makeTmpfs(path, medium.sizeBytes, host);
    else fresh = await makeHugetlbfs(path, MODE, medium.option, host);
    if (!fresh && existsSync(ready)) return;
    if (gid !== undefined) await applyFsGroup(path, { gid });
    mkdirSync(meta, { recursive: true, mode: 0o750 });
    writeFileSync(ready, '');
  },
};
