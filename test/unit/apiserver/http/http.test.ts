import { describe, expect, it } from 'vitest';
import { parseApplyBody, parseBody } from '../../../../apiserver/http/body.ts';
import { Converter } from '../../../../apiserver/http/convert-aside.ts';
import { negotiate } from '../../../../apiserver/http/negotiate.ts';
import { deleteOptions } from '../../../../apiserver/http/options.ts';
import { decodeProtobuf } from '../../../../apiserver/http/protobuf.ts';
import { renderList, renderObject } from '../../../../apiserver/http/render.ts';
import { parseRequest } from '../../../../apiserver/http/request.ts';
import { humanDuration } from '../../../../apiserver/kinds/columns.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import type { ListPage } from '../../../../apiserver/registry/list.ts';
import { View } from '../../../../apiserver/registry/registry.ts';
import { epochMs, systemClock } from '../../../../lib/clock.ts';
import { body, failureOf, pods } from '../support.ts';

describe('what a request asks for', () => {
  const cases: readonly [string, string, object][] = [
    ['GET', '/api/v1/pods', { verb: 'list', group: '', version: 'v1', resource: 'pods', namespace: '', name: '' }],
    ['GET', '/api/v1/namespaces/ns/pods?watch=1', { verb: 'watch', namespace: 'ns' }],
    ['GET', '/api/v1/namespaces/ns/pods?watch=false', { verb: 'list' }],
    ['GET', '/api/v1/namespaces/ns/pods/a', { verb: 'get', name: 'a', subresource: '' }],
    ['HEAD', '/api/v1/namespaces/ns/pods/a', { verb: 'get' }],
    ['POST', '/api/v1/namespaces/ns/pods/a/exec?command=ls', { verb: 'create', name: 'a', subresource: 'exec' }],
    [
      'PATCH',
      '/apis/apps/v1/namespaces/ns/deployments/d/scale',
      { verb: 'patch', group: 'apps', resource: 'deployments', subresource: 'scale' },
    ],
    ['DELETE', '/api/v1/namespaces/ns/pods', { verb: 'deletecollection' }],
    ['DELETE', '/api/v1/namespaces/ns', { verb: 'delete', resource: 'namespaces', namespace: 'ns', name: 'ns' }],
    [
      'PUT',
      '/api/v1/namespaces/ns/finalize',
      { verb: 'update', resource: 'namespaces', name: 'ns', subresource: 'finalize' },
    ],
    ['GET', '/api/v1/namespaces', { verb: 'list', resource: 'namespaces', namespace: '' }],
    [
      'GET',
      '/api/v1/nodes/n/proxy/logs/a/b',
      { resource: 'nodes', name: 'n', subresource: 'proxy', tail: '/logs/a/b' },
    ],
    ['GET', '/api/v1/watch/namespaces/ns/pods/a', { verb: 'watch', resource: 'pods', namespace: 'ns', name: '' }],
    ['GET', '/api/v1/namespaces/ns/configmaps/a%20b', { name: 'a b' }],
    ['GET', '/apis/apps/v1', { kind: 'path', verb: 'get', path: '/apis/apps/v1' }],
    ['GET', '/healthz?verbose', { kind: 'path', path: '/healthz' }],
    ['POST', '/', { kind: 'path', verb: 'post' }],
  ];
  for (const [method, target, expected] of cases) {
    it(`${method} ${target}`, () => expect(parseRequest(method, target)).toMatchObject(expected));
  }
  it('a path that cannot be decoded is 400', () => {
    expect(failureOf(() => parseRequest('GET', '/api/v1/pods/%zz')).code).toBe(400);
  });
});

describe('the form of an answer', () => {
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const cases: readonly [string | undefined, object][] = [
    [undefined, { media: 'json', as: 'object' }],
    ['*/*', { media: 'json', as: 'object' }],
    ['application/yaml', { media: 'yaml', as: 'object' }],
    [`${table},application/json`, { as: 'table', version: 'v1' }],
    ['application/json;as=Table;v=v1beta1;g=meta.k8s.io', { as: 'table', version: 'v1beta1' }],
    ['application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', { as: 'partials' }],
    ['application/vnd.kubernetes.protobuf,application/json', { media: 'json', as: 'object' }],
    [
      'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
      { media: 'protobuf', as: 'partial' },
    ],
    ['application/json;as=Frob;v=v1;g=meta.k8s.io,application/json', { as: 'object' }],
    ['application/json;q=0.5,application/yaml', { media: 'yaml' }],
    ['application/vnd.kubernetes.protobuf', { media: 'protobuf', as: 'object' }],
    ['application/vnd.kubernetes.protobuf;stream=watch', { media: 'protobuf', as: 'object' }],
    ['application/vnd.kubernetes.protobuf, */*;q=0.1', { media: 'json', as: 'object' }],
    [
      'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf',
      { as: 'object' },
    ],
    [
      'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
      { media: 'protobuf', as: 'partials' },
    ],
  ];
  for (const [accept, expected] of cases) {
    it(`for Accept: ${accept}`, () => expect(negotiate(accept, false)).toMatchObject(expected));
  }
  it.each([
    'text/html',
    'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io',
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io',
  ])('that cannot be served is 406: %s', (accept) => {
    const message =
      'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf';
    expect(failureOf(() => negotiate(accept, false))).toEqual({ code: 406, reason: 'NotAcceptable', message });
  });
});

