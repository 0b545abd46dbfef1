// What a pod's volumes mean for where it can go: claims that are bound pin it to where their volumes are, claims that
// wait for their first consumer are matched or given a node. Pure; the words are kube-scheduler's.

import type { Node, Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { findVolume, matchesLabels, reaches } from '../controllers/volume-binder/match.ts';
import {
  ANNOTATIONS,
  annotation,
  bytesOf,
  type CsiDriver,
  type CsiNode,
  type CsiStorageCapacity,
  capacityBytes,
  claimClass,
  claimNameOf,
  isBound,
  isOwnedBy,
  type PersistentVolume,
  type PersistentVolumeClaim,
  refersTo,
  requestedBytes,
  type StorageClass,
} from '../storage/objects.ts';

/** What there is, as the scheduler's caches show it. */
export interface StorageView {
  /** "namespace/name" */
  claim(key: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  volumes(): readonly PersistentVolume[];
  storageClass(name: string): StorageClass | undefined;
  csiDriver(name: string): CsiDriver | undefined;
  csiNode(name: string): CsiNode | undefined;
  capacities(): readonly CsiStorageCapacity[];
}

export type PodVolumes =
  /** No node can help before this changes. */
  | { readonly kind: 'blocked'; readonly message: string }
  | {
      readonly kind: 'claims';
      readonly claims: readonly PersistentVolumeClaim[];
      readonly bound: readonly PersistentVolume[];
      readonly unbound: readonly PersistentVolumeClaim[];
    };

const NONE: PodVolumes = { kind: 'claims', claims: [], bound: [], unbound: [] };

/** The state of the claims that the pod uses. */
export function podVolumes(pod: Pod, view: StorageView): PodVolumes {
  const claims: PersistentVolumeClaim[] = [];
  const bound: PersistentVolume[] = [];
  const unbound: PersistentVolumeClaim[] = [];
  const blocked = (message: string): PodVolumes => ({ kind: 'blocked', message });
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name === undefined) continue;
    const claim = view.claim(`${pod.metadata.namespace}/${name}`);
    const own = volume.ephemeral !== undefined;
    if (claim === undefined) {
      return blocked(
        own
          ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
          : `persistentvolumeclaim "${name}" not found`,
      );
    }
    if (own && !isOwnedBy(claim, pod)) {
      return blocked(`PVC ${pod.metadata.namespace}/${name} was not created for pod ${pod.metadata.name}`);
    }
    if (claim.status?.phase === 'Lost') {
      const lost = claim.spec?.volumeName ?? '';
      return blocked(`persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${lost}"`);
    }
    if (claim.metadata.deletionTimestamp !== undefined) {
      return blocked(`persistentvolumeclaim "${name}" is being deleted`);
    }
    claims.push(claim);
    if (!isBound(claim)) {
      if (!waitsForConsumer(claim, view)) return blocked('pod has unbound immediate PersistentVolumeClaims');
      unbound.push(claim);
      continue;
    }
    const persistent = view.volume(claim.spec?.volumeName ?? '');
    if (persistent === undefined) {
      return blocked(
        `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec?.volumeName ?? ''}"`,
      );
    }
    bound.push(persistent);
  }
  return claims.length === 0 ? NONE : { kind: 'claims', claims, bound, unbound };
}

function waitsForConsumer(claim: PersistentVolumeClaim, view: StorageView): boolean {
  // A person has named a volume, or one has been chosen: binding needs no node.
  if ((claim.spec?.volumeName ?? '') !== '') return false;
  const name = claimClass(claim) ?? '';
  return name !== '' && view.storageClass(name)?.volumeBindingMode === 'WaitForFirstConsumer';
}

export type VolumeStep =
  /** Set this volume aside for the claim. */
  | { readonly kind: 'reserve'; readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }
  /** Have a volume made for the claim that the node reaches. */
  | { readonly kind: 'provision'; readonly claim: PersistentVolumeClaim };

