// What the garbage collector does with one object, from its owners and dependents. Pure.

import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type { Identified } from '../../../client/store.ts';

export const ORPHAN = 'orphan';
export const FOREGROUND = 'foregroundDeletion';

/** What became of an owner that a reference names. */
export type OwnerState =
  | 'there'
  /** There is no object of that name and uid. */
  | 'gone'
  /** It is being deleted, and waits for its dependents to go first. */
  | 'waiting'
  /** Of a kind that the collector does not know: it may well be there. */
  | 'unknown';

export interface Owner {
  readonly reference: OwnerReference;
  readonly state: OwnerState;
}

export type Action =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop-owners'; readonly uids: readonly string[] }
  | {
      readonly kind: 'delete';
      readonly policy: 'Background' | 'Foreground' | 'Orphan';
      /** Its references no longer block its owners: it is part of a circle. */
      readonly unblock: boolean;
    }
  /** Its dependents lose their reference to it, and then it goes. */
  | { readonly kind: 'orphan-dependents' }
  /** Its dependents go first. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'remove-finalizer'; readonly finalizer: string };

const KEEP: Action = { kind: 'keep' };

const has = ({ metadata }: Identified, finalizer: string): boolean => metadata.finalizers?.includes(finalizer) === true;
const isLeaving = ({ metadata }: Identified): boolean => metadata.deletionTimestamp !== undefined;

/** Being deleted in the foreground: after its dependents. */
export const waitsForDependents = (object: Identified): boolean => isLeaving(object) && has(object, FOREGROUND);

function blocks(dependent: Identified, owner: Identified): boolean {
  const references = dependent.metadata.ownerReferences ?? [];
  return references.some(({ uid, blockOwnerDeletion }) => uid === owner.metadata.uid && blockOwnerDeletion === true);
}

/** For an object that is being deleted. */
export function decideLeaving(object: Identified, dependents: readonly Identified[]): Action {
  if (has(object, ORPHAN)) return { kind: 'orphan-dependents' };
  if (!has(object, FOREGROUND)) return KEEP;
  const blocked = dependents.some((dependent) => blocks(dependent, object));
  return blocked ? { kind: 'wait' } : { kind: 'remove-finalizer', finalizer: FOREGROUND };
}

/** For an object with owners that is not being deleted. One owner that is there, or may be, is enough to keep it. */
export function decideOwned(object: Identified, owners: readonly Owner[], dependents: readonly Identified[]): Action {
  if (owners.length === 0) return KEEP;
  const uids = owners
    .filter(({ state }) => state === 'gone' || state === 'waiting')
    .map(({ reference }) => reference.uid);
  if (uids.length < owners.length) return uids.length === 0 ? KEEP : { kind: 'drop-owners', uids };
  if (owners.some(({ state }) => state === 'waiting') && dependents.length > 0) {
    return { kind: 'delete', policy: 'Foreground', unblock: dependents.some(waitsForDependents) };
  }
  const policy = has(object, ORPHAN) ? 'Orphan' : has(object, FOREGROUND) ? 'Foreground' : 'Background';
  return { kind: 'delete', policy, unblock: false };
}
