// Deletion, for any kind: at once, after a grace period that another component ends (the kubelet, for pods), or when the last
// finalizer is gone. `decideDeletion` decides; the rest reads and writes.

import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { parseRfc3339, rfc3339 } from '../../lib/rfc3339.ts';
import { converting, type Steps, waiting } from '../admission/steps.ts';
import { conflict, type StatusError } from '../errors.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import type { StoredObject } from '../storage/object-store.ts';
import { admitRequest } from './admit.ts';
import { hasFinalizers, isNamespace, markTerminating } from './namespaces.ts';
import { type Registry, View, type WriteOptions } from './registry.ts';

/** What becomes of an object's dependents. A garbage collector does it, by the finalizers that are set here. */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** meta/v1 DeleteOptions, as far as they change anything here. */
export interface DeleteOptions {
  /** Absent: as the object's finalizers say. */
  readonly propagation?: Propagation;
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
  if (at >= now) return { kind: 'mark', deletionTimestamp: rfc3339(at), gracePeriodSeconds: grace };
  // The shorter period is over already; the component that ends the object still has a second, unless it is to go at once.
  return { kind: 'mark', deletionTimestamp: rfc3339(now), gracePeriodSeconds: grace === 0 ? 0 : 1 };
}

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

/** The finalizers of an object whose deletion is requested with this policy: at most one of those for its dependents. */
export function propagationFinalizers(
  finalizers: readonly string[],
  propagation: Propagation | undefined,
): readonly string[] {
  const there = finalizers.find((each) => each === ORPHAN || each === FOREGROUND);
  const wanted =
    propagation === undefined ? there : { Background: undefined, Foreground: FOREGROUND, Orphan: ORPHAN }[propagation];
  if (wanted === there && finalizers.filter((each) => each === ORPHAN || each === FOREGROUND).length <= 1) {
    return finalizers;
  }
  const others = finalizers.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  return wanted === undefined ? others : [...others, wanted];
}

function preconditionFailure(row: ResourceKind, object: KubeObject, options: DeleteOptions): StatusError | undefined {
  const { name = '', uid, resourceVersion } = object.metadata;
  const failed = (what: string, wanted: string, is: string | undefined, why: string): StatusError => {
    const message = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${is}). ${why}`;
    return conflict({ group: row.group, plural: row.kind }, name, message);
  };
  if (options.uid !== undefined && options.uid !== uid) {
    return failed('UID', options.uid, uid, 'The object might have been deleted and then recreated');
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    const why = 'The object might have been modified';
    return failed('ResourceVersion', options.resourceVersion, resourceVersion, why);
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
      old: yield* converting(() => registry.parse(row, find())),
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
  // A deletion changes metadata alone: no custom object is converted for it.
  const isStored = row.custom !== undefined;
  const object = isStored ? registry.parseStored(stored) : registry.parse(row, stored);
  const put = (): View =>
    isStored ? registry.view(row, registry.putStored(key, object, stored)) : registry.put(row, key, object, stored);
  const unwritten = (): View =>
    isStored ? registry.view(row, { text: JSON.stringify(object) }) : new View(JSON.stringify(object), object);
  const failure = preconditionFailure(row, object, options);
  if (failure !== undefined) throw failure;
  const key = registry.key(row, stored.namespace, stored.name);
  if (object.metadata.deletionTimestamp === undefined) row.strategy.prepareForDelete?.(object);
  const grace = row.strategy.gracePeriodSeconds?.(object, options.gracePeriodSeconds) ?? 0;
  const changed = setFinalizers(row, object, options.propagation);
  const finalizersLeft = hasFinalizers(row, object);
  const decision = decideDeletion(
    object,
    finalizersLeft,
    grace,
    options.gracePeriodSeconds !== undefined,
    registry.clock.now(),
  );
  if (decision.kind === 'pending') {
    if (changed && !options.dryRun) return { view: put(), removed: false };
    return { view: unwritten(), removed: false };
  }
  if (decision.kind === 'remove') {
    if (options.dryRun) return { view: registry.view(row, stored), removed: true };
    if (isStored) return { view: registry.view(row, registry.store.remove(key, object, stored)), removed: true };
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
  if (options.dryRun) return { view: unwritten(), removed: false };
  return { view: put(), removed: false };
}

/** Those for the object's dependents, in place; not while a grace period runs, which this request does not end. */
function setFinalizers(row: ResourceKind, { metadata }: KubeObject, propagation: Propagation | undefined): boolean {
  const { dependents } = row.strategy;
  if (dependents === 'none' || (metadata.deletionGracePeriodSeconds ?? 0) > 0) return false;
  const before = metadata.finalizers ?? [];
  const orphans = dependents === 'orphan' && !before.includes(FOREGROUND);
  const after = propagationFinalizers(before, propagation ?? (orphans ? 'Orphan' : undefined));
  if (after === before) return false;
  if (after.length === 0) delete metadata.finalizers;
  else metadata.finalizers = [...after];
  return true;
}
