// Objects, lists and watches as tables and as metadata alone, for a built-in kind and a custom one with columns: what
// kube-apiserver sends for each Accept header and includeObject, on every way to read.

import { get } from 'node:https';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { renderBookmark } from '../../../../apiserver/http/render.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { type Answer, at, TestApiServer } from '../../../support/api-server.ts';

let stand: TestApiServer;
const MAPS = '/api/v1/namespaces/default/configmaps';
const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const as = (kind: string, version = 'v1'): string => `application/json;as=${kind};v=${version};g=meta.k8s.io`;

beforeAll(async () => {
  stand = await TestApiServer.start();
  for (const name of ['a', 'b', 'c']) {
    await stand.admit('POST', MAPS, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { k: name } });
  }
  await stand.admit('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    kind: 'CustomResourceDefinition',
    apiVersion: 'apiextensions.k8s.io/v1',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          additionalPrinterColumns: [
            { name: 'Size', type: 'string', jsonPath: '.size' },
            { name: 'Wide', type: 'integer', jsonPath: '.wide', priority: 1 },
          ],
        },
      ],
    },
  });
  await vi.waitFor(async () => expect((await read(WIDGETS, '*/*')).code).toBe(200));
  for (const name of ['a', 'b', 'c']) {
    const widget = { kind: 'Widget', apiVersion: 'example.com/v1', metadata: { name }, size: `size-${name}`, wide: 3 };
    await stand.admit('POST', WIDGETS, widget);
  }
});
afterAll(() => stand.stop());

const read = (path: string, accept: string): Promise<Answer> =>
  stand.call({ path, as: stand.admin, headers: { accept } });

/** Kind and keys of the object of the first row. */
const shown = (object: unknown): unknown =>
  object === null
    ? null
    : [at(object, 'kind'), at(object, 'apiVersion'), at(object, 'metadata', 'name'), at(object, 'data')];
const partial = (name: string, version = 'v1'): unknown => [
  'PartialObjectMetadata',
  `meta.k8s.io/${version}`,
  name,
  undefined,
];

