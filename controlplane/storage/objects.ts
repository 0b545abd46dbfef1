// The storage objects as the controllers type them, the annotations that Kubernetes' storage components exchange,
// and predicates that all of them use. Pure.

import type * as core from 'kubernetes-types/core/v1';
import type * as storage from 'kubernetes-types/storage/v1';
import type { Pod, Stored } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';

export type PersistentVolume = Stored<core.PersistentVolume>;
export type PersistentVolumeClaim = Stored<core.PersistentVolumeClaim>;
export type StorageClass = Stored<storage.StorageClass>;
export type CsiDriver = Stored<storage.CSIDriver>;
export type CsiNode = Stored<storage.CSINode>;
export type VolumeAttachment = Stored<storage.VolumeAttachment>;
export type CsiStorageCapacity = Stored<storage.CSIStorageCapacity>;

export const ANNOTATIONS = {
  /** On a claim: it has been bound once; from then on a missing volume is a loss. */
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  /** On a claim or a volume: it was a controller that chose its partner, not a person. */
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  /** On a volume: the provisioner that made it and will delete it. */
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  /** On a claim: the provisioner that shall make its volume. */
  storageProvisioner: 'volume.kubernetes.io/storage-provisioner',
  betaStorageProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  /** On a claim: the node of its first consumer, chosen by the scheduler. */
  selectedNode: 'volume.kubernetes.io/selected-node',
  /** On a claim or a volume: its class, from before there was a field. */
  betaClass: 'volume.beta.kubernetes.io/storage-class',
  deletionSecretName: 'volume.kubernetes.io/provisioner-deletion-secret-name',
  deletionSecretNamespace: 'volume.kubernetes.io/provisioner-deletion-secret-namespace',
  /** On a pod's or claim's behalf, a resizer of a driver at work. */
  storageResizer: 'volume.kubernetes.io/storage-resizer',
} as const;

const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];
const NANO = 1_000_000_000n;

interface Annotated {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

export function annotation({ metadata }: Annotated, name: string): string | undefined {
  return getOwn(metadata.annotations, name);
}

/** The class that a claim names: '' is no class, undefined the default class. */
export function claimClass(claim: PersistentVolumeClaim): string | undefined {
  return annotation(claim, ANNOTATIONS.betaClass) ?? claim.spec?.storageClassName;
}

export function volumeClass(volume: PersistentVolume): string {
  return annotation(volume, ANNOTATIONS.betaClass) ?? volume.spec?.storageClassName ?? '';
}

export function volumeMode(spec: { readonly volumeMode?: string } | undefined): string {
  return spec?.volumeMode ?? 'Filesystem';
}

/** Bytes, rounded up; 0 for none or nonsense. */
export function bytesOf(quantity: string | undefined): bigint {
  const nano = parseQuantity(quantity ?? '0') ?? 0n;
  return (nano + NANO - 1n) / NANO;
}

export function requestedBytes(claim: PersistentVolumeClaim): bigint {
  return bytesOf(claim.spec?.resources?.requests?.['storage']);
}

export function capacityBytes(volume: PersistentVolume): bigint {
  return bytesOf(volume.spec?.capacity?.['storage']);
}

/** Bytes as the API prints a BinarySI quantity. */
export function formatBinary(bytes: bigint): string {
  let [value, suffix] = [bytes, ''];
  for (const next of ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']) {
    if (value === 0n || value % 1024n !== 0n) break;
    value /= 1024n;
    suffix = next;
  }
  return `${value}${suffix}`;
}

/** Whether the volume's claimRef refers to this claim: by its name, and by its uid once that is known. */
export function refersTo(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const reference = volume.spec?.claimRef;
  return (
    reference !== undefined &&
    reference.name === claim.metadata.name &&
    reference.namespace === claim.metadata.namespace &&
    ((reference.uid ?? '') === '' || reference.uid === claim.metadata.uid)
  );
}

export function isBound(claim: PersistentVolumeClaim): boolean {
  return annotation(claim, ANNOTATIONS.bindCompleted) !== undefined && (claim.spec?.volumeName ?? '') !== '';
}

export function isDefaultClass(storageClass: StorageClass): boolean {
  return DEFAULT_CLASS.some((name) => annotation(storageClass, name) === 'true');
}

/** The default class: of several the newest, and of those the first by name. */
export function defaultClass(classes: readonly StorageClass[]): StorageClass | undefined {
  const born = (one: StorageClass): number => parseRfc3339(one.metadata.creationTimestamp) ?? 0;
  return classes
    .filter(isDefaultClass)
    .toSorted((a, b) => born(b) - born(a) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
}

export type PodVolume = NonNullable<Pod['spec']['volumes']>[number];

/** The name of the claim behind a pod's volume; undefined for a volume without one. */
export function claimNameOf(pod: Pod, volume: PodVolume): string | undefined {
  if (volume.ephemeral !== undefined) return `${pod.metadata.name}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}

export function claimNamesOf(pod: Pod): string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => claimNameOf(pod, volume) ?? []);
}

/** Whether a claim was made for this pod, which then is its controller. */
export function isOwnedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  return (claim.metadata.ownerReferences ?? []).some(
    (owner) => owner.controller === true && owner.uid === pod.metadata.uid,
  );
}

export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}
