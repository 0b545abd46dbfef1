// VolumeCapability as the driver understands it: parsed strictly, compared, and checked against what a volume was made
// for. Pure.

import type { VolumeCapability, VolumeCapability__Output } from '../../proto/gen/csi/v1/VolumeCapability.ts';
import { invalid } from './errors.ts';

export const ACCESS_MODES = [
  'SINGLE_NODE_WRITER',
  'SINGLE_NODE_READER_ONLY',
  'MULTI_NODE_READER_ONLY',
  'MULTI_NODE_SINGLE_WRITER',
  'MULTI_NODE_MULTI_WRITER',
  'SINGLE_NODE_SINGLE_WRITER',
  'SINGLE_NODE_MULTI_WRITER',
] as const;
export type AccessMode = (typeof ACCESS_MODES)[number];

export const FILESYSTEMS = ['ext4', 'xfs'] as const;
export type FilesystemType = (typeof FILESYSTEMS)[number];
export const DEFAULT_FILESYSTEM: FilesystemType = 'ext4';

export type Capability =
  | { readonly type: 'block'; readonly mode: AccessMode }
  | {
      readonly type: 'mount';
      readonly mode: AccessMode;
      readonly fsType: FilesystemType;
      readonly flags: readonly string[];
      /** A numeric group id, or empty. */
      readonly group: string;
    };

/** Flags that change what is mounted where instead of how. */
const FORBIDDEN_FLAGS = /^(bind|rbind|remount|move|loop(=.*)?|offset=.*|sizelimit=.*|private|shared|slave|unbindable)$/;
const MAX_FLAGS_BYTES = 4096;

/** Throws INVALID_ARGUMENT for what is missing, unknown or unsupported. */
export function parseCapability(
  raw: VolumeCapability__Output | null | undefined,
  options: { readonly mountGroup?: boolean } = {},
): Capability {
  if (raw === null || raw === undefined) throw invalid('volume_capability is missing');
  const given = raw.access_mode?.mode;
  const mode = ACCESS_MODES.find((each) => each === given);
  if (mode === undefined) throw invalid(`access_mode ${given ?? ''} is missing or unknown`);
  if (raw.block !== null && raw.block !== undefined) return { type: 'block', mode };
  if (raw.mount === null || raw.mount === undefined)
    throw invalid('volume_capability has no access_type: block or mount');
  const { fs_type, mount_flags, volume_mount_group: group } = raw.mount;
  const fsType = fs_type === '' ? DEFAULT_FILESYSTEM : FILESYSTEMS.find((each) => each === fs_type);
  if (fsType === undefined) throw invalid(`fs_type "${fs_type}" is not supported: ${FILESYSTEMS.join(' or ')}`);
  if (mount_flags.reduce((sum, flag) => sum + Buffer.byteLength(flag), 0) > MAX_FLAGS_BYTES) {
    throw invalid('mount_flags exceed 4 KiB');
  }
  // Flags may be sensitive: the message names none.
  if (mount_flags.some((flag) => !/^[^\s,\0]+$/.test(flag) || FORBIDDEN_FLAGS.test(flag))) {
    throw invalid('mount_flags has a flag that is empty, holds a comma or white space, or changes what is mounted');
  }
  if (group !== '' && options.mountGroup !== true)
    throw invalid('volume_mount_group is given without VOLUME_MOUNT_GROUP');
  if (group !== '' && !/^\d{1,10}$/.test(group)) throw invalid('volume_mount_group is not a numeric group id');
  return { type: 'mount', mode, fsType, flags: mount_flags, group };
}

/** The message again, as responses carry it. */
export function capabilityMessage(capability: Capability): VolumeCapability {
  const access_mode = { mode: capability.mode };
  if (capability.type === 'block') return { access_mode, block: {} };
  return {
    access_mode,
    mount: { fs_type: capability.fsType, mount_flags: [...capability.flags], volume_mount_group: capability.group },
  };
}

export function sameCapability(a: Capability, b: Capability, options: { readonly group: boolean }): boolean {
  if (a.mode !== b.mode) return false;
  if (a.type === 'block' || b.type === 'block') return a.type === b.type;
  const flags = (each: readonly string[]): string => [...each].sort().join(',');
  return a.fsType === b.fsType && flags(a.flags) === flags(b.flags) && (!options.group || a.group === b.group);
}

export function isReaderOnly(mode: AccessMode): boolean {
  return mode === 'SINGLE_NODE_READER_ONLY' || mode === 'MULTI_NODE_READER_ONLY';
}

export function isMultiNode(mode: AccessMode): boolean {
  return mode.startsWith('MULTI_NODE_');
}

/** Whether a second target path on the same node is allowed (the specification's table for NodePublishVolume). */
export function allowsManyTargets(mode: AccessMode): boolean {
  return isMultiNode(mode) || mode === 'SINGLE_NODE_MULTI_WRITER';
}

/**
 * Whether a volume created with access mode `made` supports `wanted`. A volume here is a file on one node's disk, so
 * it could support every mode; the driver still enforces what the volume was created for.
 */
function covers(made: AccessMode, wanted: AccessMode): boolean {
  if (made === wanted || wanted === 'SINGLE_NODE_READER_ONLY') return true;
  if (wanted === 'MULTI_NODE_READER_ONLY') return isMultiNode(made);
  // SINGLE_NODE_WRITER is the older name of both of these, and must go on working.
  const singleWriter: readonly AccessMode[] = [
    'SINGLE_NODE_WRITER',
    'SINGLE_NODE_SINGLE_WRITER',
    'SINGLE_NODE_MULTI_WRITER',
  ];
  if (singleWriter.includes(wanted)) return !isReaderOnly(made);
  return made === 'MULTI_NODE_MULTI_WRITER' && wanted === 'MULTI_NODE_SINGLE_WRITER';
}

/** Why a volume that was made for `made` cannot be used as `wanted`; undefined when it can. */
export function whyUnsupported(made: readonly Capability[], wanted: Capability): string | undefined {
  const sameType = made.filter((each) => each.type === wanted.type);
  if (sameType.length === 0) return `the volume was not made for ${wanted.type} access`;
  const sameFs = sameType.filter(
    (each) => each.type === 'block' || wanted.type === 'block' || each.fsType === wanted.fsType,
  );
  if (sameFs.length === 0 && wanted.type === 'mount') return `the volume was not made for ${wanted.fsType}`;
  if (!sameFs.some((each) => covers(each.mode, wanted.mode))) return `the volume was not made for ${wanted.mode}`;
  return undefined;
}
