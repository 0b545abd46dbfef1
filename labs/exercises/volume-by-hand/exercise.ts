// A volume by hand: the calls that a control plane and a kubelet make of a CSI driver.

import { join } from 'node:path';
import { listLoopDevices } from '../../../csi/driver/loop-devices.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { isWithin, type MountEntry, mountAt } from '../../../lib/mountinfo.ts';
import { readMounts } from '../../../lib/mounts.ts';
import { resolvePath } from '../../../lib/resolve-path.ts';
import { type Exercise, type Finding, finding } from '../model.ts';

type Mount = Pick<MountEntry, 'path' | 'fsType' | 'source' | 'device'>;

export interface Facts {
  /** The exercise's directory, links resolved. */
  readonly directory: string;
  /** Loop devices, and the files behind them. */
  readonly loops: readonly { readonly device: string; readonly image: string }[];
  readonly mounts: readonly Mount[];
  /** Of the file that is written through the published path, read through the staged one. */
  readonly greeting: string | undefined;
}

function shown(mount: Mount | undefined): string {
  return mount === undefined ? 'nothing is mounted' : `${mount.fsType} of ${mount.source}`;
}

/** Pure. */
export function evaluate({ directory, loops, mounts, greeting }: Facts): readonly Finding[] {
  const own = loops.filter(({ image }) => isWithin(image, join(directory, 'state')));
  const staged = mountAt(mounts, join(directory, 'staging'));
  const published = mountAt(mounts, join(directory, 'pods/volume'));
  return [
    finding(
      'loop devices of the driver’s files',
      own.map(({ device, image }) => `${device}: ${image.slice(directory.length + 1)}`).join(', ') || 'none',
      own.length > 0,
      'NodeStageVolume is to attach one',
    ),
    finding(
      'mount on staging',
      shown(staged),
      staged?.fsType === 'ext4' && own.some(({ device }) => device === staged.source),
      'an ext4 of that device: NodeStageVolume',
    ),
    finding(
      'mount on pods/volume',
      shown(published),
      published !== undefined && published.device === staged?.device,
      'the same filesystem: NodePublishVolume',
    ),
    finding(
      'file greeting in the volume',
      greeting?.trim() ?? 'there is none',
      greeting !== undefined,
      'write one through pods/volume',
    ),
  ];
}

export const volumeByHand: Exercise = {
  name: 'volume-by-hand',
  title: 'A volume by hand, with a CSI driver',
  lesson: 'A CSI volume is staged once on each node and published once for each pod: a mount, and a bind mount of it.',
  minutes: 15,
  hints: [
    'All commands in one shell: `$capability` and `$volume` have to stay set. driver.log has what the driver says.',
    'The order is CreateVolume, NodeStageVolume, NodePublishVolume; the driver refuses what comes too early, and says why.',
    'The volume_context has to be the one that CreateVolume answered: look at volume.json.',
  ],
  variables: ({ directory }) => ({ CSI_ENDPOINT: `unix://${join(directory, 'csi.sock')}` }),
  check: async ({ directory }) =>
    evaluate({
      directory: resolvePath(directory),
      loops: await listLoopDevices(),
      mounts: await readMounts(),
      greeting: await readFileIfExists(join(directory, 'staging/greeting')),
    }),
};
