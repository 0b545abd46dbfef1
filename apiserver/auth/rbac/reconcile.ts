// Brings the stored default roles and bindings up to what this version's are: makes what is missing, adds missing rules,
// subjects and labels, and takes nothing away. An object whose annotation autoupdate is "false" is left alone.
// The decisions are pure; `reconcileDefaults` acts on them at each start, as kube-apiserver does.

import { sameJson } from '../../../lib/same-json.ts';
import type { KubeObject, ResourceKind } from '../../kinds/resource.ts';
import { isObject } from '../../patch/json-value.ts';
import type { Registry, WriteOptions } from '../../registry/registry.ts';
import { createObject, mutateStored } from '../../registry/write.ts';
import { AUTO_UPDATE, defaultObjects, RBAC_GROUP } from './defaults.ts';
import { rulesOfObject } from './follow.ts';
import { uncovered } from './rules.ts';

export type Reconciliation =
  | { readonly kind: 'none' }
  | { readonly kind: 'update'; readonly object: KubeObject }
  /** The role of a binding cannot be changed: it is deleted and made again. */
  | { readonly kind: 'recreate' };

const NONE: Reconciliation = { kind: 'none' };
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function isProtected(existing: Readonly<KubeObject>): boolean {
  return existing.metadata.annotations?.[AUTO_UPDATE] === 'false';
}

/** A copy with the labels and annotations of both, the existing ones first. */
function withMetadata(existing: Readonly<KubeObject>, expected: KubeObject): KubeObject {
  const copy: KubeObject = structuredClone(existing);
  copy.metadata.labels = { ...expected.metadata.labels, ...copy.metadata.labels };
  copy.metadata.annotations = { ...expected.metadata.annotations, ...copy.metadata.annotations };
  return copy;
}

function changed(existing: Readonly<KubeObject>, object: KubeObject): Reconciliation {
  return sameJson(existing, object) ? NONE : { kind: 'update', object };
}

function selectorsOf(object: Readonly<KubeObject>): unknown[] {
  return isObject(object['aggregationRule']) ? listOf(object['aggregationRule']['clusterRoleSelectors']) : [];
}

export function reconcileRole(existing: Readonly<KubeObject>, expected: KubeObject): Reconciliation {
  if (isProtected(existing)) return NONE;
  const object = withMetadata(existing, expected);
  const missing = uncovered(rulesOfObject(existing), rulesOfObject(expected));
  if (missing.length > 0) object['rules'] = [...listOf(existing['rules']), ...missing];
  if (expected['aggregationRule'] === undefined) {
    delete object['aggregationRule'];
    return changed(existing, object);
  }
  const present = selectorsOf(existing);
  const more = selectorsOf(expected).filter((selector) => !present.some((other) => sameJson(selector, other)));
  if (more.length > 0) object['aggregationRule'] = { clusterRoleSelectors: [...present, ...more] };
  return changed(existing, object);
}

export function reconcileBinding(existing: Readonly<KubeObject>, expected: KubeObject): Reconciliation {
  if (isProtected(existing)) return NONE;
  if (!sameJson(existing['roleRef'], expected['roleRef'])) return { kind: 'recreate' };
  const object = withMetadata(existing, expected);
  const present = listOf(existing['subjects']);
  const more = listOf(expected['subjects']).filter((subject) => !present.some((other) => sameJson(subject, other)));
  if (more.length > 0) object['subjects'] = [...present, ...more];
  return changed(existing, object);
}

/** Makes one default object what it has to be. */
function reconcileOne(registry: Registry, row: ResourceKind, expected: KubeObject, options: WriteOptions): void {
  const { namespace = '', name = '' } = expected.metadata;
  const stored = registry.find(row, namespace, name);
  if (stored === undefined) {
    createObject(registry, row, namespace, structuredClone(expected), options);
    return;
  }
  const existing = registry.parse(row, stored);
  const decision = row.plural.endsWith('bindings')
    ? reconcileBinding(existing, expected)
    : reconcileRole(existing, expected);
  if (decision.kind === 'update') {
    const { object } = decision;
    mutateStored(registry, row, stored, false, (draft) => Object.assign(replaced(draft), object));
  } else if (decision.kind === 'recreate') {
    registry.remove(row, registry.key(row, namespace, name), existing, stored);
    createObject(registry, row, namespace, structuredClone(expected), options);
  }
}

/** The draft without its fields. */
function replaced(draft: KubeObject): KubeObject {
  for (const field of Object.keys(draft)) delete draft[field];
  return draft;
}

/** Reconciles every default role and binding. `options` are the server's own. */
export function reconcileDefaults(registry: Registry, options: WriteOptions): void {
  for (const [plural, objects] of Object.entries(defaultObjects(registry.rows.all))) {
    if (!registry.hasRow(RBAC_GROUP, plural)) continue;
    const row = registry.rowOf(RBAC_GROUP, plural);
    for (const expected of objects) reconcileOne(registry, row, expected, options);
  }
}
