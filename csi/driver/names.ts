// The names that the driver shares with its callers, and the ids of volumes and snapshots. Pure.

import { createHash } from 'node:crypto';

export const DRIVER_NAME = 'loop.csi.nodelet';
/** The topology domain: each node has its own disk, so each is a segment of its own. */
export const TOPOLOGY_KEY = `topology.${DRIVER_NAME}/node`;
export const VENDOR_VERSION = '0.1.0';

/** The one parameter of a StorageClass that is the driver's own, also the volume_context of every volume. */
export const ALLOCATION_KEY = 'allocation';
export type Allocation = 'sparse' | 'full';

/** What ControllerPublishVolume hands to the node: names one attachment of one volume. */
export const ATTACHMENT_KEY = `${DRIVER_NAME}/attachment`;

/** volume_context of an inline volume, as the kubelet sets it. */
export const EPHEMERAL_KEY = 'csi.storage.k8s.io/ephemeral';
export const TOKENS_KEY = 'csi.storage.k8s.io/serviceAccount.tokens';
/** Attribute of an inline volume: its size as a quantity. */
export const SIZE_KEY = 'size';

/** Keys that Kubernetes adds to parameters and contexts, and that are no driver's. */
export function isKubernetesKey(key: string): boolean {
  return key.startsWith('csi.storage.k8s.io/') || key.startsWith('storage.kubernetes.io/');
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

/**
 * The id follows from the name, so that a CreateVolume that is called again, after a crash at any point, finds what the
 * first one made.
 */
export function volumeIdOf(name: string): string {
  return `vol-${digest(name)}`;
}

export function snapshotIdOf(name: string): string {
  return `snap-${digest(name)}`;
}

/** The ids that the kubelet makes up for inline volumes. */
export function isEphemeralId(id: string): boolean {
  return /^csi-[0-9a-f]{64}$/.test(id);
}

/** Whether an id can be a directory's name here: anything else was never given out. */
export function isSafeId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(id);
}

/** A fingerprint of one attachment, for publish_context. */
export function attachmentOf(volumeId: string, nodeId: string): string {
  return digest(`${volumeId}\0${nodeId}`);
}
