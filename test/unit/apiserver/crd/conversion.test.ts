// Custom resources in two versions with a real conversion webhook over HTTPS: v1beta1 has spec.hostPort, v1 has spec.host and
// spec.port. What is stored, shown, watched and refused, and when the webhook is called.
// Past 500 lines, since all cases share one server and one webhook.

import type { ServerResponse } from 'node:http';
import { get } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, at, TestApiServer } from '../../../support/api-server.ts';
import { type RecordedRequest, TestServer } from '../../../support/https-server.ts';
import { makeCa } from '../../../support/tls.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GROUP = 'stable.example.com';
type Version = 'v1' | 'v1beta1';
type Json = Record<string, unknown>;

let stand: TestApiServer;
let hook: TestServer;
let caBundle: string;
/** What the webhook makes of its answer before it is sent; undefined: it does not answer. */
let spoil: (review: Json) => unknown = (review) => review;
/** Before it answers. */
let meanwhile: () => Promise<void> = async () => undefined;

function record(value: unknown): Json {
  if (typeof value !== 'object' || value === null) throw new TypeError('no object');
  return { ...value };
}

/** What a webhook's author writes. */
function convert(object: Json, apiVersion: string): Json {
  const spec = record(object['spec'] ?? {});
  if (apiVersion.endsWith('/v1')) {
    const { hostPort = '', ...rest } = spec;
    const [host = '', port = ''] = String(hostPort).split(':');
    return { ...object, apiVersion, spec: { ...rest, host, port } };
  }
  const { host, port, ...rest } = spec;
  return { ...object, apiVersion, spec: { ...rest, hostPort: `${host}:${port}` } };
}

async function answer({ body }: RecordedRequest, response: ServerResponse): Promise<void> {
  const request = record(at(JSON.parse(body), 'request'));
  const wanted = String(request['desiredAPIVersion']);
  const objects = Array.isArray(request['objects']) ? request['objects'] : [];
  await meanwhile();
  const review = spoil({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    response: {
      uid: request['uid'],
      result: { status: 'Success' },
      convertedObjects: objects.map((object) => convert(record(object), wanted)),
    },
  });
  if (review === undefined) return;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(review));
}

const TEXT = { type: 'string' };
const schemaOf = (fields: object): object => ({
  openAPIV3Schema: {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { ...fields, replicas: { type: 'integer' }, note: TEXT } },
      status: { type: 'object', properties: { replicas: { type: 'integer' } } },
    },
  },
});
const SUBRESOURCES = {
  status: {},
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
};
const versionsWith = (storage: Version): object[] => [
  {
    name: 'v1beta1',
    served: true,
    storage: storage === 'v1beta1',
    schema: schemaOf({ hostPort: TEXT }),
    subresources: SUBRESOURCES,
    selectableFields: [{ jsonPath: '.spec.hostPort' }],
  },
  {
    name: 'v1',
    served: true,
    storage: storage === 'v1',
    schema: schemaOf({ host: TEXT, port: TEXT, tier: { type: 'string', default: 'gold' } }),
    subresources: SUBRESOURCES,
    additionalPrinterColumns: [{ name: 'Host', type: 'string', jsonPath: '.spec.host' }],
  },
];

let count = 0;
/** A definition of its own, whose objects are stored in v1beta1 at first. */
async function define(storage: Version = 'v1beta1'): Promise<{ plural: string; name: string; kind: string }> {
  const kind = `Cron${count++}`;
  const plural = `${kind.toLowerCase()}s`;
  const name = `${plural}.${GROUP}`;
  await stand.admit('POST', DEFINITIONS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural, kind },
      versions: versionsWith(storage),
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: { url: `${hook.url}/convert`, caBundle }, conversionReviewVersions: ['v2', 'v1'] },
      },
    },
  });
  await expect.poll(() => read(plural, 'v1', '')).toMatchObject({ code: 200 });
  hook.requests.length = 0;
  return { plural, name, kind };
}

const path = (plural: string, version: Version, rest = ''): string =>
  `/apis/${GROUP}/${version}/namespaces/default/${plural}${rest}`;
const read = (plural: string, version: Version, rest: string): Promise<Answer> =>
  stand.call({ path: path(plural, version, rest), as: stand.admin });
