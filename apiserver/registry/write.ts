// Create and update, for any kind: the order of steps that every write goes through, with the row's strategy filling in what the
// kind adds. Patches are patch.ts, deletion is delete.ts; what a body means is decode.ts.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import { PendingRefusal } from '../admission/chain.ts';
import { atOnce, converting, type Steps, waiting } from '../admission/steps.ts';
import { trackUpdate } from '../apply/field-manager.ts';
import { alreadyExists, badRequest, conflict, forbidden, invalid, MODIFIED, StatusError } from '../errors.ts';
import {
  AdmissionForbidden,
  type AwaitedObject,
  type CallerWrite,
  type FieldError,
  type KubeObject,
  type ResourceKind,
} from '../kinds/resource.ts';
import { parseObject } from '../storage/change.ts';
import type { StoredObject } from '../storage/object-store.ts';
import { admissionAttributes, settler } from './admit.ts';
import { readable, storable } from './conversions.ts';
import { fieldWrite, keepManagedFields, putWithin } from './field-managers.ts';
import { hasFinalizers } from './namespaces.ts';
import { apiVersionOf, type Registry, View, type WriteOptions } from './registry.ts';

/** Consonants and digits that cannot make words or be mistaken for each other, as the API server's. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const MAX_GENERATED_NAME = 63;
const GENERATE_ATTEMPTS = 8;

function generateName({ chance }: Registry, base: string): string {
  let name = base.slice(0, MAX_GENERATED_NAME - SUFFIX_LENGTH);
  for (let i = 0; i < SUFFIX_LENGTH; i++) name += SUFFIX_ALPHABET.charAt(chance.below(SUFFIX_ALPHABET.length));
  return name;
}

function reject(row: ResourceKind, object: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(row, object.metadata.name ?? object.metadata.generateName ?? '', errors);
}

/** What the kind has to say about the caller; its refusals are 403. */
function applyCaller(
  registry: Registry,
  row: ResourceKind,
  object: KubeObject,
  write: CallerWrite,
  { caller }: WriteOptions,
): void {
  try {
    row.strategy.applyCaller?.(object, write, registry.context(caller));
  } catch (error) {
    if (!(error instanceof AdmissionForbidden)) throw error;
    throw forbidden(row, object.metadata.name ?? '', error.message);
  }
}

/** How long a create waits for an object it needs, as the real admission plugin's ten attempts. */
const PENDING_MS = 1500;

/**
 * Creates the object from a decoded body, with the webhooks; tried once more when the object that its admission lacked
 * appears within a moment.
 */
export async function createWhenAdmitted(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  object: KubeObject,
  options: WriteOptions,
): Promise<View> {
  try {
    return await waiting(createSteps(registry, row, namespace, object, options));
  } catch (error) {
    if (!(error instanceof PendingRefusal)) throw error;
    await awaitObject(registry, error.waitFor, PENDING_MS);
    return waiting(createSteps(registry, row, namespace, object, options));
  }
}

/** Resolves when the object is written, or after `ms`. */
function awaitObject(registry: Registry, wanted: AwaitedObject, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = registry.clock.after(ms, resolve);
  const unsubscribe = registry.store.subscribe(`${wanted.group}/${wanted.plural}`, ({ record }) => {
    if (record.namespace === wanted.namespace && record.name === wanted.name) resolve();
  });
  // It may have come between the refusal and the subscription.
  if (registry.lookup.get(wanted.group, wanted.plural, wanted.namespace, wanted.name) !== undefined) resolve();
  return promise.finally(() => {
    timer.cancel();
    unsubscribe();
  });
}

