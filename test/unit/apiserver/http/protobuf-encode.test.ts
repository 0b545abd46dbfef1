// Objects as protobuf: what is encoded decodes to the same object, for every kind, and nothing that a kind has is without a field.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeProtobuf } from '../../../../apiserver/http/protobuf.ts';
import { encodeProtobuf, encodeWatchEvent, hasMessage } from '../../../../apiserver/http/protobuf-encode.ts';
import { messages } from '../../../../apiserver/http/protobuf-messages.ts';
import { BackwardWriter } from '../../../../apiserver/http/protobuf-writer.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { isObject, type JsonObject } from '../../../../apiserver/patch/json-value.ts';
import { definitions } from '../../../../apiserver/schema/definitions.ts';

interface Recorded {
  /** "apps/v1/deployments" */
  readonly at: string;
  readonly object: JsonObject;
  readonly result?: unknown;
}

const ENCODED = RESOURCE_KINDS.filter(({ group }) => group !== 'metrics.k8s.io');
const apiVersionOf = ({ group, version }: ResourceKind): string => (group === '' ? version : `${group}/${version}`);
const read = (name: string): Recorded[] =>
  JSON.parse(readFileSync(new URL(`../kinds/${name}`, import.meta.url), 'utf8'));

/** Kind and apiVersion of an object inside another are not sent: the field says what it is. */
function withoutType(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = value;
  return rest;
}

const MAPS = new Set(
  Object.values(messages()).flatMap((fields) =>
    Object.values(fields).flatMap((field) => (field.includes(':map:') ? [field.slice(0, field.indexOf(':'))] : [])),
  ),
);

/** Protobuf does not tell these from nothing: null, and lists and maps without elements. */
function isNothing(key: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === undefined || (MAPS.has(key) && isObject(value) && Object.keys(value).length === 0);
}

/** Without what is nothing, and with times as protobuf.ts writes them. */
function comparable(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) {
    return value.map((each) => comparable(key === 'volumeClaimTemplates' ? withoutType(each) : each));
  }
  if (typeof value === 'string') return value.replace(/^(\d{4}-\d\d-\d\dT[\d:]{8})\.000000Z$/, '$1Z');
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, each]) => !isNothing(name, each))
      .map(([name, each]) => [name, comparable(each, name)]),
  );
}

