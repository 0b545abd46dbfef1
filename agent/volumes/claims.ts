// Whether the pod may use the claim that its volume names, and which PersistentVolume is behind it: the kubelet's
// checks and messages. Pure.

import type { PersistentVolume, PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { Pod, Stored } from '../../client/types.ts';
import type { Volume } from './volume-type.ts';

export type Claim = Stored<PersistentVolumeClaim>;
export type PV = Stored<PersistentVolume>;

export interface ClaimReference {
  readonly namespace: string;
  readonly name: string;
  /** The claim is the pod's own (a generic ephemeral volume). */
  readonly ownedByPod: boolean;
  readonly readOnly: boolean;
}

export function claimReference(pod: Pod, volume: Volume): ClaimReference {
  const { namespace, name } = pod.metadata;
  if (volume.ephemeral !== undefined) {
    return { namespace, name: `${name}-${volume.name}`, ownedByPod: true, readOnly: false };
  }
  const { claimName = '', readOnly = false } = volume.persistentVolumeClaim ?? {};
  return { namespace, name: claimName, ownedByPod: false, readOnly };
}

/** A failure to find out what is behind a claim, in the kubelet's frame. */
export function claimFailure({ namespace, name }: ClaimReference, why: string, cause?: unknown): Error {
  return new Error(`error processing PVC ${namespace}/${name}: ${why}`, { cause });
}

/** The kubelet's message about an object that it could not get: "PVC" or "PV pv-1". */
export function fetchFailed(reference: ClaimReference, what: string, why: string, cause?: unknown): Error {
  return claimFailure(reference, `failed to fetch ${what} from API server: ${why}`, cause);
}

/** The name of the PersistentVolume. Throws an Error with the reason when the pod cannot use the claim. */
export function boundVolumeName(pod: Pod, reference: ClaimReference, claim: Claim | undefined): string {
  const { namespace, name } = reference;
  if (claim === undefined) throw fetchFailed(reference, 'PVC', `persistentvolumeclaims "${name}" not found`);
  if (claim.metadata.deletionTimestamp !== undefined) throw claimFailure(reference, 'PVC is being deleted');
  if (claim.status?.phase !== 'Bound') throw claimFailure(reference, 'PVC is not bound');
  const volumeName = claim.spec?.volumeName ?? '';
  if (volumeName === '') throw claimFailure(reference, 'PVC has empty pvc.Spec.VolumeName');
  if (reference.ownedByPod && !isOwnedBy(claim, pod)) {
    const of = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    throw new Error(`PVC ${namespace}/${name} was not created for ${of} (pod is not owner)`);
  }
  return volumeName;
}

function isOwnedBy(claim: Claim, pod: Pod): boolean {
  const controller = claim.metadata.ownerReferences?.find((owner) => owner.controller === true);
  return controller?.uid === pod.metadata.uid;
}

/** Throws an Error when the volume is not this claim's. */
export function checkBinding(reference: ClaimReference, claim: Claim, volumeName: string, volume: PV | undefined): PV {
  if (volume === undefined) {
    throw fetchFailed(reference, `PV ${volumeName}`, `persistentvolumes "${volumeName}" not found`);
  }
  const bound = volume.spec?.claimRef;
  const found = `found PV object ${volumeName} but`;
  if (bound === undefined) {
    const why = `${found} it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`;
    throw claimFailure(reference, why);
  }
  if (bound.uid !== claim.metadata.uid) {
    const why = `${found} its pv.Spec.ClaimRef.UID ${bound.uid} does not point to claim.UID ${claim.metadata.uid}`;
    throw claimFailure(reference, why);
  }
  return volume;
}

/** The group that a PersistentVolume adds to its pods' containers; undefined without the annotation. */
export function volumeGroup({ metadata }: PV): number | undefined {
  const text = metadata.annotations?.['pv.beta.kubernetes.io/gid'] ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Throws an Error when containers use the volume in another way than its volumeMode. */
export function checkUse(pod: Pod, volume: Volume, mode: string | undefined): void {
  const { initContainers = [], containers, ephemeralContainers = [] } = pod.spec;
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  const mounted = all.some(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => name === volume.name));
  const mapped = all.some(({ volumeDevices = [] }) => volumeDevices.some(({ name }) => name === volume.name));
  if (mode === 'Block' && mounted) {
    throw new Error(`volume ${volume.name} has volumeMode Block, but is specified in volumeMounts`);
  }
  if (mode !== 'Block' && mapped) {
    throw new Error(`volume ${volume.name} has volumeMode Filesystem, but is specified in volumeDevices`);
  }
}