export interface VolumeFit {
  /** Why the node will not do; empty when it will. */
  readonly reasons: readonly string[];
  /** What must be written before the pod can be bound there. */
  readonly steps: readonly VolumeStep[];
}

const FITS: VolumeFit = { reasons: [], steps: [] };
function refused(reason: string): VolumeFit {
  return { reasons: [reason], steps: [] };
}

/** How the pod's volumes take to a node. */
export function fitVolumes(state: PodVolumes, node: Node, view: StorageView): VolumeFit {
  if (state.kind === 'blocked') return refused(state.message);
  if (state.claims.length === 0) return FITS;
  if (!state.bound.every((volume) => reaches(volume, node))) {
    return refused('node(s) had volume node affinity conflict');
  }
  return fitUnbound(state.unbound, node, view);
}

function fitUnbound(claims: readonly PersistentVolumeClaim[], node: Node, view: StorageView): VolumeFit {
  const steps: VolumeStep[] = [];
  const taken = new Set<string>();
  const rest: PersistentVolumeClaim[] = [];
  // The smallest first, so that a large volume is not spent on a small claim.
  const ordered = claims.toSorted((a, b) => (requestedBytes(a) < requestedBytes(b) ? -1 : 1));
  for (const claim of ordered) {
    const selected = annotation(claim, ANNOTATIONS.selectedNode);
    if (selected !== undefined && selected !== node.metadata.name) return refused(NO_VOLUME);
    const volume = selected === undefined ? findVolume(claim, view.volumes(), { node, taken }) : undefined;
    if (volume === undefined) rest.push(claim);
    else {
      taken.add(volume.metadata.name);
      const reserved = refersTo(volume, claim) && volume.spec?.claimRef?.uid === claim.metadata.uid;
      if (!reserved) steps.push({ kind: 'reserve', claim, volume });
    }
  }
  for (const claim of rest) {
    const storageClass = view.storageClass(claimClass(claim) ?? '');
    if (storageClass === undefined || storageClass.provisioner === 'kubernetes.io/no-provisioner') {
      return refused(NO_VOLUME);
    }
    if (!matchesTopologies(storageClass, node)) return refused(NO_VOLUME);
    if (annotation(claim, ANNOTATIONS.selectedNode) === node.metadata.name) continue;
    if (!hasRoom(claim, storageClass, node, view)) return refused('node(s) did not have enough free storage');
    steps.push({ kind: 'provision', claim });
  }
  return { reasons: [], steps };
}

const NO_VOLUME = "node(s) didn't find available persistent volumes to bind";

/** The class's allowedTopologies: any of the terms, all of its expressions. */
function matchesTopologies({ allowedTopologies = [] }: StorageClass, node: Node): boolean {
  if (allowedTopologies.length === 0) return true;
  const labels = node.metadata.labels ?? {};
  return allowedTopologies.some((term) =>
    (term.matchLabelExpressions ?? []).every(({ key, values }) => values.includes(getOwn(labels, key) ?? '')),
  );
}

/** Whether some capacity that the driver published for the class, reachable from the node, is enough. */
function hasRoom(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  node: Node,
  view: Pick<StorageView, 'csiDriver' | 'capacities'>,
): boolean {
  if (view.csiDriver(storageClass.provisioner)?.spec.storageCapacity !== true) return true;
  const size = requestedBytes(claim);
  return view.capacities().some((capacity) => {
    if (capacity.storageClassName !== storageClass.metadata.name || capacity.nodeTopology === undefined) return false;
    const limit = bytesOf(capacity.maximumVolumeSize ?? capacity.capacity);
    return limit >= size && matchesLabels(capacity.nodeTopology, node.metadata.labels);
  });
}

/** Whether a change of a volume can matter to pods that wait. */
export function volumeKey(volume: PersistentVolume): string {
  const { spec, status, metadata } = volume;
  return JSON.stringify([
    spec?.claimRef?.uid,
    status?.phase,
    String(capacityBytes(volume)),
    metadata.labels,
    metadata.deletionTimestamp,
  ]);
}
