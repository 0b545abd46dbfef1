// What histories.test.ts does not reach: messages of conflicts, the change from client-side apply, versions, limits, and
// types of custom resources.

import { describe, expect, test } from 'vitest';
import { applyConfig, LAST_APPLIED, resetFilter, trackUpdate } from '../../../../apiserver/apply/field-manager.ts';
import { typeOfCustomResource } from '../../../../apiserver/apply/json-schema.ts';
import { objectEntries, scaleEntries } from '../../../../apiserver/apply/scale-fields.ts';
import { typeOfDefinition, type ValueType } from '../../../../apiserver/apply/types.ts';
import type { Version } from '../../../../apiserver/apply/updater.ts';
import { StatusError } from '../../../../apiserver/errors.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import type { JsonObject } from '../../../../apiserver/patch/json-value.ts';

const RC: ValueType = typeOfDefinition('io.k8s.api.core.v1.ReplicationController');
const TIME = '2030-01-01T00:00:00Z';

interface Writer {
  readonly manager?: string;
  readonly subresource?: string;
  readonly type?: ValueType;
  readonly version?: (apiVersion: string) => Version | undefined;
  readonly time?: string;
}

function write({ manager = 'm', subresource = '', type = RC, version = () => undefined, time = TIME }: Writer) {
  return { schema: { apiVersion: 'v1', type, version, filter: resetFilter([]) }, manager, subresource, time };
}

function rc(spec: JsonObject, metadata: KubeObject['metadata'] = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ReplicationController', metadata: { name: 'web', ...metadata }, spec };
}

function created(object: KubeObject, by: Writer = {}): KubeObject {
  trackUpdate(write(by), undefined, object);
  return object;
}

function apply(live: KubeObject | undefined, config: KubeObject, by: Writer = {}, force = false): KubeObject {
  return applyConfig(write(by), live, { ...config }, force, 'ns/web; /v1, Kind=ReplicationController');
}

function refusal(run: () => unknown): StatusError['status'] {
  try {
    run();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new Error('nothing was refused');
}

const managers = ({ metadata }: KubeObject): unknown[] =>
  (metadata.managedFields ?? []).map((entry) => `${entry['manager']} ${entry['operation']}`);

describe('conflicts', () => {
  test('one has its manager and field in the message and in its cause', () => {
    const live = created(rc({ replicas: 1 }), { manager: 'kubectl-client-side-apply' });
    expect(refusal(() => apply(live, rc({ replicas: 2 })))).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .spec.replicas',
      details: {
        causes: [
          {
            reason: 'FieldManagerConflict',
            message: 'conflict with "kubectl-client-side-apply" using v1',
            field: '.spec.replicas',
          },
        ],
      },
    });
  });

  test('several are grouped by manager, appliers without a version', () => {
    const scaled = created(rc({ replicas: 1, minReadySeconds: 1 }), { manager: 'b', subresource: 'scale' });
    const live = apply(scaled, rc({ selector: { app: 'a' } }), { manager: 'a' });
    const config = rc({ replicas: 2, minReadySeconds: 2, selector: { app: 'b' } });
    expect(refusal(() => apply(live, config)).message).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "a":',
        '- .spec.selector',
        'conflicts with "b" with subresource "scale" using v1:',
        '- .spec.minReadySeconds',
        '- .spec.replicas',
      ].join('\n'),
    );
  });

  test('elements of lists are named by their keys', () => {
    const containers = (image: string): JsonObject => ({ template: { spec: { containers: [{ name: 'c', image }] } } });
    const live = created(rc(containers('a')));
    expect(refusal(() => apply(live, rc(containers('b')))).message).toContain(
      '.spec.template.spec.containers[name="c"].image',
    );
  });

  test('force takes the field over, and the other entry goes when nothing is left of it', () => {
    const live = apply(undefined, rc({ replicas: 1 }), { manager: 'a' });
    const after = apply(live, rc({ replicas: 2 }), { manager: 'b' }, true);
    expect(managers(after)).toEqual(['b Apply']);
    expect(after['spec']).toEqual({ replicas: 2 });
  });
});