const object = (kind: string, version: Version, name: string, spec: object, more: object = {}): Json => ({
  apiVersion: `${GROUP}/${version}`,
  kind,
  metadata: { name },
  spec,
  ...more,
});
const beta = (kind: string, name: string, hostPort = 'a.example:80'): Json =>
  object(kind, 'v1beta1', name, { hostPort });
const calls = (): number => hook.requests.length;
const sent = (index = 0): unknown[] => {
  const objects = at(JSON.parse(hook.requests[index]?.body ?? '{}'), 'request', 'objects');
  return Array.isArray(objects) ? objects : [];
};
/** Where objects are stored from now on. */
const store = (name: string, version: Version): Promise<unknown> =>
  stand.admit(
    'PATCH',
    `${DEFINITIONS}/${name}`,
    [{ op: 'replace', path: '/spec/versions', value: versionsWith(version) }],
    {
      'content-type': 'application/json-patch+json',
    },
  );

beforeAll(async () => {
  const ca = await makeCa();
  caBundle = Buffer.from(ca.cert).toString('base64');
  hook = await TestServer.start(await ca.server(['127.0.0.1']), ca.cert, answer);
  stand = await TestApiServer.start();
});
afterAll(async () => {
  await stand.stop();
  await hook[Symbol.asyncDispose]();
});
afterEach(() => {
  spoil = (review) => review;
  meanwhile = async () => undefined;
});

