// The claims of a stateful set's pods: which have to be made, and who owns them. By persistentVolumeClaimRetentionPolicy a claim
// belongs to the set and goes with it, belongs to a pod that is one too many and goes with that, or has no owner and stays. Pure.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { Identified } from '../../../client/store.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { PersistentVolumeClaim } from '../../storage/objects.ts';
import { CLAIM, controllerReference, STATEFUL_SET, type StatefulSet, type WorkloadKind } from '../shared/objects.ts';
import { POD } from '../shared/pods.ts';
import { claimName, ordinalRange } from './identity.ts';

/** Finds a claim of the set's namespace by its name. */
export type FindClaim = (name: string) => PersistentVolumeClaim | undefined;

/** A pod, or one that is about to be created and has no uid. */
export interface Claimant {
  readonly metadata: Identified['metadata'];
  readonly ordinal: number;
}

const policyOf = ({ spec }: StatefulSet) => ({
  goWithSet: spec.persistentVolumeClaimRetentionPolicy?.whenDeleted === 'Delete',
  goWithPod: spec.persistentVolumeClaimRetentionPolicy?.whenScaled === 'Delete',
});

const referencesOf = ({ metadata }: Identified): readonly OwnerReference[] => metadata.ownerReferences ?? [];

const names = (reference: OwnerReference, { apiVersion, kind }: WorkloadKind, { metadata }: Identified): boolean =>
  reference.apiVersion === apiVersion && reference.kind === kind && reference.name === metadata.name;

/** It names an object that was there before and had the same name. */
function isStale(claim: PersistentVolumeClaim, kind: WorkloadKind, owner: Identified): boolean {
  const reference = referencesOf(claim).find((each) => names(each, kind, owner));
  return reference !== undefined && reference.uid !== owner.metadata.uid;
}

function claimsOf(set: StatefulSet, ordinal: number, find: FindClaim): readonly PersistentVolumeClaim[] {
  return (set.spec.volumeClaimTemplates ?? []).flatMap(
    ({ metadata }) => find(claimName(set, metadata?.name ?? '', ordinal)) ?? [],
  );
}

type ClaimTemplate = NonNullable<StatefulSet['spec']['volumeClaimTemplates']>[number];

function newClaim(set: StatefulSet, { metadata = {}, spec }: ClaimTemplate, name: string) {
  const { annotations, labels, finalizers } = metadata;
  return {
    apiVersion: CLAIM.apiVersion,
    kind: CLAIM.kind,
    metadata: {
      name,
      namespace: set.metadata.namespace,
      labels: { ...labels, ...set.spec.selector.matchLabels },
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers }),
    },
    spec,
  };
}

export interface ClaimWork {
  /** To be created. */
  readonly missing: readonly ReturnType<typeof newClaim>[];
  /** Names of those that are being deleted: no pod is made for them. */
  readonly leaving: readonly string[];
}

export function claimWork(set: StatefulSet, ordinal: number, find: FindClaim): ClaimWork {
  const templates = set.spec.volumeClaimTemplates ?? [];
  const claims = templates.map((template) => {
    const name = claimName(set, template.metadata?.name ?? '', ordinal);
    return { template, name, known: find(name) };
  });
  const missing = claims.filter(({ known }) => known === undefined);
  const leaving = claims.filter(({ known }) => known?.metadata.deletionTimestamp !== undefined);
  return {
    missing: missing.map(({ template, name }) => newClaim(set, template, name)),
    leaving: leaving.map(({ name }) => name),
  };
}

/** A claim that goes with a pod of this name that was there before: the new pod waits until it has gone. */
export function hasStaleClaim(set: StatefulSet, pod: Claimant, find: FindClaim): boolean {
  if (!policyOf(set).goWithPod) return false;
  return claimsOf(set, pod.ordinal, find).some((claim) => isStale(claim, POD, pod));
}

export interface OwnerUpdate {
  readonly claim: PersistentVolumeClaim;
  readonly ownerReferences: readonly OwnerReference[];
}

/** The claims of a pod whose owners are not what the policy says. */
export function ownerUpdates(set: StatefulSet, pod: Claimant, find: FindClaim): readonly OwnerUpdate[] {
  return claimsOf(set, pod.ordinal, find).flatMap((claim) => {
    // It belongs to what was there before; what is to become of it is not this set's business.
    if (isStale(claim, STATEFUL_SET, set) || isStale(claim, POD, pod)) return [];
    const ownerReferences = ownersOf(set, pod, claim);
    return sameJson(ownerReferences, referencesOf(claim)) ? [] : [{ claim, ownerReferences }];
  });
}

function ownersOf(set: StatefulSet, pod: Claimant, claim: PersistentVolumeClaim): readonly OwnerReference[] {
  const { goWithSet, goWithPod } = policyOf(set);
  const known = referencesOf(claim);
  const isOurs = (reference: OwnerReference): boolean =>
    names(reference, STATEFUL_SET, set) || names(reference, POD, pod);
  const others = known.filter((reference) => !isOurs(reference));
  // Another controller's claim is left to it.
  const foreign = (goWithSet || goWithPod) && others.some(({ controller }) => controller === true);
  const { start, end } = ordinalRange(set);
  const surplus = pod.ordinal < start || pod.ordinal >= end;
  const owners: OwnerReference[] = [];
  if (!foreign && goWithPod && surplus) owners.push(controllerReference(POD, pod));
  else if (!foreign && goWithSet) owners.push(controllerReference(STATEFUL_SET, set));
  const unchanged = owners.length === known.length - others.length && owners.every((owner) => has(known, owner));
  return unchanged ? known : [...others, ...owners];
}

function has(references: readonly OwnerReference[], { uid }: OwnerReference): boolean {
  return references.some((each) => each.uid === uid && each.controller === true);
}