describe('an object as protobuf', () => {
  for (const file of ['recorded.json', 'recorded-later.json']) {
    it(`decodes to itself: each of ${file}`, () => {
      for (const { at, object, result } of read(file)) {
        const row = ENCODED.find((each) => `${each.group}/${each.version}/${each.plural}` === at);
        if (row === undefined) throw new Error(`no row ${at}`);
        const whole = { ...(isObject(result) ? result : object), kind: row.kind, apiVersion: apiVersionOf(row) };
        expect(comparable(decodeProtobuf(encodeProtobuf(whole))), at).toEqual(comparable(whole));
      }
    });
  }

  it.each(ENCODED.map((row) => [`${apiVersionOf(row)} ${row.kind}`, row] as const))('has metadata: %s', (_, row) => {
    const object = {
      kind: row.kind,
      apiVersion: apiVersionOf(row),
      metadata: {
        name: 'a',
        labels: { b: 'c', d: '' },
        generation: 2 ** 40,
        creationTimestamp: '2026-01-02T03:04:05Z',
        managedFields: [{ manager: 'm', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': { '.': {} } } }],
      },
    };
    expect(hasMessage(object.apiVersion, object.kind)).toBe(true);
    expect(decodeProtobuf(encodeProtobuf(object))).toEqual(object);
  });

  it('has the fields of each definition', () => {
    const all = definitions();
    const packages = ['api', 'apimachinery.pkg.apis', 'apiextensions-apiserver.pkg.apis', 'kube-aggregator.pkg.apis'];
    const namesOf = (message: string): string[] =>
      Object.values(messages()[message] ?? {}).flatMap((field) =>
        field.startsWith(':#') ? namesOf(field.slice(2)) : [field.slice(0, field.indexOf(':'))],
      );
    const missing = Object.keys(messages()).flatMap((message) => {
      const name = packages.map((each) => `io.k8s.${each}.${message}`).find((each) => all[each] !== undefined);
      const wanted = Object.keys(all[name ?? '']?.fields ?? {});
      const names = new Set(namesOf(message));
      return wanted.filter((field) => !names.has(field)).map((field) => `${message}.${field}`);
    });
    // What is newer than kube-apiserver 1.34 or older than what it serves.
    expect(missing.filter((each) => !/\.(kind|apiVersion)$/.test(each))).toEqual([
      'apiextensions.v1.CustomResourceDefinitionCondition.observedGeneration',
      'apiextensions.v1.CustomResourceDefinitionStatus.observedGeneration',
      'core.v1.PodResourceClaim.source',
    ]);
  });

  it('is a Status', () => {
    const causes = [{ reason: 'FieldValueInvalid', message: 'm', field: 'spec.x' }];
    const status = {
      ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'é', reason: 'Invalid' },
      ...{ details: { name: 'a', kind: 'pods', causes, retryAfterSeconds: 1, uid: 'u' }, code: 422 },
    };
    expect(decodeProtobuf(encodeProtobuf(status))).toEqual(status);
  });

  it('has schemas, numbers, bytes and times in each of their forms', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { type: 'number', minimum: -1.5, default: 0.1, enum: [1, 'x'], items: { type: 'string' } },
        b: { additionalProperties: false, items: [{ type: 'string' }, { type: 'integer' }] },
        c: { additionalProperties: { type: 'string' }, 'x-kubernetes-preserve-unknown-fields': true },
      },
    };
    const crd = {
      kind: 'CustomResourceDefinition',
      apiVersion: 'apiextensions.k8s.io/v1',
      spec: { versions: [{ name: 'v1', served: true, storage: false, schema: { openAPIV3Schema: schema } }] },
    };
    expect(decodeProtobuf(encodeProtobuf(crd))).toEqual(crd);
    const pod = {
      kind: 'Pod',
      apiVersion: 'v1',
      spec: {
        priority: -2_000_000_000,
        containers: [
          {
            name: 'c',
            resources: { limits: { cpu: '100m', memory: '1Gi' } },
            livenessProbe: { httpGet: { port: 'web' } },
            readinessProbe: { tcpSocket: { port: 80 } },
          },
        ],
        volumes: [{ name: 'v', emptyDir: {} }],
      },
    };
    expect(decodeProtobuf(encodeProtobuf(pod))).toEqual(pod);
    const lease = {
      kind: 'Lease',
      apiVersion: 'coordination.k8s.io/v1',
      spec: { renewTime: '1969-12-31T23:59:59.123456Z', leaseTransitions: 0 },
    };
    expect(decodeProtobuf(encodeProtobuf(lease))).toEqual(lease);
    const secret = { kind: 'Secret', apiVersion: 'v1', data: { k: 'AP8=', empty: '' } };
    expect(decodeProtobuf(encodeProtobuf(secret))).toEqual(secret);
  });

  it('is to the byte what kube-apiserver sends, but for fields that are empty', () => {
    const bytes = encodeProtobuf({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'n' }, data: { k: 'v' } });
    const envelope = [
      '6b387300',
      '0a0f',
      '0a027631',
      '1209436f6e6669674d6170',
      '120d',
      '0a030a016e',
      '12060a016b120176',
    ];
    expect(bytes.toString('hex')).toBe([...envelope, '1a00', '2200'].join(''));
  });

  it('leaves out what there is no field for, and says which value does not fit', () => {
    const map = { kind: 'ConfigMap', apiVersion: 'v1', data: { __proto__: 'x', toString: 'y' } };
    expect(decodeProtobuf(encodeProtobuf({ ...map, frob: 1 }))).toEqual(map);
    expect(() => encodeProtobuf({ ...map, data: { a: 1 } })).toThrow('a value of JSON type number is not a string');
    expect(() => encodeProtobuf({ ...map, data: ['a'] })).toThrow('a value of JSON type array is not a map');
  });
});

it('a watch event is a frame with its length before it', () => {
  const frame = encodeWatchEvent('ADDED', Buffer.from([1, 2, 3]));
  expect(frame.toString('hex')).toBe(`0000000e${'0a0541444445441205'}${'0a03010203'}`);
});

it('numbers of each length are varints', () => {
  const encoded = (value: number): string => {
    const writer = new BackwardWriter();
    writer.integer(1, value);
    return writer.result().toString('hex');
  };
  expect([0, 127, 128, 300, 2 ** 53].map(encoded)).toEqual(['0800', '087f', '088001', '08ac02', '088080808080808010']);
  expect(encoded(-1)).toBe('08ffffffffffffffffff01');
});
