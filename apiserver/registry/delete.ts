// Deletion, for any kind: at once, after a grace period that another component ends (the kubelet, for pods), or when the last
// finalizer is gone. `decideDeletion` decides; the rest reads and writes.

import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { parseRfc3339, rfc3339 } from '../../lib/rfc3339.ts';
import { type Steps, waiting } from '../admission/steps.ts';
import { conflict, type StatusError } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import type { StoredObject } from '../storage/object-store.ts';
import { admitRequest } from './admit.ts';
import { hasFinalizers, isNamespace, markTerminating } from './namespaces.ts';
import { type Registry, View, type WriteOptions } from './registry.ts';

/** meta/v1 DeleteOptions, as far as they change anything here; propagation policies are accepted and change nothing. */
export interface DeleteOptions {
  /** Seconds. */
  readonly gracePeriodSeconds?: number;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly dryRun: boolean;
}

export type Deletion =
  | { readonly kind: 'remove' }
  | { readonly kind: 'mark'; readonly deletionTimestamp: string; readonly gracePeriodSeconds: number }
  /** It is on its way already, and this request does not hasten it. */
  | { readonly kind: 'pending' };

/**
 * The effect of a deletion requested at `now` (epoch ms). `grace` is what the kind grants for the request,
 * in seconds; `requested` is whether the caller named a period. A period under way can only be made shorter.
 */
export function decideDeletion(
  object: KubeObject,
  hasFinalizers: boolean,
  grace: number,
  requested: boolean,
  now: EpochMs,
): Deletion {
  const { deletionTimestamp, deletionGracePeriodSeconds: current = 0 } = object.metadata;
  if (deletionTimestamp === undefined) {
    if (grace === 0 && !hasFinalizers) return { kind: 'remove' };
    return { kind: 'mark', deletionTimestamp: rfc3339(plusMs(now, grace * 1000)), gracePeriodSeconds: grace };
  }
  if (current === 0) return hasFinalizers ? { kind: 'pending' } : { kind: 'remove' };
  if (!requested || grace >= current) return { kind: 'pending' };
  if (grace === 0 && !hasFinalizers) return { kind: 'remove' };
  const at = plusMs(parseRfc3339(deletionTimestamp) ?? now, -(current - grace) * 1000);
  return { kind: 'mark', deletionTimestamp: rfc3339(at), gracePeriodSeconds: grace };
}

function preconditionFailure(row: ResourceKind, object: KubeObject, options: DeleteOptions): StatusError | undefined {
  const { name = '', uid, resourceVersion } = object.metadata;
  const failed = (what: string, wanted: string, is: string | undefined): StatusError =>
    conflict(row, name, `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${is}`);
  if (options.uid !== undefined && options.uid !== uid) return failed('UID', options.uid, uid);
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    return failed('ResourceVersion', options.resourceVersion, resourceVersion);
  }
  return undefined;
}

export interface Deleted {
  readonly view: View;
  /** False when it goes on existing for now. */
  readonly removed: boolean;
}

/** Deletes one object for a client. Throws 403, 404, or 409 when a precondition does not hold. */
export function deleteWhenAdmitted(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  options: DeleteOptions,
  write: WriteOptions,
): Promise<Deleted> {
  return waiting(deleteSteps(registry, row, namespace, name, options, write));
}

function* deleteSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  options: DeleteOptions,
  write: WriteOptions,
): Steps<Deleted> {
  const find = (): StoredObject => registry.need(row, namespace, name);
  const { gracePeriodSeconds, dryRun } = options;
  yield* admitRequest(
    registry,
    row,
    'DELETE',
    {
      namespace: row.namespaced ? namespace : '',
      name,
      old: registry.parse(row, find()),
      options: gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
    },
    { ...write, dryRun },
  );
  return deleteStored(registry, row, find(), options);
}

/** Deletes one object by the server itself. Throws 404, or 409 when a precondition does not hold. */
export function deleteObject(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  options: DeleteOptions,
): Deleted {
  return deleteStored(registry, row, registry.need(row, namespace, name), options);
}

/** The same for an object that was just read. */
export function deleteStored(
  registry: Registry,
  row: ResourceKind,
  stored: StoredObject,
  options: DeleteOptions,
): Deleted {
  const object = registry.parse(row, stored);
  const failure = preconditionFailure(row, object, options);
  if (failure !== undefined) throw failure;
  const key = registry.key(row, stored.namespace, stored.name);
  if (object.metadata.deletionTimestamp === undefined) row.strategy.prepareForDelete?.(object);
  const finalizersLeft = hasFinalizers(row, object);
  const grace = row.strategy.gracePeriodSeconds?.(object, options.gracePeriodSeconds) ?? 0;
  const decision = decideDeletion(
    object,
    finalizersLeft,
    grace,
    options.gracePeriodSeconds !== undefined,
    registry.clock.now(),
  );
  if (decision.kind === 'pending') return { view: new View(JSON.stringify(object), object), removed: false };
  if (decision.kind === 'remove') {
    if (options.dryRun) return { view: registry.view(row, stored), removed: true };
    return { view: registry.remove(row, key, object, stored), removed: true };
  }
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined && metadata.generation !== undefined) metadata.generation += 1;
  metadata.deletionTimestamp = decision.deletionTimestamp;
  metadata.deletionGracePeriodSeconds = decision.gracePeriodSeconds;
  if (isNamespace(row)) {
    markTerminating(object);
    // A namespace's finalizer holds it; it has no grace period of its own.
    delete metadata.deletionGracePeriodSeconds;
  }
  if (options.dryRun) return { view: new View(JSON.stringify(object), object), removed: false };
  return { view: registry.put(row, key, object, stored), removed: false };
}
