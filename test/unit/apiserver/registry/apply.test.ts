// Managed fields on the way through the registry, and applies that create, update and are refused.

import { describe, expect, test } from 'vitest';
import { badRequest } from '../../../../apiserver/errors.ts';
import { managerOf, writeOptions } from '../../../../apiserver/http/options.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { type ApplyRequest, applyObject } from '../../../../apiserver/registry/apply.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import type { WriteOptions } from '../../../../apiserver/registry/registry.ts';
import { statusRules, updateObject } from '../../../../apiserver/registry/write.ts';
import { ADMIN, body, createPod, failureOf, fixture, pods } from '../support.ts';

const MERGE = 'application/merge-patch+json';
const as = (fieldManager: string): WriteOptions => ({ ...ADMIN, fieldManager });

function request(config: Record<string, unknown>, more: Partial<ApplyRequest> = {}): ApplyRequest {
  return { config: { apiVersion: 'v1', kind: 'Pod', ...config }, force: false, mayCreate: () => undefined, ...more };
}

/** Status and message of what a promise rejects with. */
async function failure(promise: Promise<unknown>): Promise<ReturnType<typeof failureOf>> {
  const [result] = await Promise.allSettled([promise]);
  return failureOf(() => {
    if (result?.status === 'rejected') throw result.reason;
  });
}

const managers = ({ metadata }: Readonly<KubeObject>): string[] =>
  (metadata.managedFields ?? []).map(
    ({ manager, operation, subresource = '' }) => `${manager} ${operation} ${subresource}`,
  );

