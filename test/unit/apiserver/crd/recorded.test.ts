// Definitions with what kube-apiserver 1.34.2's own strategy says to them: the causes of a refusal in their order, or none.
// recorded.json was written by a program around that strategy.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { customresourcedefinitions as row } from '../../../../apiserver/kinds/customresourcedefinitions.ts';
import { type FieldError, type KubeObject, Pending } from '../../../../apiserver/kinds/resource.ts';
import { mainRules } from '../../../../apiserver/registry/write.ts';
import { checkBody } from '../../../../apiserver/schema/decode.ts';

interface Recorded {
  readonly object: Record<string, unknown>;
  /** Present on an update. */
  readonly old?: Record<string, unknown>;
  readonly causes?: readonly (readonly [type: string, field: string, detail: string])[];
}

const RECORDED: readonly Recorded[] = JSON.parse(readFileSync(new URL('recorded.json', import.meta.url), 'utf8'));

function decoded(fields: Record<string, unknown>): KubeObject {
  const object: KubeObject = {
    metadata: {},
    ...structuredClone(fields),
    kind: row.kind,
    apiVersion: 'apiextensions.k8s.io/v1',
  };
  expect(checkBody(row, object).fatal).toBeUndefined();
  row.strategy.applyDefaults?.(object);
  return object;
}

/** Again once the rules are compiled. */
async function settled(validate: () => readonly FieldError[]): Promise<readonly FieldError[]> {
  try {
    return validate();
  } catch (error) {
    if (!(error instanceof Pending)) throw error;
    await error.ready();
    return settled(validate);
  }
}

async function errorsOf({ object: fields, old: before }: Recorded): Promise<readonly FieldError[]> {
  const object = decoded(fields);
  if (before === undefined) {
    Object.assign(object.metadata, { uid: 'u', creationTimestamp: '2025-01-01T12:00:00Z' });
    row.strategy.prepareForCreate?.(object);
    return settled(() => row.strategy.validateCreate?.(object) ?? []);
  }
  const old = decoded(before);
  const { prepare, validate } = mainRules(row);
  prepare(object, old);
  return settled(() => validate(object, old));
}

it('are refused for the same reasons, in the same words and order, or accepted', async () => {
  expect(RECORDED.length).toBeGreaterThan(150);
  for (const recorded of RECORDED) {
    const found = (await errorsOf(recorded)).map(({ type, field, detail }) => [
      type.replace('FieldValue', ''),
      field,
      detail,
    ]);
    expect(found, JSON.stringify(recorded.object)).toEqual(recorded.causes ?? []);
  }
});
