// Objects with what kube-apiserver 1.34.2's own strategies made of them: the causes of a refusal in their order, or the object as it
// is stored. recorded.json was written by a program around those strategies that ran upstream's tables of test cases and
// mutations of them; the gates of features that the agent has were on.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NO_AUTHORIZER } from '../../../../apiserver/auth/authorizer.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { FieldError, KubeObject, RequestContext, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { isObject } from '../../../../apiserver/patch/json-value.ts';
import { finalizeRules } from '../../../../apiserver/registry/subresources/finalize.ts';
import { ephemeralContainersRules } from '../../../../apiserver/registry/subresources/pods.ts';
import { mainRules, statusRules, type UpdateRules } from '../../../../apiserver/registry/write.ts';
import { checkBody } from '../../../../apiserver/schema/decode.ts';
import { NOW } from './support.ts';

interface Recorded {
  /** "apps/v1/deployments" */
  readonly at: string;
  readonly sub?: string;
  /** Present on an update. */
  readonly old?: Record<string, unknown>;
  readonly object: Record<string, unknown>;
  readonly causes?: readonly (readonly [type: string, field: string, detail: string])[];
  readonly result?: unknown;
  readonly warnings?: readonly string[];
}

const read = (name: string): Recorded[] => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
const RECORDED: readonly Recorded[] = [...read('recorded.json'), ...read('recorded-later.json')];
const CONTEXT: RequestContext = {
  user: { name: 'admin', groups: ['system:masters'] },
  now: NOW,
  lookup: { get: () => undefined, list: () => [], each: () => [], having: () => [] },
  authorizer: NO_AUTHORIZER,
};
const UID = '11111111-2222-3333-4444-555555555555';
const SYSTEM = ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'deletionTimestamp'];

function rowAt(at: string): ResourceKind {
  const found = RESOURCE_KINDS.find(({ group, version, plural }) => `${group}/${version}/${plural}` === at);
  if (found === undefined) throw new Error(`no row ${at}`);
  return found;
}

function decoded(row: ResourceKind, fields: Record<string, unknown>): KubeObject {
  const { metadata, ...rest } = structuredClone(fields);
  const apiVersion = row.group === '' ? row.version : `${row.group}/${row.version}`;
  const meta = isObject(metadata) ? metadata : {};
  const object: KubeObject = { ...rest, kind: row.kind, apiVersion, metadata: meta };
  expect(checkBody(row, object).fatal).toBeUndefined();
  if (row.namespaced) object.metadata.namespace ??= 'ns';
  else delete object.metadata.namespace;
  row.strategy.applyDefaults?.(object);
  return object;
}

interface Outcome {
  readonly object: KubeObject;
  readonly errors: readonly FieldError[];
  readonly warnings: readonly string[];
}

function create(row: ResourceKind, fields: Record<string, unknown>): Outcome {
  const { strategy } = row;
  const object = decoded(row, fields);
  const { metadata } = object;
  metadata.uid = UID;
  metadata.creationTimestamp = '2025-01-01T12:00:00Z';
  if ((metadata.name ?? '') === '' && metadata.generateName !== undefined) {
    metadata.name = `${metadata.generateName}abcde`;
    strategy.applyDefaults?.(object);
  }
  strategy.applyCaller?.(object, { subresource: '' }, CONTEXT);
  const given = strategy.allocate?.(object, CONTEXT) ?? [];
  if (given.length > 0) return { object, errors: given, warnings: [] };
  if (strategy.prepareForCreate !== undefined) strategy.prepareForCreate(object);
  else if (row.subresources.includes('status')) delete object['status'];
  const errors = strategy.validateCreate?.(object) ?? [];
  return { object, errors, warnings: errors.length > 0 ? [] : (strategy.warnings?.(object) ?? []) };
}

function rulesOf(row: ResourceKind, sub: string): UpdateRules {
  const prepare = row.strategy.prepareSubresource?.[sub];
  if (sub === '') return mainRules(row);
  if (sub === 'status') return statusRules(row);
  if (prepare !== undefined) return { prepare, validate: () => [] };
  return sub === 'finalize' ? finalizeRules : ephemeralContainersRules;
}

function warningsOf({ strategy }: ResourceKind, sub: string, object: KubeObject, old: KubeObject): readonly string[] {
  if (sub === '') return strategy.warnings?.(object, old) ?? [];
  return sub === 'status' ? (strategy.statusWarnings?.(object) ?? []) : [];
}

function update(
  row: ResourceKind,
  before: Record<string, unknown>,
  sub: string,
  fields: Record<string, unknown>,
): Outcome {
  const { strategy } = row;
  const old = decoded(row, before);
  const object = decoded(row, fields);
  for (const field of SYSTEM) {
    if (old.metadata[field] === undefined) delete object.metadata[field];
    else object.metadata[field] = old.metadata[field];
  }
  strategy.applyCaller?.(object, { old, subresource: sub }, CONTEXT);
  const given = sub === '' ? (strategy.allocate?.(object, CONTEXT, old) ?? []) : [];
  if (given.length > 0) return { object, errors: given, warnings: [] };
  const rules = rulesOf(row, sub);
  rules.prepare(object, old);
  const errors = (strategy.validateSubresource?.[sub] ?? rules.validate)(object, old);
  return {
    object,
    errors,
    warnings: errors.length > 0 ? [] : warningsOf(row, sub, object, old),
  };
}

/** Without empty and zero values, which Go writes or leaves out as the field's tag says. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => compact(item) ?? {});
  if (!isObject(value)) return value === null || value === '' || value === 0 || value === false ? undefined : value;
  const entries = Object.entries(value)
    .map(([name, field]) => [name, compact(field)] as const)
    .filter(([, field]) => field !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function shown({ object }: Outcome): unknown {
  const { kind: _kind, apiVersion: _version, metadata, ...rest } = object;
  const {
    uid: _uid,
    creationTimestamp: _time,
    resourceVersion: _revision,
    generation: _generation,
    ...meta
  } = metadata;
  return compact({ metadata: meta, ...rest });
}

function withoutGeneration(result: unknown): unknown {
  if (!isObject(result)) return result;
  const { metadata, ...rest } = result;
  if (!isObject(metadata)) return result;
  const { generation: _generation, ...meta } = metadata;
  return compact({ metadata: meta, ...rest });
}

test.each(Object.entries(Object.groupBy(RECORDED, ({ at }) => at)))('%s', (at, cases = []) => {
  const row = rowAt(at);
  for (const { sub = '', old, object, causes, result, warnings = [] } of cases) {
    const outcome = old === undefined ? create(row, object) : update(row, old, sub, object);
    const what = `${old === undefined ? 'create' : `update ${sub}`} ${JSON.stringify(object)}`;
    const found = outcome.errors.map(({ type, field, detail }) => [type.replace('FieldValue', ''), field, detail]);
    expect(found, what).toEqual(causes ?? []);
    if (causes !== undefined) continue;
    expect(shown(outcome), what).toEqual(withoutGeneration(result));
    expect(outcome.warnings, what).toEqual(warnings);
  }
});