describe('writes', () => {
  test('are recorded with their manager and time, the status by its subresource', () => {
    const f = fixture();
    createPod(f, 'a', { labels: { b: '1' } });
    const labelled = patchObject(
      f.registry,
      pods,
      'ns',
      'a',
      { metadata: { labels: { a: '1' } } },
      MERGE,
      as('kubectl'),
    );
    expect(managers(labelled.object)).toEqual(['kubectl Update ', 'unknown Update ']);
    const patch = { status: { phase: 'Running' }, spec: { nodeName: 'n' } };
    const { object } = patchObject(f.registry, pods, 'ns', 'a', patch, MERGE, as('kubelet'), statusRules(pods));
    expect(managers(object)).toEqual(['kubectl Update ', 'kubelet Update status', 'unknown Update ']);
    expect(object.metadata.managedFields?.[1]).toMatchObject({
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:phase': {} } },
      time: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  test('that change nothing change no time and no resourceVersion', async () => {
    const f = fixture();
    const { object } = createPod(f, 'a', { labels: { a: '1' } });
    await f.clock.advance(60_000);
    const again = updateObject(f.registry, pods, 'ns', 'a', structuredClone(object), ADMIN);
    expect(again.object).toEqual(object);
  });

  test('may clear the managed fields', () => {
    const f = fixture();
    createPod(f, 'a', { labels: { a: '1' } });
    const patch = { metadata: { managedFields: [{}] } };
    expect(patchObject(f.registry, pods, 'ns', 'a', patch, MERGE, ADMIN).object.metadata.managedFields).toBeUndefined();
  });

  test('of a subresource that keeps metadata record their fields all the same', () => {
    const f = fixture();
    createPod(f, 'a', { labels: { a: '1' } });
    const rules = {
      ...statusRules(pods),
      prepare: (object: KubeObject, old: KubeObject) => {
        object.metadata = { ...old.metadata };
      },
    };
    const view = patchObject(f.registry, pods, 'ns', 'a', { status: { phase: 'Failed' } }, MERGE, as('x'), rules);
    expect(managers(view.object)).toEqual(['unknown Update ', 'x Update status']);
  });
});

describe('an apply', () => {
  test('creates what is not there, for callers who may', async () => {
    const f = fixture();
    const apply = (more: Partial<ApplyRequest>) =>
      applyObject(f.registry, pods, 'ns', 'a', request({ metadata: { labels: { a: '1' } } }, more), as('m'));
    const refuse = (): void => {
      throw badRequest('may not create');
    };
    expect((await failure(apply({ mayCreate: refuse }))).message).toBe('may not create');
    const { view, created } = await apply({});
    expect(created).toBe(true);
    expect(view.object.metadata).toMatchObject({ name: 'a', namespace: 'ns', labels: { a: '1' } });
    expect(managers(view.object)).toEqual(['m Apply ']);
    expect((await apply({ mayCreate: refuse })).created).toBe(false);
  });

  test.each([
    [{ apiVersion: 'v2' }, 400, 'invalid object type: /v2, Kind=Pod'],
    [{ metadata: { name: 'b' } }, 400, 'the name of the object (b) does not match the name on the URL (a)'],
    [
      { metadata: { uid: 'u' } },
      409,
      'uid mismatch: the provided object specified uid u, and no existing object was found',
    ],
    [
      { spec: { foo: 1 } },
      500,
      'failed to create typed patch object (/; /v1, Kind=Pod): .spec.foo: field not declared in schema',
    ],
  ])('is refused for %j', async (config, code, message) => {
    const f = fixture();
    const refused = await failure(applyObject(f.registry, pods, 'ns', 'a', request(config), as('m')));
    expect(refused.code).toBe(code);
    expect(refused.message).toContain(message);
  });

  test('to the status changes the status alone, and creates nothing', async () => {
    const f = fixture();
    const config = request({ metadata: { name: 'a' }, status: { phase: 'Running' }, spec: { nodeName: 'n' } });
    const apply = () => applyObject(f.registry, pods, 'ns', 'a', config, as('m'), statusRules(pods));
    expect((await failure(apply())).code).toBe(404);
    createPod(f, 'a');
    const { object } = (await apply()).view;
    expect(object['spec']).toEqual({});
    expect(object['status']).toEqual({ phase: 'Running' });
    expect(managers(object)).toContain('m Apply status');
  });

  test('with dryRun stores nothing', async () => {
    const f = fixture();
    const dry = { ...as('m'), dryRun: true };
    const { revision } = f.store;
    await applyObject(f.registry, pods, 'ns', 'a', request({ metadata: { labels: { a: '1' } } }), dry);
    expect(f.store.revision).toBe(revision);
  });

  test('against an older resourceVersion is a conflict', async () => {
    const f = fixture();
    createPod(f, 'a');
    const config = request({ metadata: { resourceVersion: '1', labels: { a: '1' } } });
    expect((await failure(applyObject(f.registry, pods, 'ns', 'a', config, as('m')))).code).toBe(409);
  });

  test('and an update of the same field: the update takes it, the next apply finds the conflict', async () => {
    const f = fixture();
    const apply = (label: string, force = false) =>
      applyObject(f.registry, pods, 'ns', 'a', request({ metadata: { labels: { a: label } } }, { force }), as('m'));
    await apply('1');
    updateObject(f.registry, pods, 'ns', 'a', body('Pod', { name: 'a', labels: { a: '2' } }, { spec: {} }), as('u'));
    expect(await failure(apply('1'))).toMatchObject({
      code: 409,
      message: 'Apply failed with 1 conflict: conflict with "u" using v1: .metadata.labels.a',
    });
    expect(managers((await apply('1', true)).view.object)).toContain('m Apply ');
  });
});

describe('the options of a write', () => {
  const query = (text: string): URLSearchParams => new URLSearchParams(text);

  test.each([
    ['', true, 'fieldManager: Required value: is required for apply patch'],
    ['force=true', false, 'force: Forbidden: may not be specified for non-apply patch'],
    [
      'fieldManager=a%07',
      false,
      String.raw`fieldManager: Invalid value: "a\u0007": invalid character U+0007 (at position 1)`,
    ],
    ['dryRun=Some', false, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'],
    [
      'fieldValidation=x',
      false,
      'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
    ],
    [`fieldManager=${'x'.repeat(129)}`, false, 'fieldManager: Too long: may not be more than 128 bytes'],
  ])('?%s is refused', (text, isApply, why) => {
    expect(failureOf(() => writeOptions('patch', query(text), isApply))).toEqual({
      code: 422,
      reason: 'Invalid',
      message: `PatchOptions.meta.k8s.io "" is invalid: ${why}`,
    });
  });

  test.each([
    [undefined, ''],
    ['kubectl/v1.34.0 (linux/amd64) kubernetes/abc', 'kubectl'],
    ['a\u0007b\u00a0c', 'abc'],
    ['ü'.repeat(100), 'ü'.repeat(64)],
  ])('the manager of User-Agent %j is %j', (agent, manager) => expect(managerOf(agent)).toBe(manager));
});