describe('a table', () => {
  it.each<[string, string, string[], unknown]>([
    ['an object', `${MAPS}/a`, ['a'], partial('a')],
    ['an object alone', `${MAPS}/a?includeObject=None`, ['a'], null],
    ['an object with itself', `${MAPS}/a?includeObject=Object`, ['a'], ['ConfigMap', 'v1', 'a', { k: 'a' }]],
    ['a list', `${MAPS}?includeObject=None&fieldSelector=metadata.name!=kube-root-ca.crt`, ['a', 'b', 'c'], null],
    ['a list with its objects', `${MAPS}?includeObject=Object`, ['a', 'b', 'c'], ['ConfigMap', 'v1', 'a', { k: 'a' }]],
    ['a list with metadata', `${MAPS}?includeObject=Metadata`, ['a', 'b', 'c'], partial('a')],
    ['a page', `${MAPS}?limit=2`, ['a', 'b'], partial('a')],
    ['a list of one name', `${MAPS}?fieldSelector=metadata.name=b`, ['b'], partial('b')],
    [
      'a list at least as new',
      `${MAPS}?resourceVersion=1&resourceVersionMatch=NotOlderThan`,
      ['a', 'b', 'c'],
      partial('a'),
    ],
    ['a custom object', `${WIDGETS}/a?includeObject=None`, ['a'], null],
    ['a page of custom objects', `${WIDGETS}?limit=2`, ['a', 'b'], partial('a')],
    [
      'custom objects whole',
      `${WIDGETS}?includeObject=Object`,
      ['a', 'b', 'c'],
      ['Widget', 'example.com/v1', 'a', undefined],
    ],
  ])('of %s', async (_name, path, names, first) => {
    for (const version of ['v1', 'v1beta1']) {
      const { code, json } = await read(path, `${as('Table', version)},application/json`);
      expect([code, at(json, 'kind'), at(json, 'apiVersion')]).toEqual([200, 'Table', `meta.k8s.io/${version}`]);
      const rows = at(json, 'rows');
      const cells = Array.isArray(rows) ? rows.map((row) => at(row, 'cells', 0)) : [];
      expect(cells).toEqual(names);
      const isPartial = Array.isArray(first) && first[0] === 'PartialObjectMetadata';
      expect(shown(at(json, 'rows', 0, 'object'))).toEqual(isPartial ? partial(names[0] ?? '', version) : first);
      expect(at(json, 'columnDefinitions', 0)).toMatchObject({
        name: 'Name',
        type: 'string',
        format: 'name',
        priority: 0,
      });
      expect(at(json, 'metadata', 'resourceVersion')).toMatch(/^\d+$/);
    }
  });

  it('goes on from page to page at one revision, and shows an exact one', async () => {
    const first = await read(`${WIDGETS}?limit=2&includeObject=None`, as('Table'));
    expect(at(first.json, 'metadata', 'remainingItemCount')).toBe(1);
    const revision = String(at(first.json, 'metadata', 'resourceVersion'));
    const token = encodeURIComponent(String(at(first.json, 'metadata', 'continue')));
    await stand.admit('POST', WIDGETS, { kind: 'Widget', apiVersion: 'example.com/v1', metadata: { name: 'd' } });
    const rest = await read(`${WIDGETS}?limit=2&includeObject=None&continue=${token}`, as('Table'));
    expect(at(rest.json, 'rows')).toEqual([{ cells: ['c', 'size-c', 3], object: null }]);
    const exact = await read(`${WIDGETS}?resourceVersion=${revision}&resourceVersionMatch=Exact`, as('Table'));
    expect([at(exact.json, 'metadata', 'resourceVersion'), at(exact.json, 'rows', 3)]).toEqual([revision, undefined]);
    await stand.admit('DELETE', `${WIDGETS}/d`);
  });

  it('has the columns of a definition, with what is shown by -o wide alone', async () => {
    const { json } = await read(WIDGETS, as('Table'));
    expect(at(json, 'columnDefinitions')).toMatchObject([
      { name: 'Name', priority: 0 },
      { name: 'Size', type: 'string', priority: 0 },
      { name: 'Wide', type: 'integer', priority: 1 },
    ]);
  });

  it('is what a write is answered with, too; a Status stays one', async () => {
    const body = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'new' } };
    const headers = { accept: as('Table') };
    const made = await stand.call({ method: 'POST', path: MAPS, body, as: stand.admin, headers });
    expect([made.code, at(made.json, 'rows', 0, 'cells', 0)]).toEqual([201, 'new']);
    const gone = await stand.call({ method: 'DELETE', path: `${MAPS}/new`, as: stand.admin, headers });
    expect(gone.json).toMatchObject({ kind: 'Status', status: 'Success' });
    expect((await read(`${MAPS}/none`, as('Table'))).json).toMatchObject({ kind: 'Status', code: 404 });
  });
});

describe('metadata alone', () => {
  it('of an object and of a list', async () => {
    const one = await read(`${WIDGETS}/a`, as('PartialObjectMetadata'));
    expect(one.json).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    });
    expect(at(one.json, 'size')).toBeUndefined();
    const list = await read(`${WIDGETS}?limit=1`, as('PartialObjectMetadataList', 'v1beta1'));
    expect(list.json).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1beta1',
      metadata: { remainingItemCount: 2, continue: expect.any(String) },
      items: [{ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1beta1', metadata: { name: 'a' } }],
    });
  });
});

