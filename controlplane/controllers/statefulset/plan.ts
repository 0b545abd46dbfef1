// What one sync of a stateful set does, in phases: the pods that there should be, the claims of those that are too many, those pods
// themselves, and then the update of one old pod. With OrderedReady a sync ends at the first pod that has to be waited for, so that no
// pod is made before its predecessors are available, and none is deleted before its successors are gone. Pure.

import type { Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import type { StatefulSet } from '../shared/objects.ts';
import { availableInMs, isReady } from '../shared/pods.ts';
import { type ClaimWork, claimWork, type FindClaim, hasStaleClaim, type OwnerUpdate, ownerUpdates } from './claims.ts';
import {
  newPod,
  ordinalOf,
  ordinalRange,
  podName,
  podRevision,
  repaired,
  type Version,
  versionFor,
} from './identity.ts';

export interface Facts {
  readonly set: StatefulSet;
  /** Those of the set. */
  readonly pods: readonly Pod[];
  readonly current: Version;
  readonly update: Version;
  readonly findClaim: FindClaim;
  readonly now: EpochMs;
}

export type Step =
  | {
      readonly kind: 'create';
      readonly pod: ReturnType<typeof newPod>;
      readonly claims: ClaimWork;
      readonly owners: readonly OwnerUpdate[];
    }
  /** What a pod that does not run yet may lack. */
  | {
      readonly kind: 'claims';
      readonly pod: Pod;
      readonly claims: ClaimWork;
      readonly owners: readonly OwnerUpdate[];
    }
  /** A pod without the labels, volumes or claims' owners of its set. `body` is absent where only the owners differ. */
  | {
      readonly kind: 'repair';
      readonly pod: Pod;
      readonly body: Pod | undefined;
      readonly claims: ClaimWork;
      readonly owners: readonly OwnerUpdate[];
    }
  /** Of a pod that is one too many. */
  | { readonly kind: 'owners'; readonly owners: readonly OwnerUpdate[] }
  | { readonly kind: 'delete'; readonly pod: Pod };

/** The steps of one pod, one after the other. */
export type Unit = readonly Step[];

export interface Plan {
  /** Whether the units of a phase are done one after the other. */
  readonly ordered: boolean;
  /** A phase begins when the one before it has succeeded. */
  readonly phases: readonly (readonly Unit[])[];
  /** The pod that the last phase deletes to have it made anew of the update version. */
  readonly updating: Pod | undefined;
}

/** The work on one pod, and whether an ordered sync ends with it. */
interface Work {
  readonly unit: Unit;
  readonly wait: boolean;
}

const CONTINUE: Work = { unit: [], wait: false };
const WAIT: Work = { unit: [], wait: true };
const NO_CLAIMS: ClaimWork = { missing: [], leaving: [] };

const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const isFinished = ({ status }: Pod): boolean => status?.phase === 'Failed' || status?.phase === 'Succeeded';
const isRunningReady = (pod: Pod): boolean => pod.status?.phase === 'Running' && isReady(pod);
const isAvailable = (pod: Pod, { set, now }: Facts): boolean =>
  availableInMs(pod, set.spec.minReadySeconds ?? 0, now) === 0;
const isUsable = (pod: Pod, facts: Facts): boolean => isAvailable(pod, facts) && !isTerminating(pod);

/** What a sync does. Of a set that is being deleted nothing is touched. */
export function plan(facts: Facts): Plan {
  const { set } = facts;
  const ordered = set.spec.podManagementPolicy !== 'Parallel';
  if (set.metadata.deletionTimestamp !== undefined) return { ordered, phases: [], updating: undefined };
  const { replicas, surplus } = splitPods(facts);
  const { start } = ordinalRange(set);
  const wanted = replicas.map((pod, index) => {
    const ordinal = start + index;
    return pod === undefined ? createWork(facts, ordinal) : keepWork(facts, pod, ordinal, ordered);
  });
  const making = until(wanted, ordered);
  if (making.wait) return { ordered, phases: [making.units], updating: undefined };
  const claims = surplus.flatMap(({ pod, ordinal }) => claimUnit(facts, pod, ordinal));
  const unusable = [...replicas.filter((pod) => pod !== undefined), ...surplus.map(({ pod }) => pod).reverse()];
  const firstUnusable = unusable.find((pod) => !isUsable(pod, facts));
  const removing = until(
    surplus.map(({ pod }) => removeWork(facts, pod, ordered, firstUnusable)),
    ordered,
  );
  const phases = [making.units, claims, removing.units];
  if (removing.wait) return { ordered, phases, updating: undefined };
  const updating = podToUpdate(facts, replicas);
  return { ordered, phases: updating === undefined ? phases : [...phases, [deletion(updating)]], updating };
}

interface Surplus {
  readonly pod: Pod;
  readonly ordinal: number;
}

/** The pods that there should be, in order and with gaps; and those that are too many, the highest ordinal first. */
function splitPods({ set, pods }: Facts): {
  readonly replicas: readonly (Pod | undefined)[];
  readonly surplus: readonly Surplus[];
} {
  const { start, end } = ordinalRange(set);
  const byOrdinal = new Map<number, Pod>();
  for (const pod of pods) {
    const ordinal = ordinalOf(set, pod);
    if (ordinal !== undefined) byOrdinal.set(ordinal, pod);
  }
  const replicas = Array.from({ length: end - start }, (_, index) => byOrdinal.get(start + index));
  const surplus = [...byOrdinal]
    .filter(([ordinal]) => ordinal < start || ordinal >= end)
    .map(([ordinal, pod]) => ({ ordinal, pod }))
    .toSorted((a, b) => b.ordinal - a.ordinal);
  return { replicas, surplus };
}

/** Where the order counts, only up to the first one that has to be waited for. */
function until(works: readonly Work[], ordered: boolean): { readonly units: readonly Unit[]; readonly wait: boolean } {
  const last = ordered ? works.findIndex(({ wait }) => wait) : -1;
  const done = last === -1 ? works : works.slice(0, last + 1);
  return { units: done.map(({ unit }) => unit).filter((unit) => unit.length > 0), wait: last !== -1 };
}

const deletion = (pod: Pod): Unit => [{ kind: 'delete', pod }];

function createWork({ set, current, update, findClaim }: Facts, ordinal: number): Work {
  const claimant = { metadata: { name: podName(set, ordinal), uid: '', resourceVersion: '' }, ordinal };
  if (hasStaleClaim(set, claimant, findClaim)) return WAIT;
  const pod = newPod(set, versionFor(set, current, update, ordinal), ordinal);
  const claims = claimWork(set, ordinal, findClaim);
  return { unit: [{ kind: 'create', pod, claims, owners: ownerUpdates(set, claimant, findClaim) }], wait: true };
}

function keepWork(facts: Facts, pod: Pod, ordinal: number, ordered: boolean): Work {
  const { set, findClaim } = facts;
  // A new one of the name is made when this one is gone, whatever it ended with.
  if (isFinished(pod)) return { unit: isTerminating(pod) ? [] : deletion(pod), wait: true };
  const owners = ownerUpdates(set, { metadata: pod.metadata, ordinal }, findClaim);
  const pending = pod.status?.phase === 'Pending' ? claimWork(set, ordinal, findClaim) : NO_CLAIMS;
  const missing = pod.status?.phase === 'Pending' && (pending.missing.length > 0 || owners.length > 0);
  const begun: Unit = missing || pending.leaving.length > 0 ? [{ kind: 'claims', pod, claims: pending, owners }] : [];
  if (ordered && (isTerminating(pod) || !isRunningReady(pod) || !isAvailable(pod, facts))) {
    return { unit: begun, wait: true };
  }
  const body = repaired(set, pod, ordinal);
  const left = missing ? [] : owners;
  if (body === undefined && left.length === 0) return { unit: begun, wait: false };
  const remounted = body !== undefined && body.spec !== pod.spec;
  const claims = remounted ? claimWork(set, ordinal, findClaim) : NO_CLAIMS;
  return { unit: [...begun, { kind: 'repair', pod, body, claims, owners: left }], wait: false };
}

function claimUnit({ set, findClaim }: Facts, pod: Pod, ordinal: number): readonly Unit[] {
  const owners = ownerUpdates(set, { metadata: pod.metadata, ordinal }, findClaim);
  return owners.length === 0 ? [] : [[{ kind: 'owners', owners }]];
}

/** In order, one that does not serve holds up the others, unless it is itself the one to go. */
function removeWork(facts: Facts, pod: Pod, ordered: boolean, firstUnusable: Pod | undefined): Work {
  if (isTerminating(pod)) return ordered ? WAIT : CONTINUE;
  const serves = isRunningReady(pod) && isAvailable(pod, facts);
  if (ordered && !serves && pod !== firstUnusable) return WAIT;
  return { unit: deletion(pod), wait: true };
}

/** One old pod at a time, the highest ordinal first, once those above it serve; none below the partition. */
function podToUpdate(facts: Facts, replicas: readonly (Pod | undefined)[]): Pod | undefined {
  const { set, update } = facts;
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === 'OnDelete') return undefined;
  for (let index = replicas.length - 1; index >= (rollingUpdate?.partition ?? 0); index--) {
    const pod = replicas[index];
    // One that is being made is waited for.
    if (pod === undefined) return undefined;
    if (podRevision(pod) !== update.name && !isTerminating(pod)) return pod;
    if (!isUsable(pod, facts)) return undefined;
  }
  return undefined;
}
