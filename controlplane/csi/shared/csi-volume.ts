// How a volume is described to its driver: access modes, access type, mount flags. Pure.

import type { VolumeCapability } from '../../../proto/gen/csi/v1/VolumeCapability.ts';
import { volumeMode } from '../../storage/objects.ts';

type Mode = NonNullable<NonNullable<VolumeCapability['access_mode']>['mode']>;

/** The fields that specs of claims and volumes share. */
export interface Described {
  readonly accessModes?: readonly string[];
  readonly volumeMode?: string;
  readonly mountOptions?: readonly string[];
}

/**
 * One access mode in CSI's terms. `single` is the capability SINGLE_NODE_MULTI_WRITER: with it a driver distinguishes one pod
 * from one node.
 */
function csiAccessMode(mode: string, single: boolean): Mode {
  switch (mode) {
    case 'ReadWriteMany':
      return 'MULTI_NODE_MULTI_WRITER';
    case 'ReadOnlyMany':
      return 'MULTI_NODE_READER_ONLY';
    case 'ReadWriteOncePod':
      return single ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER';
    case 'ReadWriteOnce':
      return single ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER';
    default:
      return 'UNKNOWN';
  }
}

function capability(mode: Mode, described: Described, fsType: string): VolumeCapability {
  const access_mode = { mode };
  if (volumeMode(toMode(described)) === 'Block') return { block: {}, access_mode };
  return { mount: { fs_type: fsType, mount_flags: [...(described.mountOptions ?? [])] }, access_mode };
}

function toMode({ volumeMode: mode }: Described): { readonly volumeMode?: string } {
  return mode === undefined ? {} : { volumeMode: mode };
}

/** One capability per access mode. */
export function csiCapabilities(described: Described, fsType: string, single: boolean): VolumeCapability[] {
  return (described.accessModes ?? []).map((mode) => capability(csiAccessMode(mode, single), described, fsType));
}

/** The one capability that attaching and expanding speak of: the widest of the volume's access modes. */
export function csiCapability(described: Described, fsType: string, single: boolean): VolumeCapability {
  const order = ['ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
  const widest = order.find((mode) => described.accessModes?.includes(mode)) ?? 'ReadWriteOnce';
  // Readers on many nodes and one writer make a writer on many nodes.
  const modes = described.accessModes ?? [];
  const mixed = modes.includes('ReadOnlyMany') && modes.includes('ReadWriteOnce');
  const mode = mixed ? 'MULTI_NODE_SINGLE_WRITER' : csiAccessMode(widest, single);
  return capability(modes.includes('ReadWriteMany') ? 'MULTI_NODE_MULTI_WRITER' : mode, described, fsType);
}