describe('rendering', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');
  const pod = body('Pod', { name: 'a', resourceVersion: '5', creationTimestamp: '2026-01-01T00:00:00Z' });
  const view = new View(JSON.stringify(pod));
  const form = { media: 'json', version: 'v1', pretty: false } as const;
  const page = { revision: 7, items: [view], continueToken: 'next', remaining: 3 };

  it('puts a list together from what is stored, where only items of custom kinds say what they are', () => {
    const { kind, apiVersion, ...item } = pod;
    const custom = { checkBody: () => ({ strict: [] }), openapi: () => ({}), schema: {}, revision: '' };
    const otherOrder = new View(JSON.stringify({ ...item, apiVersion, kind }));
    const pages: readonly [ResourceKind, ListPage, unknown][] = [
      [pods, page, item],
      [pods, { ...page, items: [otherOrder] }, item],
      [{ ...pods, custom }, page, pod],
    ];
    for (const [row, one, expected] of pages) {
      const options = { form: { ...form, as: 'object' }, includeObject: 'Metadata', now: epochMs(now) } as const;
      expect(JSON.parse(renderList(row, one, options))).toEqual({
        kind: 'PodList',
        apiVersion: 'v1',
        metadata: { resourceVersion: '7', continue: 'next', remainingItemCount: 3 },
        items: [expected],
      });
    }
  });

  it('makes a table of name and age for kinds without one of their own', () => {
    const text = renderList(pods, page, {
      form: { ...form, as: 'table' },
      includeObject: 'Metadata',
      now: epochMs(now),
    });
    expect(JSON.parse(text)).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      columnDefinitions: [{ name: 'Name', format: 'name' }, { name: 'Age' }],
      rows: [{ cells: ['a', '24h'], object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } }],
    });
  });

  it('says the columns once per watch', () => {
    const render = (header: boolean) =>
      JSON.parse(
        renderObject(pods, view, { form: { ...form, as: 'table' }, includeObject: 'None', now: epochMs(now) }, header),
      );
    expect(render(true)).toMatchObject({ columnDefinitions: [{}, {}], rows: [{ object: null }] });
    expect(render(false)).toMatchObject({ columnDefinitions: null, metadata: { resourceVersion: '5' } });
  });

  const ages: readonly [number, string][] = [
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [150, '2m30s'],
    [3599, '59m'],
    [3 * 3600, '3h'],
    [3 * 3600 + 300, '3h5m'],
    [30 * 3600, '30h'],
    [49 * 3600, '2d1h'],
    [10 * 86_400, '10d'],
    [800 * 86_400, '2y70d'],
    [-5, '<invalid>'],
  ];
  for (const [seconds, text] of ages)
    it(`${seconds} s is "${text}"`, () => expect(humanDuration(seconds * 1000)).toBe(text));
});