describe('an object of another version than the stored one', () => {
  it('is converted for reads, once, and defaulted', async () => {
    const { plural, kind } = await define();
    await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'a'));
    expect(calls()).toBe(0);
    const shown = await read(plural, 'v1', '/a');
    expect(shown.json).toMatchObject({
      apiVersion: `${GROUP}/v1`,
      kind,
      metadata: { name: 'a', uid: expect.any(String) },
      spec: { host: 'a.example', port: '80', tier: 'gold' },
    });
    expect(sent()).toMatchObject([
      { apiVersion: `${GROUP}/v1beta1`, metadata: { name: 'a' }, spec: { hostPort: 'a.example:80' } },
    ]);
    await read(plural, 'v1', '/a');
    expect(calls()).toBe(1);
  });

  it('is converted with the others of a list, in one call, and a page at a time', async () => {
    const { plural, kind } = await define();
    for (const name of ['a', 'b', 'c']) await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, name));
    const first = await read(plural, 'v1', '?limit=2');
    expect(at(first.json, 'items')).toMatchObject([{ spec: { host: 'a.example' } }, { metadata: { name: 'b' } }]);
    const next = String(at(first.json, 'metadata', 'continue'));
    const rest = await read(plural, 'v1', `?limit=2&continue=${encodeURIComponent(next)}`);
    expect(at(rest.json, 'items')).toMatchObject([{ apiVersion: `${GROUP}/v1`, metadata: { name: 'c' } }]);
    await read(plural, 'v1', '');
    expect([calls(), sent().length]).toEqual([1, 3]);
    const selected = await read(plural, 'v1beta1', '?fieldSelector=spec.hostPort%3Da.example:80');
    expect(at(selected.json, 'items', 2, 'metadata', 'name')).toBe('c');
    const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const rows = await stand.call({ path: path(plural, 'v1', '/a'), as: stand.admin, headers: table });
    expect(at(rows.json, 'rows', 0, 'cells')).toEqual(['a', 'a.example']);
  });

  it('is stored in the storage version, and shown as it is then read', async () => {
    const { plural, kind } = await define('v1');
    const made = await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'a'));
    expect(made).toMatchObject({ apiVersion: `${GROUP}/v1beta1`, spec: { hostPort: 'a.example:80' } });
    const before = calls();
    expect((await read(plural, 'v1', '/a')).json).toMatchObject({ spec: { host: 'a.example', port: '80' } });
    expect(calls()).toBe(before);
    const merge = { 'content-type': 'application/merge-patch+json' };
    const patched = await stand.admit(
      'PATCH',
      path(plural, 'v1beta1', '/a'),
      { spec: { hostPort: 'b.example:81' } },
      merge,
    );
    expect(patched).toMatchObject({ metadata: { generation: 2 }, spec: { hostPort: 'b.example:81' } });
    expect((await read(plural, 'v1', '/a')).json).toMatchObject({ spec: { host: 'b.example', port: '81' } });
  });

  it('changes labels and annotations by the webhook, and nothing else of its metadata', async () => {
    const { plural, kind } = await define();
    const labelled = {
      ...beta(kind, 'a'),
      metadata: { name: 'a', labels: { old: '1' }, finalizers: ['example.com/x'] },
    };
    await stand.admit('POST', path(plural, 'v1beta1'), labelled);
    spoil = (review) => {
      const converted = record(at(review, 'response', 'convertedObjects', 0));
      converted['metadata'] = { ...record(converted['metadata']), labels: { new: '2' }, finalizers: [], generation: 9 };
      return { ...review, response: { ...record(review['response']), convertedObjects: [converted] } };
    };
    const { json } = await read(plural, 'v1', '/a');
    expect(at(json, 'metadata')).toMatchObject({ labels: { new: '2' }, finalizers: ['example.com/x'], generation: 1 });
    const selected = await read(plural, 'v1', '?labelSelector=new%3D2');
    expect(at(selected.json, 'items')).toHaveLength(1);
  });

  it('is applied with managed fields of each version', async () => {
    const { plural, kind } = await define();
    const apply = (version: Version, manager: string, spec: object, force = ''): Promise<Answer> =>
      stand.call({
        method: 'PATCH',
        path: path(plural, version, `/a?fieldManager=${manager}${force}`),
        as: stand.admin,
        body: object(kind, version, 'a', spec),
        headers: { 'content-type': 'application/apply-patch+yaml' },
      });
    expect((await apply('v1beta1', 'one', { hostPort: 'a.example:80', note: 'x' })).code).toBe(201);
    const refused = await apply('v1', 'two', { host: 'b.example' });
    // Upstream, too, hides fields that the other version names otherwise: the whole of hostPort changes.
    expect([refused.code, at(refused.json, 'details', 'causes', 0, 'field')]).toEqual([409, '.spec.hostPort']);
    const forced = await apply('v1', 'two', { host: 'b.example' }, '&force=true');
    expect(forced.json).toMatchObject({ spec: { host: 'b.example', port: '80', note: 'x' } });
    const managers = at(forced.json, 'metadata', 'managedFields');
    expect(managers).toMatchObject([
      { manager: 'one', apiVersion: `${GROUP}/v1beta1`, fieldsV1: { 'f:spec': { 'f:note': {} } } },
      { manager: 'two', apiVersion: `${GROUP}/v1`, fieldsV1: { 'f:spec': { 'f:host': {} } } },
    ]);
    const without = await apply('v1beta1', 'one', {});
    expect(at(without.json, 'spec')).toEqual({ hostPort: 'b.example:80' });
  });

  it('has its status and its scale in each version', async () => {
    const { plural, kind } = await define();
    await stand.admit('POST', path(plural, 'v1beta1'), {
      ...beta(kind, 'a'),
      spec: { hostPort: 'a.example:80', replicas: 1 },
    });
    const merge = { 'content-type': 'application/merge-patch+json' };
    await stand.admit(
      'PATCH',
      path(plural, 'v1', '/a/status'),
      { status: { replicas: 4 }, spec: { host: 'no' } },
      merge,
    );
    const scaled = await stand.admit('PATCH', path(plural, 'v1', '/a/scale'), { spec: { replicas: 5 } }, merge);
    expect(scaled).toMatchObject({ kind: 'Scale', spec: { replicas: 5 }, status: { replicas: 4 } });
    expect((await read(plural, 'v1', '/a/scale')).json).toMatchObject({ spec: { replicas: 5 } });
    expect((await read(plural, 'v1beta1', '/a')).json).toMatchObject({
      spec: { hostPort: 'a.example:80', replicas: 5 },
      status: { replicas: 4 },
      metadata: { generation: 2 },
    });
  });

  it('is written unchanged where the storage version has changed', async () => {
    const { plural, name, kind } = await define();
    await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'a'));
    await store(name, 'v1');
    await expect.poll(async () => at((await read(plural, 'v1', '/a')).json, 'spec', 'host')).toBe('a.example');
    const before = (await read(plural, 'v1beta1', '/a')).json;
    const put = (): Promise<unknown> => stand.admit('PUT', path(plural, 'v1beta1', '/a'), before);
    const after = await put();
    expect(at(after, 'metadata', 'resourceVersion')).not.toBe(at(before, 'metadata', 'resourceVersion'));
    // What was stored needs no webhook in the new version any more.
    spoil = () => undefined;
    hook.requests.length = 0;
    expect((await read(plural, 'v1', '/a')).json).toMatchObject({ spec: { host: 'a.example' } });
    expect(calls()).toBe(0);
  });

  it('that another client writes meanwhile is a conflict', async () => {
    const { plural, kind } = await define('v1');
    await stand.admit('POST', path(plural, 'v1'), object(kind, 'v1', 'a', { host: 'a', port: '1' }));
    const own = (await read(plural, 'v1beta1', '/a')).json;
    let isFirst = true;
    meanwhile = async () => {
      if (!isFirst) return;
      isFirst = false;
      const merge = { 'content-type': 'application/merge-patch+json' };
      await stand.admit('PATCH', path(plural, 'v1', '/a'), { spec: { note: 'other' } }, merge);
    };
    const changed = { ...record(own), spec: { hostPort: 'b:2' } };
    const lost = await stand.call({
      method: 'PUT',
      path: path(plural, 'v1beta1', '/a'),
      as: stand.admin,
      body: changed,
    });
    expect([lost.code, at(lost.json, 'reason')]).toEqual([409, 'Conflict']);
    expect((await read(plural, 'v1', '/a')).json).toMatchObject({ spec: { host: 'a', note: 'other' } });
  });

  it('is deleted, and its definition with it, though the webhook is away', async () => {
    const { plural, name, kind } = await define();
    for (const each of ['a', 'b']) await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, each));
    const gone = await stand.admit('DELETE', path(plural, 'v1', '/a'));
    expect(gone).toMatchObject({ status: 'Success', details: { name: 'a' } });
    await store(name, 'v1');
    spoil = (review) => ({
      ...review,
      response: { uid: at(review, 'response', 'uid'), result: { status: 'Failed', message: 'away' } },
    });
    await stand.admit('DELETE', `${DEFINITIONS}/${name}`);
    await expect
      .poll(async () => (await stand.call({ path: `${DEFINITIONS}/${name}`, as: stand.admin })).code)
      .toBe(404);
  });
});