/** Name and namespace of the body are those of the URL, or are filled in from it. */
export function checkPlacement(
  row: ResourceKind,
  object: KubeObject,
  namespace: string,
  name: string | undefined,
): void {
  const { metadata } = object;
  if (name !== undefined && (metadata.name ?? '') !== name) {
    if (metadata.name !== undefined && metadata.name !== '') {
      throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
    }
    metadata.name = name;
  }
  if (!row.namespaced) {
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace === undefined || metadata.namespace === '') metadata.namespace = namespace;
  else if (metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

const hasStatus = (row: ResourceKind): boolean => row.subresources.includes('status');
/** Kinds that a controller reconciles have a spec and a status: those count generations, unless the kind says otherwise. */
const countsGenerations = (row: ResourceKind, object: KubeObject): boolean =>
  row.strategy.countsGenerations ?? (hasStatus(row) && object['spec'] !== undefined);

/** Creates an object by the server itself, without webhooks. Throws 400, 403, 404 (no namespace), 409 or 422. */
export function createObject(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  object: KubeObject,
  options: WriteOptions,
): View {
  return atOnce(createSteps(registry, row, namespace, object, { ...options, internal: true }));
}

export function* createSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  object: KubeObject,
  options: WriteOptions,
): Steps<View> {
  checkPlacement(row, object, namespace, undefined);
  const { strategy } = row;
  const sentVersion = object.metadata.resourceVersion ?? '';
  clearSystemMetadata(object);
  strategy.applyDefaults?.(object);
  if (options.tracked !== true) {
    yield* converting(() => trackUpdate(fieldWrite(registry, row, options), undefined, object));
  }
  const { managedFields } = object.metadata;
  const settle = settler(registry, row);
  const place = { namespace: row.namespaced ? namespace : '', name: object.metadata.name ?? '', object, settle };
  const attributes = admissionAttributes(registry, row, 'CREATE', place, options);
  yield* registry.admission.admit(attributes);
  clearSystemMetadata(object);
  const { metadata } = object;
  if (managedFields !== undefined) metadata.managedFields = managedFields;
  metadata.uid = registry.chance.uuid();
  metadata.creationTimestamp = rfc3339(registry.clock.now());
  const generated = (metadata.name ?? '') === '' && (metadata.generateName ?? '') !== '';
  if (generated) {
    metadata.name = generateName(registry, metadata.generateName ?? '');
    // Some defaults are drawn from the name.
    strategy.applyDefaults?.(object);
  }
  applyCaller(registry, row, object, { subresource: '' }, options);
  yield* complete(registry, row, object, options, (whole) =>
    registry.admission.validate({ ...attributes, name: metadata.name ?? '', object: whole }),
  );
  // Found by the storage upstream, after admission.
  if (sentVersion !== '') throw badRequest('resourceVersion should not be set on objects to be created');
  for (let attempt = 1; ; attempt++) {
    const name = metadata.name ?? '';
    const key = registry.key(row, namespace, name);
    if (registry.store.get(key) === undefined) {
      if (options.dryRun) return new View(JSON.stringify(object), object);
      return putWithin(registry, row, key, object, options.tracked === true);
    }
    if (!generated || attempt === GENERATE_ATTEMPTS) throw alreadyExists(row, name);
    metadata.name = generateName(registry, metadata.generateName ?? '');
    yield* storable(row, object, options.dryRun);
  }
}

/** What a client may not set on a new object. */
function clearSystemMetadata({ metadata }: KubeObject): void {
  for (const field of ['resourceVersion', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink']) {
    delete metadata[field];
  }
  delete metadata.generation;
}

/** What the kind itself adds to a new object, its validation, and the validating admission. */
function* complete(
  registry: Registry,
  row: ResourceKind,
  object: KubeObject,
  options: WriteOptions,
  admission: (object: KubeObject) => Steps<void>,
): Steps<void> {
  const { strategy } = row;
  const allocate = (of: KubeObject): FieldError[] => strategy.allocate?.(of, registry.context(options.caller)) ?? [];
  const before = strategy.allocate === undefined ? undefined : structuredClone(object);
  for (let attempt = 1; ; attempt++) {
    const { revision } = registry.store;
    reject(row, object, allocate(object));
    if (strategy.prepareForCreate !== undefined) strategy.prepareForCreate(object);
    else if (hasStatus(row)) delete object['status'];
    if (countsGenerations(row, object)) object.metadata.generation = 1;
    reject(row, object, yield* converting(() => strategy.validateCreate?.(object) ?? []));
    for (const warning of strategy.warnings?.(object) ?? []) options.warn(warning);
    yield* storable(row, object, options.dryRun);
    yield* admission(object);
    // While a webhook was waited for, another object may have been given the same address or port.
    if (before === undefined || registry.store.revision === revision || attempt === GENERATE_ATTEMPTS) return;
    if (allocate(structuredClone(object)).length === 0) return;
    replaceContents(object, structuredClone(before));
  }
}

/** How an update through a subresource differs from one of the whole object. */
export interface UpdateRules {
  /** Carries over from `old` what this update may not change, in place. */
  prepare(object: KubeObject, old: KubeObject): void;
  validate(object: KubeObject, old: KubeObject): FieldError[];
  /** For messages: "pods/ephemeralcontainers". */
  readonly subresource?: string;
}

export function mainRules(row: ResourceKind): UpdateRules {
  return {
    prepare: (object, old) => {
      if (row.strategy.prepareForUpdate !== undefined) row.strategy.prepareForUpdate(object, old);
      else if (hasStatus(row)) copyField(object, old, 'status');
    },
    validate: (object, old) => row.strategy.validateUpdate?.(object, old) ?? [],
  };
}

export function statusRules(row: ResourceKind): UpdateRules {
  return {
    prepare: (object, old) => {
      keepAllBut(object, old, 'status');
      row.strategy.prepareForStatusUpdate?.(object, old);
    },
    validate: (object, old) => row.strategy.validateStatusUpdate?.(object, old) ?? [],
    subresource: 'status',
  };
}

function copyField(object: KubeObject, old: KubeObject, field: string): void {
  if (getOwn(old, field) === undefined) delete object[field];
  else setOwn(object, field, getOwn(old, field));
}

/** Makes `object` equal to `contents`, in place. */
export function replaceContents(object: KubeObject, contents: KubeObject): void {
  for (const field of Object.keys(object)) delete object[field];
  Object.assign(object, contents);
}

/** Everything but metadata and `field` as it was. */
export function keepAllBut(object: KubeObject, old: KubeObject, field: string): void {
  for (const other of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (other !== 'metadata' && other !== field) copyField(object, old, other);
  }
  const { ownerReferences } = old.metadata;
  if (ownerReferences === undefined) delete object.metadata.ownerReferences;
  else object.metadata.ownerReferences = ownerReferences;
}

/** Replaces the object by a decoded body, without webhooks. Throws 400, 404, 409 or 422. */
export function updateObject(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  object: KubeObject,
  options: WriteOptions,
  rules: UpdateRules = mainRules(row),
): View {
  return atOnce(updateSteps(registry, row, namespace, name, object, { ...options, internal: true }, rules));
}

/** The same for a client: with the webhooks. */
export function updateWhenAdmitted(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  object: KubeObject,
  options: WriteOptions,
  rules: UpdateRules = mainRules(row),
): Promise<View> {
  return waiting(updateSteps(registry, row, namespace, name, object, options, rules));
}

export function* updateSteps(
  registry: Registry,
  row: ResourceKind,
  namespace: string,
  name: string,
  object: KubeObject,
  options: WriteOptions,
  rules: UpdateRules,
): Steps<View> {
  checkPlacement(row, object, namespace, name);
  const stored = (yield* readable(registry, row, namespace, name)) ?? registry.need(row, namespace, name);
  return yield* replaceStored(registry, row, stored, object, options, rules);
}

/** Another client wrote the object while a webhook was waited for. */
export class WrittenMeanwhile extends StatusError {
  constructor({ status }: StatusError) {
    super(status.code, status.reason ?? '', status.message ?? '', status.details);
  }
}

export function* replaceStored(
  registry: Registry,
  row: ResourceKind,
  stored: StoredObject,
  object: KubeObject,
  options: WriteOptions,
  rules: UpdateRules,
): Steps<View> {
  const old = yield* converting(() => registry.parse(row, stored));
  const name = stored.name;
  const { metadata } = object;
  if ((metadata.uid ?? '') !== '' && metadata.uid !== old.metadata.uid) {
    throw conflict(
      row,
      name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }
  const version = metadata.resourceVersion ?? '';
  if (version !== '' && version !== '0' && version !== old.metadata.resourceVersion) {
    throw conflict(row, name, MODIFIED);
  }
  keepSystemMetadata(object, old);
  row.strategy.applyDefaults?.(object);
  if (options.tracked !== true) {
    yield* converting(() => trackUpdate(fieldWrite(registry, row, options, rules.subresource), old, object));
  }
  const { managedFields } = object.metadata;
  const { subresource = '' } = rules;
  const place = { namespace: stored.namespace, name, object, old, subresource, settle: settler(registry, row) };
  const attributes = admissionAttributes(registry, row, 'UPDATE', place, options);
  // Before anything is set right: what a node sends beyond its own is refused, not passed over.
  if (options.admitted !== true) yield* registry.admission.admit(attributes);
  keepSystemMetadata(object, old);
  applyCaller(registry, row, object, { old, subresource }, options);
  if (subresource === '')
    reject(row, object, row.strategy.allocate?.(object, registry.context(options.caller), old) ?? []);
  rules.prepare(object, old);
  keepManagedFields(object, old, managedFields);
  if (countsGenerations(row, object) && specChanged(object, old)) {
    // What was prepared may have other metadata than what was sent.
    object.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
  // A kind with rules for its subresource uses them; they include the rules for any kind.
  const ownRules = getOwn(row.strategy.validateSubresource, subresource);
  const validate = ownRules ?? ((...both: [KubeObject, KubeObject]) => rules.validate(...both));
  reject(row, object, yield* converting(() => validate(object, old)));
  for (const text of warningsOf(row, subresource, object, old)) options.warn(text);
  yield* storable(row, object, options.dryRun);
  if (options.admitted !== true) yield* registry.admission.validate(attributes);
  if (registry.find(row, stored.namespace, name)?.revision !== stored.revision) {
    registry.need(row, stored.namespace, name);
    throw new WrittenMeanwhile(conflict(row, name, MODIFIED));
  }
  return store(registry, row, stored, object, old, options.dryRun, options.tracked);
}

/** Writes it, unless it is unchanged; removes it when this update removed the last finalizer of a deleted object. */
function store(
  registry: Registry,
  row: ResourceKind,
  stored: StoredObject,
  object: KubeObject,
  old: KubeObject,
  dryRun: boolean,
  tracked = false,
): View {
  const key = registry.key(row, stored.namespace, stored.name);
  const isOutdated = (): boolean => stored.stale === true || row.storedAs?.isOutdated?.(stored.text) === true;
  if (sameJson(object, old) && !isOutdated()) return registry.view(row, stored);
  if (dryRun) return new View(JSON.stringify(object), object);
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  if (deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && !hasFinalizers(row, object)) {
    return registry.remove(row, key, object, stored);
  }
  return putWithin(registry, row, key, object, tracked, stored);
}

const SYSTEM_FIELDS = [
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'generation',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
] as const;

/** What a valid update is worth a warning for. */
function warningsOf(row: ResourceKind, subresource: string, object: KubeObject, old: KubeObject): readonly string[] {
  if (subresource === '') return row.strategy.warnings?.(object, old) ?? [];
  return subresource === 'status' ? (row.strategy.statusWarnings?.(object) ?? []) : [];
}

/** Metadata that only the server sets; the body's values are ignored. */
function keepSystemMetadata(object: KubeObject, old: KubeObject): void {
  const { metadata } = object;
  const kept: Record<string, unknown> = metadata;
  for (const field of SYSTEM_FIELDS) {
    if (old.metadata[field] === undefined) delete kept[field];
    else kept[field] = old.metadata[field];
  }
  if (old.metadata.generateName !== undefined) metadata.generateName ??= old.metadata.generateName;
}

function specChanged(object: KubeObject, old: KubeObject): boolean {
  const fields = new Set([...Object.keys(object), ...Object.keys(old)]);
  for (const field of ['metadata', 'status', 'kind', 'apiVersion']) fields.delete(field);
  return [...fields].some((field) => !sameJson(getOwn(object, field), getOwn(old, field)));
}

/** A fresh object of the row around `metadata` and `rest`, for what the server makes by itself. */
export function newObject(row: ResourceKind, name: string, rest: Record<string, unknown> = {}): KubeObject {
  return { kind: row.kind, apiVersion: apiVersionOf(row), metadata: { name }, ...rest };
}

/** Changes a stored object by code of the server's own: no strategy, no validation. Throws 404. */
export function mutateStored(
  registry: Registry,
  row: ResourceKind,
  stored: StoredObject,
  dryRun: boolean,
  change: (object: KubeObject) => void,
): View {
  const object = parseObject(stored.text);
  change(object);
  return store(registry, row, stored, object, parseObject(stored.text), dryRun);
}
