// What a CSI volume of a pod is, made of its PersistentVolume or of the pod's inline volume, and what its driver is given in
// each call. Pure.

import type { PersistentVolume, PersistentVolumeClaim, SecretReference } from 'kubernetes-types/core/v1';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import type { Pod, Stored } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { AccessMode, VolumeCapability } from '../../ports/csi.ts';
import type { Volume } from '../volume-type.ts';
import { ephemeralHandle } from './layout.ts';

export interface CsiVolume {
  /** The PersistentVolume's name, or the pod's name for an inline volume: in paths and in events. */
  readonly specName: string;
  readonly driver: string;
  readonly handle: string;
  readonly lifecycle: 'Persistent' | 'Ephemeral';
  readonly block: boolean;
  readonly readOnly: boolean;
  readonly fsType: string;
  readonly mountFlags: readonly string[];
  readonly accessModes: readonly string[];
  readonly attributes: Readonly<Record<string, string>>;
  readonly secrets: {
    readonly stage?: SecretReference;
    readonly publish?: SecretReference;
    readonly expand?: SecretReference;
  };
  readonly claim?: { readonly namespace: string; readonly name: string; readonly uid: string };
}

export function persistentCsiVolume(
  volume: Stored<PersistentVolume>,
  claim: Stored<PersistentVolumeClaim>,
  readOnly: boolean,
): CsiVolume {
  const { csi, mountOptions = [], accessModes = [], volumeMode } = volume.spec ?? {};
  if (csi === undefined) throw new Error(`PersistentVolume ${volume.metadata.name} has no csi source`);
  const { nodeStageSecretRef: stage, nodePublishSecretRef: publish, nodeExpandSecretRef: expand } = csi;
  return {
    specName: volume.metadata.name,
    driver: csi.driver,
    handle: csi.volumeHandle,
    lifecycle: 'Persistent',
    block: volumeMode === 'Block',
    // csi.readOnly is for attaching alone, as in the kubelet.
    readOnly,
    fsType: csi.fsType ?? '',
    mountFlags: mountOptions,
    accessModes,
    attributes: csi.volumeAttributes ?? {},
    secrets: {
      ...(stage === undefined ? {} : { stage }),
      ...(publish === undefined ? {} : { publish }),
      ...(expand === undefined ? {} : { expand }),
    },
    claim: { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name, uid: claim.metadata.uid },
  };
}

export function inlineCsiVolume(pod: Pod, volume: Volume): CsiVolume {
  const { csi } = volume;
  if (csi === undefined) throw new Error(`volume ${volume.name} has no csi source`);
  const secret = csi.nodePublishSecretRef?.name;
  return {
    specName: volume.name,
    driver: csi.driver,
    handle: ephemeralHandle(pod.metadata.uid, volume.name),
    lifecycle: 'Ephemeral',
    block: false,
    readOnly: csi.readOnly === true,
    fsType: csi.fsType ?? '',
    mountFlags: [],
    accessModes: [],
    attributes: csi.volumeAttributes ?? {},
    secrets: secret === undefined ? {} : { publish: { name: secret, namespace: pod.metadata.namespace } },
  };
}

/** The first access mode counts, as in the kubelet; none is ReadWriteOnce. */
export function accessMode(modes: readonly string[], capabilities: ReadonlySet<string>): AccessMode {
  const singleNodeMultiWriter = capabilities.has('SINGLE_NODE_MULTI_WRITER');
  switch (modes[0] ?? 'ReadWriteOnce') {
    case 'ReadWriteOnce':
      return singleNodeMultiWriter ? 'SINGLE_NODE_MULTI_WRITER' : 'SINGLE_NODE_WRITER';
    case 'ReadWriteOncePod':
      return singleNodeMultiWriter ? 'SINGLE_NODE_SINGLE_WRITER' : 'SINGLE_NODE_WRITER';
    case 'ReadOnlyMany':
      return 'MULTI_NODE_READER_ONLY';
    case 'ReadWriteMany':
      return 'MULTI_NODE_MULTI_WRITER';
    default:
      throw new Error(`unknown access mode "${modes[0]}"`);
  }
}

/** Who uses a volume already; 'published' from just before NodePublishVolume is called. */
export interface VolumeUser {
  readonly podUid: string;
  readonly phase: 'referenced' | 'published';
}