describe('a watch in another version', () => {
  it('shows every change once and in order, converted', async () => {
    const { plural, kind } = await define();
    const merge = { 'content-type': 'application/merge-patch+json' };
    await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'a'));
    const lines: unknown[] = [];
    const { cert, key } = stand.admin;
    const outgoing = get(
      `${stand.server.url}${path(plural, 'v1', '?watch=1')}`,
      { ca: stand.server.pki.ca.cert, cert, key },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
            lines.push(JSON.parse(text.slice(0, end)));
            text = text.slice(end + 1);
          }
        });
      },
    );
    outgoing.on('error', () => undefined);
    await expect.poll(() => lines.length).toBe(1);
    for (const port of [81, 82, 83]) {
      await stand.admit('PATCH', path(plural, 'v1beta1', '/a'), { spec: { hostPort: `a.example:${port}` } }, merge);
    }
    await stand.admit('DELETE', path(plural, 'v1beta1', '/a'));
    await expect.poll(() => lines.length).toBe(5);
    const seen = lines.map((line) => [
      at(line, 'type'),
      at(line, 'object', 'apiVersion'),
      at(line, 'object', 'spec', 'port'),
    ]);
    expect(seen).toEqual([
      ['ADDED', `${GROUP}/v1`, '80'],
      ['MODIFIED', `${GROUP}/v1`, '81'],
      ['MODIFIED', `${GROUP}/v1`, '82'],
      ['MODIFIED', `${GROUP}/v1`, '83'],
      ['DELETED', `${GROUP}/v1`, '83'],
    ]);
    spoil = (review) => ({ ...review, response: null });
    await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'b'));
    await expect.poll(() => lines.length).toBe(6);
    expect(lines[5]).toMatchObject({
      type: 'ERROR',
      object: {
        code: 500,
        message: `conversion webhook for ${GROUP}/v1beta1, Kind=${kind} failed: no response provided`,
      },
    });
    outgoing.destroy();
  });
});