describe('a configuration', () => {
  test.each([
    [{ foo: 1 }, '.spec.foo: field not declared in schema'],
    [{ replicas: 'x' }, '.spec.replicas: expected numeric (int or float), got string'],
    [
      { template: { spec: { containers: [{ name: 'c' }, { name: 'c' }] } } },
      '.spec.template.spec.containers: duplicate entries for key [name="c"]',
    ],
  ])('of another type is refused: %j', (spec, why) => {
    expect(refusal(() => apply(undefined, rc(spec)))).toMatchObject({
      code: 500,
      message: `failed to create typed patch object (ns/web; /v1, Kind=ReplicationController): ${why}`,
    });
  });

  test('may not have managed fields', () => {
    const config = rc({}, { managedFields: [] });
    expect(refusal(() => apply(undefined, config))).toMatchObject({
      code: 400,
      message: 'metadata.managedFields must be nil',
    });
  });

  test('that stops naming a field removes it, unless another applier names it too', () => {
    const both = { replicas: 1, minReadySeconds: 5 };
    const first = apply(undefined, rc(both), { manager: 'a' });
    expect(apply(first, rc({ replicas: 1 }), { manager: 'a' })['spec']).toEqual({ replicas: 1 });
    const shared = apply(first, rc({ minReadySeconds: 5 }), { manager: 'b' });
    const after = apply(shared, rc({ replicas: 1 }), { manager: 'a' });
    expect(after['spec']).toEqual(both);
  });

  test('that changes nothing keeps its time', () => {
    const first = apply(undefined, rc({ replicas: 1 }));
    const again = apply(first, rc({ replicas: 1 }), { time: '2031-01-01T00:00:00Z' });
    expect(again.metadata.managedFields).toEqual(first.metadata.managedFields);
  });
});

describe('client-side apply', () => {
  const last = (spec: JsonObject): KubeObject['metadata'] => ({
    annotations: { [LAST_APPLIED]: JSON.stringify(rc(spec)) },
  });

  test('is taken over by kubectl apply --server-side without conflicts, in what it has set itself', () => {
    const live = created(rc({ replicas: 1 }, last({ replicas: 1 })), { manager: 'kubectl-client-side-apply' });
    const config = rc({ replicas: 2 });
    expect(refusal(() => apply(live, config, { manager: 'other' })).code).toBe(409);
    const after = apply(live, config, { manager: 'kubectl' });
    expect(after['spec']).toEqual({ replicas: 2 });
    // And back: the annotation is what was applied now.
    expect(JSON.parse(after.metadata.annotations?.[LAST_APPLIED] ?? '')).toEqual(config);
  });

  test('does not give away what another client has changed since', () => {
    const live = created(rc({ replicas: 1 }, last({ replicas: 1 })), { manager: 'kubectl-client-side-apply' });
    const scaled = structuredClone(live);
    scaled['spec'] = { replicas: 5 };
    trackUpdate(write({ manager: 'scaler' }), live, scaled);
    expect(refusal(() => apply(scaled, rc({ replicas: 2 }), { manager: 'kubectl' })).message).toBe(
      'Apply failed with 1 conflict: conflict with "scaler" using v1: .spec.replicas',
    );
  });
});

describe('managed fields of updates', () => {
  test('are in the order of structured-merge-diff, whatever order the object has', () => {
    const ports = [
      { protocol: 'TCP', containerPort: 443 },
      { name: 'http', protocol: 'TCP', containerPort: 80 },
    ];
    const template = {
      spec: { containers: [{ ports, name: 'c', image: 'i' }] },
      metadata: { labels: { b: '', a: '' } },
    };
    const [entry] = created(rc({ template })).metadata.managedFields ?? [];
    expect(JSON.stringify(entry?.['fieldsV1'])).toBe(
      '{"f:spec":{"f:template":{".":{},"f:metadata":{".":{},"f:labels":{".":{},"f:a":{},"f:b":{}}},"f:spec":{".":{},"f:containers":{".":{},' +
        '"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},' +
        '"k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}},' +
        '"k:{\\"containerPort\\":443,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}}}}}}',
    );
  });
  test('are cleared by an empty list, and then kept again from the next apply on', () => {
    const live = { ...created(rc({ replicas: 1 })), uid: 'u' };
    const cleared = structuredClone(rc({ replicas: 1 }, { managedFields: [] }));
    trackUpdate(write({}), live, cleared);
    expect(cleared.metadata.managedFields).toBeUndefined();
    const changed = rc({ replicas: 2 });
    trackUpdate(write({}), cleared, changed);
    expect(changed.metadata.managedFields).toBeUndefined();
    expect(managers(apply(changed, rc({ minReadySeconds: 1 })))).toEqual(['m Apply', 'before-first-apply Update']);
  });

  test('that a client sends replace the old ones where they can be read, through the object alone', () => {
    const live = created(rc({ replicas: 1 }));
    const entry = {
      manager: 'x',
      operation: 'Apply',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': {} },
    };
    const sent = rc({ replicas: 1 }, { managedFields: [entry] });
    trackUpdate(write({}), live, sent);
    expect(managers(sent)).toEqual(['x Apply']);
    const refusals: readonly (readonly [JsonObject, string])[] = [
      [{ ...entry, operation: 'None' }, ''],
      [{ ...entry, fieldsV1: { 'k:{': {} } }, ''],
      [entry, 'status'],
    ];
    for (const [other, subresource] of refusals) {
      const refused = rc({ replicas: 1 }, { managedFields: [other] });
      trackUpdate(write({ subresource }), live, refused);
      expect(managers(refused)).toEqual(['m Update']);
    }
  });

  test('have at most ten entries; the oldest become one', () => {
    let live = created(rc({ replicas: 0 }, { labels: { l0: '' } }), { manager: 'm0' });
    for (let i = 1; i <= 12; i++) {
      const next = structuredClone(live);
      next.metadata.labels = { ...live.metadata.labels, [`l${i}`]: '' };
      trackUpdate(write({ manager: `m${i}`, time: `2030-01-01T00:00:${10 + i}Z` }), live, next);
      live = next;
    }
    const names = managers(live);
    expect(names).toHaveLength(10);
    expect(names).toContain('ancient-changes Update');
    expect(names).not.toContain('m1 Update');
  });

  test('of a version that is no longer served are dropped; of another one they are compared in it', () => {
    const live = created(rc({ replicas: 1, minReadySeconds: 1 }));
    const [entry] = live.metadata.managedFields ?? [];
    live.metadata.managedFields = [{ ...entry, apiVersion: 'v0', manager: 'old' }];
    const changed = (): KubeObject => rc({ replicas: 2, minReadySeconds: 1 });
    const gone = changed();
    trackUpdate(write({}), live, gone);
    expect(managers(gone)).toEqual(['m Update']);
    const served = changed();
    const same: Version = { type: RC, from: (object) => object, to: (object) => object };
    trackUpdate(write({ version: () => same }), live, served);
    const old = served.metadata.managedFields?.find(({ manager }) => manager === 'old');
    expect(old).toMatchObject({ apiVersion: 'v0', fieldsV1: { 'f:spec': { 'f:minReadySeconds': {} } } });
    expect(JSON.stringify(old)).not.toContain('replicas');
  });
});

