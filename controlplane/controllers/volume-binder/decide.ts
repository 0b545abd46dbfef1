// Decides what to do with a claim or a volume, as Kubernetes' persistent volume controller does. Pure; the messages are
// those of its events.

import {
  ANNOTATIONS,
  annotation,
  claimClass,
  defaultClass,
  type PersistentVolume,
  type PersistentVolumeClaim,
  refersTo,
  type StorageClass,
} from '../../storage/objects.ts';
import { findVolume, mismatch } from './match.ts';

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export type ClaimDecision =
  | { readonly kind: 'bind'; readonly volume: PersistentVolume }
  /** Stay Pending; something else must happen first. */
  | { readonly kind: 'wait'; readonly event?: EventText }
  /** Request a volume from this provisioner. */
  | { readonly kind: 'provision'; readonly provisioner: string; readonly event: EventText }
  /** The claim came before there was a default class. */
  | { readonly kind: 'assign-class'; readonly name: string }
  | { readonly kind: 'lost'; readonly event: EventText };

export interface BinderView {
  readonly volumes: readonly PersistentVolume[];
  volume(name: string): PersistentVolume | undefined;
  readonly classes: readonly StorageClass[];
  /** Names of the pods that use the claim and are not yet on a node. */
  readonly waitingPods: readonly string[];
}

function warn(reason: string, message: string): EventText {
  return { type: 'Warning', reason, message };
}
function normal(reason: string, message: string): EventText {
  return { type: 'Normal', reason, message };
}

export function decideClaim(claim: PersistentVolumeClaim, view: BinderView): ClaimDecision {
  if (annotation(claim, ANNOTATIONS.bindCompleted) !== undefined) return decideBoundClaim(claim, view);
  // What is going away gets nothing new.
  if (claim.metadata.deletionTimestamp !== undefined) return { kind: 'wait' };
  const wanted = claim.spec?.volumeName ?? '';
  return wanted === '' ? decideUnboundClaim(claim, view) : decideNamedVolume(claim, wanted, view);
}

function decideBoundClaim(claim: PersistentVolumeClaim, view: BinderView): ClaimDecision {
  const name = claim.spec?.volumeName ?? '';
  const lost = (reason: string, message: string): ClaimDecision => ({ kind: 'lost', event: warn(reason, message) });
  if (name === '') {
    return lost('ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!');
  }
  const volume = view.volume(name);
  if (volume === undefined) {
    return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  }
  if (volume.spec?.claimRef === undefined || refersTo(volume, claim)) return { kind: 'bind', volume };
  return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

function decideNamedVolume(claim: PersistentVolumeClaim, name: string, view: BinderView): ClaimDecision {
  const volume = view.volume(name);
  if (volume === undefined) return { kind: 'wait' };
  if (volume.spec?.claimRef === undefined) {
    const why = mismatch(volume, claim);
    if (why === undefined) return { kind: 'bind', volume };
    return { kind: 'wait', event: warn('VolumeMismatch', `Cannot bind to requested volume "${name}": ${why}`) };
  }
  if (refersTo(volume, claim)) return { kind: 'bind', volume };
  return { kind: 'wait', event: warn('FailedBinding', `volume "${name}" already bound to a different claim.`) };
}

function decideUnboundClaim(claim: PersistentVolumeClaim, view: BinderView): ClaimDecision {
  const named = claimClass(claim);
  const storageClass = view.classes.find((one) => one.metadata.name === named);
  const firstConsumer = storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
  const selected = annotation(claim, ANNOTATIONS.selectedNode) !== undefined;
  const volume = findVolume(claim, view.volumes, { delayed: firstConsumer });
  if (volume !== undefined) return { kind: 'bind', volume };
  if (named === undefined) {
    const fallback = defaultClass(view.classes);
    if (fallback !== undefined) return { kind: 'assign-class', name: fallback.metadata.name };
  }
  if (firstConsumer && !selected) return { kind: 'wait', event: waitingForConsumer(view.waitingPods) };
  if (named === undefined || named === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    return { kind: 'wait', event: normal('FailedBinding', message) };
  }
  if (storageClass === undefined) {
    return { kind: 'wait', event: warn('ProvisioningFailed', `storageclass.storage.k8s.io "${named}" not found`) };
  }
  return provision(storageClass.provisioner);
}

function waitingForConsumer(pods: readonly string[]): EventText {
  if (pods.length === 0) {
    return normal('WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
  }
  if (pods.length === 1) return normal('WaitForPodScheduled', `waiting for pod ${pods[0]} to be scheduled`);
  return normal('WaitForPodScheduled', `waiting for pods ${pods.join(',')} to be scheduled`);
}

function provision(provisioner: string): ClaimDecision {
  // No plugin of this prefix is built in here; "no-provisioner" is the name for "volumes are made by hand".
  if (provisioner.startsWith('kubernetes.io/')) {
    const event = warn('ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
    return provisioner === 'kubernetes.io/no-provisioner' ? { kind: 'wait' } : { kind: 'wait', event };
  }
  const message =
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
    'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.';
  return { kind: 'provision', provisioner, event: normal('ExternalProvisioning', message) };
}

export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed';

export type VolumeDecision =
  | { readonly kind: 'phase'; readonly phase: VolumePhase; readonly event?: EventText }
  /** Sync the claim: it can be bound to this volume. */
  | { readonly kind: 'claim' }
  /** The claim is bound elsewhere; a claimRef that the controller wrote is removed, one that a user wrote stays. */
  | { readonly kind: 'unbind' };

/** `claim` is the one that the volume names, where it exists. */
export function decideVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): VolumeDecision {
  const reference = volume.spec?.claimRef;
  // One that a person has set aside for a claim is still available to it.
  if (reference === undefined || (reference.uid ?? '') === '') {
    return claim !== undefined && claim.spec?.volumeName === volume.metadata.name
      ? { kind: 'claim' }
      : { kind: 'phase', phase: 'Available' };
  }
  if (claim === undefined || claim.metadata.uid !== reference.uid) return reclaim(volume);
  const name = claim.spec?.volumeName ?? '';
  if (name === '') return { kind: 'claim' };
  if (name === volume.metadata.name) return { kind: 'phase', phase: 'Bound' };
  const dynamic = annotation(volume, ANNOTATIONS.provisionedBy) !== undefined;
  return dynamic && volume.spec?.persistentVolumeReclaimPolicy === 'Delete' ? reclaim(volume) : { kind: 'unbind' };
}

/** The effect of the reclaim policy after the claim is gone. A provisioned volume is deleted by its provisioner. */
function reclaim(volume: PersistentVolume): VolumeDecision {
  const policy = volume.spec?.persistentVolumeReclaimPolicy ?? 'Retain';
  const released: VolumeDecision = { kind: 'phase', phase: 'Released' };
  if (policy === 'Recycle') {
    const event = warn('VolumeFailedRecycle', 'No recycler plugin found for the volume!');
    return { kind: 'phase', phase: 'Failed', event };
  }
  if (policy === 'Delete' && annotation(volume, ANNOTATIONS.provisionedBy) === undefined) {
    const message = `error getting deleter volume plugin for volume "${volume.metadata.name}": no deletable volume plugin matched`;
    return { kind: 'phase', phase: 'Failed', event: warn('VolumeFailedDelete', message) };
  }
  return released;
}