describe('a webhook that fails', () => {
  const response = (review: Json, more: object): Json => ({
    ...review,
    response: { ...record(review['response']), ...more },
  });
  const first = (review: Json, more: object): Json =>
    response(review, { convertedObjects: [{ ...record(at(review, 'response', 'convertedObjects', 0)), ...more }] });
  const metadata = (review: Json, more: object): Json =>
    first(review, { metadata: { ...record(at(review, 'response', 'convertedObjects', 0, 'metadata')), ...more } });

  it.each<[string, (review: Json) => unknown, string]>([
    [
      'another kind of answer',
      (r) => ({ ...r, kind: 'X' }),
      'failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=X',
    ],
    [
      'no kind at all',
      ({ response: only }) => ({ response: only }),
      'failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=',
    ],
    ['no response', (r) => ({ ...r, response: undefined }), 'failed: no response provided'],
    ['the answer to another review', (r) => response(r, { uid: 'x' }), `failed: expected response.uid="UID", got "x"`],
    [
      'its own refusal',
      (r) => response(r, { result: { status: 'Failed', message: 'not today' } }),
      'failed: not today',
    ],
    ['no status', (r) => response(r, { result: {} }), `failed: response.result.status was '', not 'Success'`],
    ['too few objects', (r) => response(r, { convertedObjects: [] }), 'returned 0 objects, expected 1'],
    [
      'another version',
      (r) => first(r, { apiVersion: 'a/v3' }),
      `returned invalid object at index 0: invalid groupVersion (expected ${GROUP}/v1, received a/v3)`,
    ],
    [
      'another kind',
      (r) => first(r, { kind: 'Other' }),
      'returned invalid object at index 0: invalid kind (expected KIND, received Other)',
    ],
    ['another name', (r) => metadata(r, { name: 'b' }), 'returned invalid object: must have the same name: a != b'],
    [
      'another namespace',
      (r) => metadata(r, { namespace: 'b' }),
      'returned invalid object: must have the same namespace: default != b',
    ],
    ['another uid', (r) => metadata(r, { uid: '' }), 'returned invalid object: must have the same UID: UID != '],
    [
      'labels that are none',
      (r) => metadata(r, { labels: ['a'] }),
      'returned invalid metadata: invalid metadata.labels of type []interface {} in converted object',
    ],
    [
      'a label that is a number',
      (r) => metadata(r, { labels: { a: 1 } }),
      'returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object',
    ],
    [
      'a label that is not valid',
      (r) => metadata(r, { labels: { a: '!' } }),
      'returned invalid metadata: metadata.labels: Invalid value: "!": a valid label must be an empty string',
    ],
  ])('with %s: 500 says so', async (_name, spoilt, message) => {
    const { plural, kind } = await define();
    await stand.admit('POST', path(plural, 'v1beta1'), beta(kind, 'a'));
    spoil = spoilt;
    const { code, json } = await read(plural, 'v1', '/a');
    const shown = String(at(json, 'message'))
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
      .replaceAll(kind, 'KIND');
    expect([code, at(json, 'reason') ?? '']).toEqual([500, '']);
    expect(shown).toContain(`conversion webhook for ${GROUP}/v1beta1, Kind=KIND ${message}`);
    const list = await read(plural, 'v1', '');
    expect(list.code).toBe(500);
    // The version that is stored needs no webhook.
    expect((await read(plural, 'v1beta1', '/a')).code).toBe(200);
    spoil = (review) => review;
    expect((await read(plural, 'v1', '/a')).code).toBe(200);
  });

  it('by not being there, or taking too long: 500, nothing written, and counted', async () => {
    const { plural, kind } = await define('v1');
    meanwhile = async () => stand.clock.elapse(31_000);
    spoil = () => undefined;
    const slow = await stand.call({
      method: 'POST',
      path: path(plural, 'v1beta1'),
      as: stand.admin,
      body: beta(kind, 'a'),
    });
    expect([slow.code, at(slow.json, 'message')]).toEqual([
      500,
      `conversion webhook for ${GROUP}/v1beta1, Kind=${kind} failed: Post "${hook.url}/convert?timeout=30s": context deadline exceeded`,
    ]);
    expect(at((await read(plural, 'v1', '')).json, 'items')).toEqual([]);
    const { text } = await stand.call({ path: '/metrics', as: stand.admin });
    expect(text).toMatch(
      /^apiserver_conversion_webhook_request_total\{result="failure",failure_type="conversion_webhook_call_failure"\} [1-9]/m,
    );
    expect(text).toMatch(/^apiserver_conversion_webhook_request_total\{result="success",failure_type=""\} [1-9]/m);
    expect(text).toContain(
      `apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="${plural}.${GROUP}",from_version="v1beta1",to_version="v1",succeeded="false"} 1`,
    );
  });
});
