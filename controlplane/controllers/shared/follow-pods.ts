// Which owners a change of a pod concerns: the one that is its controller, the one that was, and for an orphan all that select
// it. What an owner expects of its cache is noted on the way.

import type { LabelSelector, OwnerReference } from 'kubernetes-types/meta/v1';
import { type Change, type Identified, objectKey, type ReadableStore } from '../../../client/store.ts';
import type { Pod } from '../../../client/types.ts';
import type { Expectations } from './expectations.ts';
import { controllerOf, selects } from './owners.ts';

interface Follower<T> {
  readonly owners: ReadableStore<T>;
  selectorOf(owner: T): LabelSelector | undefined;
  enqueue(key: string): void;
  readonly expectations?: Expectations;
}

/** Calls `enqueue` with the key of each owner that a change of a pod concerns, from now on. */
export function followPods<T extends Identified>(pods: ReadableStore<Pod>, follower: Follower<T>): void {
  pods.onChange((changes) => {
    for (const change of changes) podChanged(change, follower);
  });
}

function podChanged<T extends Identified>(change: Change<Pod>, follower: Follower<T>): void {
  const { owners, expectations } = follower;
  const { object: pod } = change;
  const owner = controllerOf(pod);
  const enqueueOwner = ({ name, uid }: OwnerReference): void => {
    const key = `${pod.metadata.namespace}/${name}`;
    if (owners.get(key)?.metadata.uid === uid) follower.enqueue(key);
  };
  if (change.type === 'modified') {
    const before = controllerOf(change.old);
    if (before !== undefined && before.uid !== owner?.uid) enqueueOwner(before);
  }
  if (owner !== undefined) {
    const gone = change.type === 'removed' || pod.metadata.deletionTimestamp !== undefined;
    if (gone) expectations?.observedDeletion(owner.uid, pod.metadata.uid);
    else if (change.type === 'added') expectations?.observedCreation(owner.uid, pod.metadata.uid);
    enqueueOwner(owner);
    return;
  }
  if (change.type === 'removed') return;
  // An orphan: every owner that selects it may adopt it.
  for (const candidate of owners.list()) {
    const same = candidate.metadata.namespace === pod.metadata.namespace;
    if (same && selects(follower.selectorOf(candidate), pod)) follower.enqueue(objectKey(candidate));
  }
}