describe('custom resources', () => {
  const items = { type: 'object', properties: { name: { type: 'string' }, v: { type: 'integer' } } };
  const schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          map: { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'], items },
          set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
          list: { type: 'array', items: { type: 'string' } },
          whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: { type: 'string' } },
          any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    },
  };

  test.each([
    [
      'with a schema',
      typeOfCustomResource(schema),
      { 'k:{"name":"a"}': { '.': {}, 'f:name': {}, 'f:v': {} } },
      { 'v:"x"': {} },
    ],
    ['without one', typeOfCustomResource(undefined), {}, {}],
  ])('%s', (_name, type, map, set) => {
    const spec = { map: [{ name: 'a', v: 1 }], set: ['x'], list: ['y'], whole: { k: 'v' }, any: { deep: { er: 1 } } };
    const { metadata } = apply(undefined, rc(spec), { type });
    const whole = type.kind === 'map' ? {} : { '.': {}, 'f:k': {} };
    const member = type.kind === 'map' ? {} : { '.': {} };
    const any = { ...member, 'f:deep': { '.': {}, 'f:er': {} } };
    expect(metadata.managedFields?.[0]?.['fieldsV1']).toEqual({
      'f:spec': { ...member, 'f:any': any, 'f:list': {}, 'f:map': map, 'f:set': set, 'f:whole': whole },
    });
  });
});

describe('the scale', () => {
  const paths = new Map([['v1', ['f:spec', 'f:replicas']]]);

  test('shows who owns the replicas, and takes them from who owned them', () => {
    const { metadata } = apply(created(rc({ minReadySeconds: 1 }), { manager: 'a' }), rc({ replicas: 1 }), {
      manager: 'b',
    });
    const shown = scaleEntries(metadata.managedFields, paths);
    expect(shown).toMatchObject([{ manager: 'b', operation: 'Apply', apiVersion: 'autoscaling/v1' }]);
    const scaler = { manager: 's', operation: 'Update', apiVersion: 'autoscaling/v1', subresource: 'scale' };
    const after = [{ ...scaler, time: TIME, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }];
    expect(objectEntries(metadata.managedFields, shown, paths, 'v1')).toEqual(metadata.managedFields);
    const taken = objectEntries(metadata.managedFields, after, paths, 'v1');
    expect(taken?.map(({ manager, apiVersion }) => `${manager} ${apiVersion}`)).toEqual(['a v1', 's v1']);
  });
});

test('an object with a list that its type does not describe has no owners, and is 500 to apply to', () => {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'web' } };
  const by = { type: typeOfDefinition('io.k8s.api.core.v1.ServiceAccount') };
  const live = created({ ...account, secrets: [{ namespace: 'ns' }] }, by);
  expect(live.metadata.managedFields).toBeUndefined();
  const apply = () => applyConfig(write(by), live, { ...account }, false, 'ns/web; /v1, Kind=ServiceAccount');
  expect(refusal(apply)).toMatchObject({
    code: 500,
    message: expect.stringMatching(
      /^failed to create typed live object \(ns\/web; \/v1, Kind=ServiceAccount\): \.secrets: element 0: associative list with keys has an element that omits all key fields \["name"\]/,
    ),
  });
});