/** Why the pod may not have the volume now, as the kubelet's message, or undefined: one for one pod that another one has. */
export function exclusivityProblem(
  accessModes: readonly string[],
  podUid: string,
  users: readonly VolumeUser[],
): string | undefined {
  // With several modes it is undefined which one the pod uses.
  if (accessModes.length !== 1 || accessModes[0] !== 'ReadWriteOncePod') return undefined;
  const taken = users.some((user) => user.podUid !== podUid && user.phase === 'published');
  return taken ? 'volume uses the ReadWriteOncePod access mode and is already in use by another pod' : undefined;
}

/** `fsGroup` goes to a driver that mounts for a group itself (VOLUME_MOUNT_GROUP), and only to such a one. */
export function volumeCapability(
  volume: Pick<CsiVolume, 'block' | 'fsType' | 'mountFlags' | 'accessModes'>,
  capabilities: ReadonlySet<string>,
  fsGroup: number | undefined,
): VolumeCapability {
  const access_mode = { mode: accessMode(volume.accessModes, capabilities) };
  if (volume.block) return { access_mode, access_type: 'block', block: {} };
  const group = fsGroup !== undefined && capabilities.has('VOLUME_MOUNT_GROUP') ? String(fsGroup) : '';
  return {
    access_mode,
    access_type: 'mount',
    mount: { fs_type: volume.fsType, mount_flags: [...volume.mountFlags], volume_mount_group: group },
  };
}

/** Whether the agent itself applies fsGroup (fsGroupPolicy of the CSIDriver). */
export function appliesFsGroup(
  volume: Pick<CsiVolume, 'readOnly' | 'fsType' | 'accessModes' | 'lifecycle' | 'block'>,
  driver: CSIDriverSpec | undefined,
  capabilities: ReadonlySet<string>,
  fsGroup: number | undefined,
): boolean {
  if (fsGroup === undefined || volume.block || capabilities.has('VOLUME_MOUNT_GROUP')) return false;
  const policy = driver?.fsGroupPolicy ?? 'ReadWriteOnceWithFSType';
  if (policy === 'None' || volume.readOnly) return false;
  if (policy === 'File') return true;
  if (volume.fsType === '') return false;
  if (volume.lifecycle === 'Ephemeral') return true;
  return volume.accessModes.some((mode) => mode === 'ReadWriteOnce' || mode === 'ReadWriteOncePod');
}

/** Why the driver may not serve a volume of this kind, or undefined. A driver without an object serves claims only. */
export function lifecycleProblem(
  { driver, lifecycle }: Pick<CsiVolume, 'driver' | 'lifecycle'>,
  spec: CSIDriverSpec | undefined,
): string | undefined {
  const modes = spec?.volumeLifecycleModes ?? ['Persistent'];
  if (modes.length === 0 ? lifecycle === 'Persistent' : modes.includes(lifecycle)) return undefined;
  const list = modes.map((mode) => `"${mode}"`).join(' ');
  return spec === undefined
    ? `volume mode "${lifecycle}" not supported by driver ${driver} (no CSIDriver object)`
    : `volume mode "${lifecycle}" not supported by driver ${driver} (only supports [${list}])`;
}

export interface DriverToken {
  readonly audience: string;
  readonly token: string;
  /** Epoch ms. */
  readonly expiresAt: EpochMs;
}

/** volume_context of NodePublishVolume: the volume's own attributes, then the pod's fields for CSIDrivers with podInfoOnMount. */
export function publishVolumeContext(
  volume: Pick<CsiVolume, 'attributes' | 'lifecycle'>,
  pod: Pod,
  driver: CSIDriverSpec | undefined,
  tokens: readonly DriverToken[],
): Record<string, string> {
  const context: Record<string, string> = { ...volume.attributes };
  if (driver?.podInfoOnMount === true) {
    context['csi.storage.k8s.io/pod.name'] = pod.metadata.name;
    context['csi.storage.k8s.io/pod.namespace'] = pod.metadata.namespace;
    context['csi.storage.k8s.io/pod.uid'] = pod.metadata.uid;
    context['csi.storage.k8s.io/serviceAccount.name'] = pod.spec.serviceAccountName ?? '';
    context['csi.storage.k8s.io/ephemeral'] = String(volume.lifecycle === 'Ephemeral');
  }
  if (tokens.length > 0) {
    const byAudience = tokens.map(({ audience, token, expiresAt }) => {
      const expirationTimestamp = rfc3339(expiresAt);
      return [audience, { token, expirationTimestamp }];
    });
    context['csi.storage.k8s.io/serviceAccount.tokens'] = JSON.stringify(Object.fromEntries(byAudience));
  }
  return context;
}