describe('a body', () => {
  const converter = new Converter({ clock: systemClock });
  it('may be JSON or YAML', async () => {
    expect((await parseBody('application/json', Buffer.from('{"a":1}'), converter)).value).toEqual({ a: 1 });
    expect((await parseBody(undefined, Buffer.from('{"a":1}'), converter)).value).toEqual({ a: 1 });
    expect((await parseBody('application/yaml', Buffer.from('a: 1\nb: 2026-01-01'), converter)).value).toEqual({
      a: 1,
      b: '2026-01-01',
    });
  });
  const refusals: readonly [string, string, number][] = [
    ['application/json', '{"a":', 400],
    ['application/yaml', 'a: [1', 400],
    ['application/yaml', 'a: 1\na: 2', 400],
    ['text/plain', 'x', 415],
    ['application/vnd.kubernetes.protobuf', '{"a":1}', 400],
  ];
  for (const [type, text, code] of refusals) {
    it(`"${text.replace('\n', ' ')}" as ${type} is ${code}`, async () => {
      await expect(parseBody(type, Buffer.from(text), converter)).rejects.toMatchObject({ status: { code } });
    });
  }

  it('to apply that begins like JSON may be YAML alone', async () => {
    const text = '{ "a": [1, 2,], # two\n "b": {"c": 1,},}';
    await expect(parseApplyBody(Buffer.from(text), converter)).resolves.toEqual({ a: [1, 2], b: { c: 1 } });
    await expect(parseApplyBody(Buffer.from('{ "a": '), converter)).rejects.toThrow('error decoding YAML: ');
  });

  it('in YAML with keys that are there twice is refused with the line of each', async () => {
    const text = '\na: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 4\n';
    await expect(parseBody('application/yaml', Buffer.from(text), converter)).rejects.toThrow(
      'yaml: unmarshal errors:\n  line 6: key "c" already set in map\n  line 7: key "a" already set in map',
    );
  });

  // Field numbers from k8s.io/api: what a client would put on the wire, written out by hand.
  const varint = (value: number): Buffer =>
    value < 128 ? Buffer.from([value]) : Buffer.concat([Buffer.from([(value & 127) | 128]), varint(value >> 7)]);
  const field = (number: number, value: Buffer | string | number): Buffer => {
    if (typeof value === 'number') return Buffer.concat([varint(number << 3), varint(value)]);
    const bytes = Buffer.from(value);
    return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
  };
  const entry = (key: string, value: string): Buffer => Buffer.concat([field(1, key), field(2, value)]);
  const wrap = (apiVersion: string, kind: string, raw: Buffer): Buffer =>
    Buffer.concat([
      Buffer.from('k8s\0'),
      field(1, Buffer.concat([field(1, apiVersion), field(2, kind)])),
      field(2, raw),
    ]);

  it('in protobuf is what its JSON would be', () => {
    const metadata = Buffer.concat([field(1, 'a'), field(8, ''), field(11, entry('x', 'y'))]);
    const port = Buffer.concat([
      field(1, 'http'),
      field(3, 80),
      field(4, Buffer.concat([field(1, 1), field(2, 0), field(3, 'web')])),
    ]);
    const spec = Buffer.concat([field(1, port), field(2, entry('app', 'a'))]);
    expect(decodeProtobuf(wrap('v1', 'Service', Buffer.concat([field(1, metadata), field(2, spec)])))).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'a', labels: { x: 'y' } },
      spec: { ports: [{ name: 'http', port: 80, targetPort: 'web' }], selector: { app: 'a' } },
    });
    const secret = Buffer.concat([field(1, field(1, 's')), field(2, entry('k', 'v'))]);
    expect(decodeProtobuf(wrap('v1', 'Secret', secret))).toMatchObject({ data: { k: 'dg==' } });
  });

  it('in protobuf puts embedded structs where JSON has them', () => {
    const keyRef = Buffer.concat([field(1, field(1, 'map')), field(2, 'key')]);
    const env = Buffer.concat([field(1, 'E'), field(3, field(3, keyRef))]);
    const volume = Buffer.concat([field(1, 'v'), field(2, field(1, field(1, '/host')))]);
    const spec = Buffer.concat([field(1, volume), field(2, Buffer.concat([field(1, 'c'), field(7, env)]))]);
    expect(decodeProtobuf(wrap('v1', 'Pod', field(2, spec)))['spec']).toEqual({
      volumes: [{ name: 'v', hostPath: { path: '/host' } }],
      containers: [{ name: 'c', env: [{ name: 'E', valueFrom: { configMapKeyRef: { name: 'map', key: 'key' } } }] }],
    });
  });

  it('in protobuf knows the storage kinds', () => {
    const topology = field(1, Buffer.concat([field(1, 'zone'), field(2, 'a'), field(2, 'b')]));
    const fields = [
      field(1, field(1, 'fast')),
      field(2, 'csi.test'),
      field(3, entry('k', 'v')),
      field(6, 1),
      field(8, topology),
    ];
    expect(decodeProtobuf(wrap('storage.k8s.io/v1', 'StorageClass', Buffer.concat(fields)))).toEqual({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: 'csi.test',
      parameters: { k: 'v' },
      allowVolumeExpansion: true,
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] }],
    });
    const source = field(2, field(1, 'pv'));
    const spec = field(2, Buffer.concat([field(1, 'csi.test'), source, field(3, 'n1')]));
    expect(decodeProtobuf(wrap('storage.k8s.io/v1', 'VolumeAttachment', spec))['spec']).toEqual({
      attacher: 'csi.test',
      source: { persistentVolumeName: 'pv' },
      nodeName: 'n1',
    });
  });

  it('in protobuf has the schemas of definitions as JSON spells them', () => {
    const json = (text: string): Buffer => field(1, text);
    // As client-go sends it: fields that are no pointers are there, empty ones too.
    const schema = (type: string, ...rest: readonly Buffer[]): Buffer =>
      Buffer.concat([field(1, ''), field(2, ''), field(5, type), field(10, 0), field(18, 0), field(37, 0), ...rest]);
    const property = (name: string, value: Buffer): Buffer =>
      field(29, Buffer.concat([field(1, name), field(2, value)]));
    const root = schema(
      'object',
      property('list', schema('array', field(24, field(1, schema('string'))))),
      property(
        'pair',
        schema('array', field(24, Buffer.concat([field(2, schema('string')), field(2, schema('integer'))]))),
      ),
      property('free', schema('object', field(30, field(2, schema('string'))))),
      property('any', schema('object', field(30, field(1, 1)))),
      property('none', schema('object', field(30, field(1, 0)))),
      property(
        'size',
        schema('string', field(8, json('"small"')), field(20, json('"small"')), field(20, json('null'))),
      ),
      property('kept', schema('object', field(38, 1), field(41, 'a'), field(42, 'map'))),
      property('rule', schema('', field(40, 1), field(44, Buffer.concat([field(1, 'self > 1'), field(2, 'no')])))),
      field(32, Buffer.concat([field(1, 'd'), field(2, Buffer.concat([field(2, 'x'), field(2, 'y')]))])),
    );
    const version = Buffer.concat([field(1, 'v1'), field(2, 1), field(3, 1), field(4, field(1, root)), field(7, 0)]);
    const spec = Buffer.concat([
      field(1, 'example.com'),
      field(3, field(1, 'things')),
      field(4, 'Cluster'),
      field(7, version),
    ]);
    const found = decodeProtobuf(wrap('apiextensions.k8s.io/v1', 'CustomResourceDefinition', field(2, spec)));
    expect(found['spec']).toEqual({
      group: 'example.com',
      names: { plural: 'things' },
      scope: 'Cluster',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          deprecated: false,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                list: { type: 'array', items: { type: 'string' } },
                pair: { type: 'array', items: [{ type: 'string' }, { type: 'integer' }] },
                free: { type: 'object', additionalProperties: { type: 'string' } },
                any: { type: 'object', additionalProperties: true },
                none: { type: 'object', additionalProperties: false },
                size: { type: 'string', default: 'small', enum: ['small', null] },
                kept: {
                  type: 'object',
                  'x-kubernetes-preserve-unknown-fields': true,
                  'x-kubernetes-list-map-keys': ['a'],
                  'x-kubernetes-list-type': 'map',
                },
                rule: {
                  'x-kubernetes-int-or-string': true,
                  'x-kubernetes-validations': [{ rule: 'self > 1', message: 'no' }],
                },
              },
              dependencies: { d: ['x', 'y'] },
            },
          },
        },
      ],
    });
  });

  it('in protobuf is known of each kind that kube-apiserver takes as protobuf', () => {
    const unknown = RESOURCE_KINDS.filter(({ group }) => group !== 'metrics.k8s.io')
      .map(({ group, version, kind }) => ({ group, version, kind }))
      .filter(({ group, version, kind }) => {
        const body = wrap(group === '' ? version : `${group}/${version}`, kind, field(1, field(1, 'a')));
        try {
          decodeProtobuf(body);
          return false;
        } catch (error) {
          if (!(error instanceof Error && error.message.includes('is not known'))) throw error;
          return true;
        }
      });
    expect(unknown).toEqual([]);
  });

  it('in protobuf that is cut short or unknown is 400', () => {
    const whole = wrap('v1', 'Secret', field(1, field(1, 'name')));
    expect(failureOf(() => decodeProtobuf(whole.subarray(0, whole.length - 2))).code).toBe(400);
    expect(failureOf(() => decodeProtobuf(wrap('v1', 'Frob', field(1, '')))).code).toBe(400);
  });
});

describe('the options of a deletion', () => {
  const query = (text: string) => new URLSearchParams(text);
  it('come from the body, and from the query where the body says nothing', () => {
    expect(deleteOptions(query('gracePeriodSeconds=5'), undefined)).toEqual({ gracePeriodSeconds: 5, dryRun: false });
    expect(
      deleteOptions(query('gracePeriodSeconds=5'), {
        gracePeriodSeconds: 0,
        preconditions: { uid: 'u' },
        dryRun: ['All'],
      }),
    ).toEqual({
      gracePeriodSeconds: 0,
      uid: 'u',
      dryRun: true,
    });
  });
  for (const [text, options, code = 400] of [
    ['gracePeriodSeconds=x', {}],
    ['dryRun=Some', {}, 422],
    ['', { propagationPolicy: 'Frob' }, 422],
    ['', { propagationPolicy: 'Orphan', orphanDependents: true }, 422],
    ['', { kind: 'Pod' }],
    ['', []],
  ] as const) {
    it(`are refused for ?${text} ${JSON.stringify(options)}`, () => {
      expect(failureOf(() => deleteOptions(query(text), options)).code).toBe(code);
    });
  }
});