describe('refused', () => {
  it.each<[string, string, string, number, string]>([
    [
      'a list as one',
      MAPS,
      as('PartialObjectMetadata'),
      406,
      'you requested PartialObjectMetadata, but the requested object is a list (*v1.ConfigMapList)',
    ],
    [
      'an object as a list',
      `${MAPS}/a`,
      as('PartialObjectMetadataList'),
      406,
      'you requested PartialObjectMetadataList, but the requested object is not a list (*v1.ConfigMap)',
    ],
    [
      'a custom one',
      `${WIDGETS}/a`,
      as('PartialObjectMetadataList'),
      406,
      'but the requested object is not a list (*unstructured.Unstructured)',
    ],
    ['another version', MAPS, as('Table', 'v2'), 406, 'only the following media types are accepted: application/json'],
    ['another kind', MAPS, as('Chart'), 406, 'only the following media types are accepted: application/json'],
    [
      'another part',
      `${MAPS}?includeObject=All`,
      as('Table'),
      400,
      `Unable to convert to Table as requested: includeObject: Invalid value: "All": must be 'Metadata', 'Object', 'None', or empty`,
    ],
  ])('%s', async (_name, path, accept, code, message) => {
    const answer = await read(path, accept);
    expect([answer.code, at(answer.json, 'message')]).toEqual([code, expect.stringContaining(message)]);
  });

  it('not: what other forms do not look at', async () => {
    expect((await read(`${MAPS}?includeObject=All`, 'application/json')).code).toBe(200);
    expect((await read(MAPS, `${as('Table', 'v2')},application/json`)).json).toMatchObject({ kind: 'ConfigMapList' });
  });
});

describe('a watch', () => {
  async function watched(path: string, accept: string, lines: number): Promise<unknown[]> {
    const seen: unknown[] = [];
    const { cert = '', key = '' } = stand.admin;
    const options = { ca: stand.server.pki.ca.cert, cert, key, headers: { accept } };
    const outgoing = get(`${stand.server.url}${path}`, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
          seen.push(JSON.parse(text.slice(0, end)));
          text = text.slice(end + 1);
        }
      });
    });
    outgoing.on('error', () => undefined);
    await expect.poll(() => seen.length).toBeGreaterThanOrEqual(lines);
    outgoing.destroy();
    return seen;
  }
  const INITIAL = 'watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';

  it('in tables names the columns once, and ends its beginning with a row that says so', async () => {
    const seen = await watched(`${WIDGETS}?${INITIAL}&includeObject=None`, as('Table'), 4);
    const rows = seen.map((line) => [
      at(line, 'type'),
      at(line, 'object', 'rows', 0, 'cells', 0),
      at(line, 'object', 'rows', 0, 'object'),
    ]);
    expect(rows.slice(0, 3)).toEqual([
      ['ADDED', 'a', null],
      ['ADDED', 'b', null],
      ['ADDED', 'c', null],
    ]);
    expect(seen.map((line) => at(line, 'object', 'columnDefinitions') !== null)).toEqual([true, false, false, false]);
    expect(seen[3]).toMatchObject({
      type: 'BOOKMARK',
      object: {
        kind: 'Table',
        metadata: { resourceVersion: expect.stringMatching(/^\d+$/) },
        rows: [
          {
            object: {
              kind: 'PartialObjectMetadata',
              metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
            },
          },
        ],
      },
    });
  });

  it('of metadata alone shows objects and bookmarks as that', async () => {
    const seen = await watched(`${MAPS}?${INITIAL}&fieldSelector=metadata.name=a`, as('PartialObjectMetadata'), 2);
    expect(seen).toMatchObject([
      { type: 'ADDED', object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } },
      { type: 'BOOKMARK', object: { kind: 'PartialObjectMetadata', metadata: { annotations: expect.anything() } } },
    ]);
  });

  it('of lists of metadata ends with an error: no event has a list', async () => {
    const [first] = await watched(`${MAPS}?watch=1`, as('PartialObjectMetadataList'), 1);
    expect(first).toMatchObject({ type: 'ERROR', object: { code: 406, reason: 'NotAcceptable' } });
  });

  it('has a bookmark as a table of any kind', () => {
    for (const row of RESOURCE_KINDS) {
      const options = {
        form: { media: 'json', as: 'table', version: 'v1', pretty: false },
        includeObject: 'None',
        now: epochMs(0),
      } as const;
      const table: unknown = JSON.parse(renderBookmark(row, 7, false, options));
      const columns = at(table, 'columnDefinitions');
      const cells = at(table, 'rows', 0, 'cells');
      expect([row.kind, Array.isArray(cells) && cells.length]).toEqual([
        row.kind,
        Array.isArray(columns) && columns.length,
      ]);
    }
  });
});
