// Carries out what owners.ts decides: adopts and releases by patching the controller reference. Before the first adoption
// the owner is read from the server, since a cache may show one that has just been deleted.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { ApiError, isNotFound } from '../../../client/errors.ts';
import type { Identified } from '../../../client/store.ts';
import type { ControllerContext } from '../../runtime.ts';
import { controllerReference, pathOf, type WorkloadKind } from './objects.ts';
import { decideClaims } from './owners.ts';

interface Owner {
  readonly kind: WorkloadKind;
  readonly object: Identified;
  readonly selector: LabelSelector | undefined;
  /** What the owner's dependents have among their finalizers from adoption to release. */
  readonly finalizer?: string;
  /** What has to hold of a dependent beside the selector. */
  readonly accepts?: (dependent: Identified) => boolean;
}

/** The objects that are the owner's after adoption and release. Throws when the server refuses either. */
export async function claim<T extends Identified>(
  { client }: Pick<ControllerContext, 'client'>,
  owner: Owner,
  dependents: WorkloadKind,
  candidates: readonly T[],
): Promise<readonly T[]> {
  const { owned, adopt, release } = decideClaims(owner.object, owner.selector, candidates, owner.accepts);
  const { uid } = owner.object.metadata;
  for (const each of release) {
    const without = owner.finalizer === undefined ? {} : { '$deleteFromPrimitiveList/finalizers': [owner.finalizer] };
    const patch = { metadata: { uid: each.metadata.uid, ownerReferences: [{ $patch: 'delete', uid }], ...without } };
    await client.patch(pathOf(dependents, each), patch, 'strategic').catch((error: unknown) => {
      // Gone, or no longer its own: both are what was wanted.
      if (!isNotFound(error) && !(error instanceof ApiError && error.code === 422)) throw error;
    });
  }
  if (adopt.length === 0) return owned;
  await requireAlive(client, owner);
  const adopted: T[] = [];
  for (const each of adopt) {
    const reference = controllerReference(owner.kind, owner.object);
    const finalizers = owner.finalizer === undefined ? {} : { finalizers: [owner.finalizer] };
    const patch = { metadata: { uid: each.metadata.uid, ownerReferences: [reference], ...finalizers } };
    try {
      adopted.push(await client.patch<T>(pathOf(dependents, each), patch, 'strategic'));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return [...owned, ...adopted];
}

async function requireAlive(client: ControllerContext['client'], { kind, object }: Owner): Promise<void> {
  const { namespace, name, uid } = object.metadata;
  const { metadata } = await client.get<Identified>(pathOf(kind, object));
  if (metadata.uid !== uid) {
    throw new Error(`original ${kind.kind} ${namespace}/${name} is gone: got uid ${metadata.uid}, wanted ${uid}`);
  }
  if (metadata.deletionTimestamp !== undefined) {
    throw new Error(`${namespace}/${name} has just been deleted at ${metadata.deletionTimestamp}`);
  }
}
