// Compressed responses against a running server, as kube-apiserver compresses: what is large, for who wants it, never a stream.

import { get, type RequestOptions } from 'node:https';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { acceptsGzip, compressed, compressedHeaders, isKnown } from '../../../../apiserver/http/compress.ts';
import { TestApiServer } from '../../../support/api-server.ts';

let stand: TestApiServer;
const MAPS = '/api/v1/namespaces/default/configmaps';
beforeAll(async () => {
  stand = await TestApiServer.start();
  for (const name of ['a', 'b']) {
    await stand.admit('POST', MAPS, {
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name },
      data: { a: 'x'.repeat(100_000) },
    });
  }
});
afterAll(() => stand.stop());

interface Raw {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

function raw(path: string, headers: Record<string, string> = {}, more: RequestOptions = {}): Promise<Raw> {
  const { cert = '', key = '' } = stand.admin;
  const { promise, resolve, reject } = Promise.withResolvers<Raw>();
  const options = { ca: stand.server.pki.ca.cert, cert, key, headers, ...more };
  get(`${stand.server.url}${path}`, options, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('end', () =>
      resolve({ code: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
    );
  }).on('error', reject);
  return promise;
}

describe('a large response', () => {
  it.each<[string, string, string | undefined, string | undefined]>([
    ['a list for a client that wants gzip', MAPS, 'gzip', 'gzip'],
    ['one among others', MAPS, 'deflate, gzip', 'gzip'],
    ['a list for one that does not', MAPS, undefined, undefined],
    ['a list for one that rules it out', MAPS, 'gzip;q=0', undefined],
    ['an object below the threshold', `${MAPS}/a`, 'gzip', undefined],
    ['a page below the threshold', `${MAPS}?limit=1`, 'gzip', undefined],
    ['OpenAPI v2', '/openapi/v2', 'gzip', 'gzip'],
    ['OpenAPI v3 of the core group', '/openapi/v3/api/v1', 'gzip', 'gzip'],
    ['a watch', `${MAPS}?watch=1&timeoutSeconds=1`, 'gzip', undefined],
  ])('%s', async (_name, path, accepted, encoding) => {
    const answer = await raw(path, accepted === undefined ? {} : { 'accept-encoding': accepted });
    expect([answer.code, answer.headers['content-encoding']]).toEqual([200, encoding]);
    const isLarge = path !== `${MAPS}/a` && !path.includes('?');
    expect(String(answer.headers['vary'] ?? '').includes('Accept-Encoding')).toBe(isLarge);
    if (encoding === undefined) return;
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect(gunzipSync(answer.body).equals((await raw(path)).body)).toBe(true);
  });

  it('to a HEAD request has no body and the plain length', async () => {
    const { code, headers, body } = await raw('/openapi/v2', { 'accept-encoding': 'gzip' }, { method: 'HEAD' });
    expect([code, headers['content-encoding'], body.length]).toEqual([200, undefined, 0]);
  });
});

describe('a document', () => {
  const AGGREGATED = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' };

  it.each<[string, Record<string, string>]>([
    ['/openapi/v2', {}],
    ['/openapi/v3', {}],
    ['/openapi/v3/api/v1', {}],
    ['/apis', AGGREGATED],
    ['/apis', {}],
    ['/api/v1', {}],
  ])('%s %j is sent once to a client that keeps it', async (path, headers) => {
    const first = await raw(path, headers);
    const tag = String(first.headers['etag']);
    expect(tag).toMatch(/^"[0-9A-F]{32,64}"$/);
    const again = await raw(path, { ...headers, 'if-none-match': tag });
    expect([again.code, again.body.length, again.headers['etag']]).toEqual([304, 0, tag]);
    expect((await raw(path, { ...headers, 'if-none-match': '"other"' })).code).toBe(200);
  });

  it('has a weak tag where it is compressed, which is as good', async () => {
    const { headers } = await raw('/openapi/v2', { 'accept-encoding': 'gzip' });
    const tag = String(headers['etag']);
    expect(tag).toMatch(/^W\/"/);
    expect((await raw('/openapi/v2', { 'if-none-match': tag })).code).toBe(304);
  });

  it('of OpenAPI v3 is immutable under its hash alone, and has moved under another', async () => {
    const plain = await raw('/openapi/v3/api/v1');
    expect(plain.headers['cache-control']).toBe('no-cache, private');
    const hash = String(plain.headers['etag']).replaceAll('"', '');
    const named = await raw(`/openapi/v3/api/v1?hash=${hash}`);
    expect(named.headers['cache-control']).toBe('public, immutable');
    const moved = await raw('/openapi/v3/api/v1?hash=ABC');
    expect([moved.code, moved.headers['location']]).toEqual([301, `/openapi/v3/api/v1?hash=${hash}`]);
  });
});

describe('compression', () => {
  it.each<[string | undefined, boolean]>([
    [undefined, false],
    ['gzip', true],
    ['br, gzip', true],
    [' gzip ', true],
    ['gzip;q=0.5', false],
    ['x-gzip', false],
    ['*', false],
  ])('Accept-Encoding %j: %s', (header, expected) => expect(acceptsGzip(header)).toBe(expected));

  it.each<[string | undefined, string | undefined, boolean]>([
    ['"a"', '"a"', true],
    ['"a"', 'W/"a"', true],
    ['W/"a"', '"b", W/"a"', true],
    ['"a"', '*', true],
    ['"a"', '"b"', false],
    ['"a"', undefined, false],
    [undefined, '*', false],
  ])('ETag %j, If-None-Match %j: %s', (tag, header, expected) => expect(isKnown(tag, header)).toBe(expected));

  it('changes a strong tag alone', () => {
    expect(compressedHeaders({ ETag: '"a"' })).toEqual({ ETag: 'W/"a"', 'Content-Encoding': 'gzip' });
    expect(compressedHeaders({ ETag: 'W/"a"' })['ETag']).toBe('W/"a"');
    expect(compressedHeaders({})).toEqual({ 'Content-Encoding': 'gzip' });
  });

  it('leaves the event loop to others', async () => {
    const body = Buffer.from(JSON.stringify(Array.from({ length: 500_000 }, (_, index) => ({ index }))));
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const result = await compressed(body);
    isDone = true;
    expect(gunzipSync(result).equals(body)).toBe(true);
    // Compressing in the event loop's own thread would leave room for one.
    expect(turns).toBeGreaterThan(10);
  });
});
