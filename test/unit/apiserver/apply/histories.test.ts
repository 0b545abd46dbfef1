// Histories of updates and applies by several managers, with what apimachinery's FieldManager (v0.34.2, with the types of
// k8s.io/api and the published OpenAPI) made of each step: managed fields, object, refusal. histories.json was recorded
// from that program, for random objects of seven kinds.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { applyConfig, resetFilter, trackUpdate } from '../../../../apiserver/apply/field-manager.ts';
import { decode } from '../../../../apiserver/apply/field-set.ts';
import { typeOfDefinition } from '../../../../apiserver/apply/types.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { isObject } from '../../../../apiserver/patch/json-value.ts';
import { checkBodyAs } from '../../../../apiserver/schema/decode.ts';

interface Step {
  readonly op: 'apply' | 'update';
  readonly manager: string;
  readonly subresource?: string;
  readonly force?: boolean;
  readonly object: KubeObject;
  readonly error?: string;
  readonly managedFields?: readonly Readonly<Record<string, unknown>>[];
  readonly result?: unknown;
}

const HISTORIES: readonly (readonly Step[])[] = JSON.parse(
  readFileSync(new URL('histories.json', import.meta.url), 'utf8'),
);

/** Without empty and zero values, which Go writes or leaves out as the field's tag says. */
function compact(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => compact(item) ?? {});
  if (!isObject(value)) return value === null || value === '' || value === 0 || value === false ? undefined : value;
  const entries = Object.entries(value)
    .map(([name, field]) => [name, compact(field)] as const)
    .filter(([, field]) => field !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function withoutTimes(object: KubeObject): unknown[] {
  const list = (object.metadata.managedFields ?? []).map(({ time: _time, fieldsType: _type, ...entry }) => entry);
  return list.sort(byText);
}

/** Go writes "&" in the JSON of keys as an escape. */
function canonical(entry: Readonly<Record<string, unknown>>): unknown {
  return { ...entry, fieldsV1: decode(entry['fieldsV1']) };
}

/** JSON has no order of fields; entries of one time are ordered by more than is compared here. */
function byText(a: unknown, b: unknown): number {
  const key = (value: unknown): string =>
    isObject(value) ? [value['operation'], value['manager'], value['apiVersion'], value['subresource']].join() : '';
  return key(a) < key(b) ? -1 : 1;
}

function take(step: Step, live: KubeObject | undefined): KubeObject {
  const { op, manager, subresource = '', force = false } = step;
  const object = structuredClone(step.object);
  const schemaName = `io.k8s.api.core.v1.${object.kind}`;
  const filter = resetFilter([[subresource === 'status' ? 'spec' : 'status']]);
  const schema = { apiVersion: 'v1', type: typeOfDefinition(schemaName), version: () => undefined, filter };
  const write = { schema, manager, subresource, time: '2030-01-01T00:00:00Z' };
  let result = object;
  if (op === 'apply') result = applyConfig(write, live, object, force, `/x; /v1, Kind=${object.kind}`);
  else trackUpdate(write, live, object);
  expect(checkBodyAs(schemaName, result).fatal).toBeUndefined();
  return result;
}

test.each(HISTORIES.map((steps, index) => ({ index, steps })))('history $index', ({ steps }) => {
  let live: KubeObject | undefined;
  for (const [index, step] of steps.entries()) {
    const at = `step ${index}: ${step.op} by ${step.manager}`;
    if (step.error !== undefined) {
      expect(() => take(step, live), at).toThrow(expect.objectContaining({ message: step.error }));
      continue;
    }
    live = take(step, live);
    expect(withoutTimes(live), at).toEqual((step.managedFields ?? []).map(canonical).sort(byText));
    const { managedFields: _fields, name: _name, uid: _uid, ...metadata } = live.metadata;
    expect(compact({ ...live, metadata }), at).toEqual(step.result);
    live.metadata.uid = 'u';
  }
});
