import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiClient, type WatchEvent } from '../../../client/api.ts';
import {
  ApiError,
  isAlreadyExists,
  isConflict,
  isGone,
  isNotFound,
  isTransient,
  isUnreachable,
} from '../../../client/errors.ts';
import type { ClusterAccess } from '../../../client/kubeconfig.ts';
import { systemClock } from '../../../lib/clock.ts';
import { UserError } from '../../../lib/errors.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { failure, json, TestServer } from '../../support/https-server.ts';
import { type KeyPair, makeCa, type TestCa } from '../../support/tls.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

let ca: TestCa;
let keys: KeyPair;
let server: TestServer;
const clients: ApiClient[] = [];
const spans: Span[] = [];

beforeAll(async () => {
  ca = await makeCa();
  keys = await ca.server(['127.0.0.1', 'localhost']);
});
beforeEach(async () => {
  server = await TestServer.start(keys, ca.cert, (_request, response) => json(response, 200, { ok: true }));
  spans.length = 0;
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await server[Symbol.asyncDispose]();
});

function connect(
  access: Partial<ClusterAccess> = {},
  clock: typeof systemClock | VirtualClock = systemClock,
): ApiClient {
  const tracer = new Tracer();
  tracer.subscribe((span) => spans.push(span));
  const client = new ApiClient({ server: server.url, ca: ca.cert, ...access }, { tracer, clock, userAgent: 'test/1' });
  clients.push(client);
  return client;
}

async function thrown(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
}

describe('requests', () => {
  it.each<[string, (client: ApiClient) => Promise<unknown>, string, string, unknown]>([
    ['get', (c) => c.get('/api/v1/nodes/n'), 'GET', '/api/v1/nodes/n', undefined],
    ['create', (c) => c.create('/api/v1/namespaces', { a: 1 }), 'POST', '/api/v1/namespaces', { a: 1 }],
    ['replace', (c) => c.replace('/api/v1/nodes/n', { a: 2 }), 'PUT', '/api/v1/nodes/n', { a: 2 }],
    [
      'delete',
      (c) => c.delete('/api/v1/nodes/n', { gracePeriodSeconds: 0, preconditions: { uid: 'u' } }),
      'DELETE',
      '/api/v1/nodes/n',
      { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid: 'u' } },
    ],
  ])('%s sends the right method, path and body', async (_verb, call, method, path, body) => {
    expect(await call(connect())).toEqual({ ok: true });
    const [requested] = server.requests;
    expect([requested?.method, requested && requested.url.pathname + requested.url.search]).toEqual([method, path]);
    expect(requested?.body === '' ? undefined : JSON.parse(requested?.body ?? '')).toEqual(body);
    expect(requested?.headers['user-agent']).toBe('test/1');
  });

  it('list sends its query, and fills in kind and apiVersion, which items of built-in kinds lack', async () => {
    const typed = { kind: 'Widget', apiVersion: 'example.com/v1' };
    const list = { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [{ metadata: { name: 'a' } }, typed] };
    server.handler = (_request, response) => json(response, 200, list);
    expect(await connect().list('/api/v1/pods', { fieldSelector: 'spec.nodeName=n', limit: 5 })).toEqual({
      ...list,
      items: [{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } }, typed],
    });
    const { method, url } = server.requests[0] ?? expect.fail('nothing was requested');
    expect([method, url.pathname + url.search]).toEqual([
      'GET',
      '/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=5',
    ]);
  });

  it.each([
    ['json', 'application/json-patch+json'],
    ['merge', 'application/merge-patch+json'],
    ['strategic', 'application/strategic-merge-patch+json'],
  ] as const)('a %s patch carries its content type', async (type, contentType) => {
    await connect().patch('/api/v1/nodes/n', { ä: 'ö' }, type);
    expect(server.requests[0]).toMatchObject({ method: 'PATCH', body: '{"ä":"ö"}' });
    expect(server.requests[0]?.headers['content-type']).toBe(contentType);
  });

  it('keeps a path prefix of the server', async () => {
    await connect({ server: `${server.url}/k8s/clusters/c-1` }).get('/api/v1/pods');
    expect(server.requests[0]?.url.pathname).toBe('/k8s/clusters/c-1/api/v1/pods');
  });

  it('goes over one kept-alive connection when requests follow each other', async () => {
    const client = connect();
    for (let i = 0; i < 5; i++) await client.get('/api/v1/pods');
    expect(server.connections).toBe(1);
  });

  it('never opens more than 8 connections for short requests, and watches do not take their places', async () => {
    const client = connect();
    const open: (() => void)[] = [];
    server.handler = (requested, response) => {
      if (requested.url.searchParams.has('watch')) response.writeHead(200).flushHeaders();
      else open.push(() => json(response, 200, {}));
    };
    const stop = new AbortController();
    const watching = Array.from({ length: 3 }, () => client.watch('/api/v1/pods', {}, stop.signal).next());
    const all = Promise.all(Array.from({ length: 20 }, () => client.get('/api/v1/pods')));
    const deadline = Date.now() + 120_000;
    let answered = 0;
    while (answered < 20 && Date.now() < deadline) {
      await settle();
      expect(open.length).toBeLessThanOrEqual(8);
      if (open.length > 0) {
        open.shift()?.();
        answered++;
      }
    }
    await all;
    expect(server.connections).toBeLessThanOrEqual(11);
    stop.abort();
    await Promise.all(watching);
  });

  it('takes another connection when the server has closed the idle one', async () => {
    const client = connect();
    await client.get('/api/v1/pods');
    // The server's side goes away; the client may learn of it only when it writes.
    server.breakConnections();
    await client.get('/api/v1/pods');
    expect(server.requests.length).toBe(2);
  });

  it('presents its client certificate', async () => {
    const { cert, key } = await ca.client('system:node:n', 'system:nodes');
    await connect({ clientCert: cert, clientKey: key }).get('/api/v1/pods');
    expect(server.requests[0]?.client).toBe('system:node:n');
  });

  it('is one span each, named by verb and resource', async () => {
    const client = connect();
    await client.patch('/api/v1/namespaces/demo/pods/p/status', {}, 'strategic');
    const none = { kind: 'LeaseList', apiVersion: 'coordination.k8s.io/v1', metadata: {}, items: [] };
    server.handler = (_request, response) => json(response, 200, none);
    await client.list('/apis/coordination.k8s.io/v1/leases');
    server.handler = (_request, response) => json(response, 404, failure(404, 'NotFound', 'no'));
    await thrown(client.get('/api/v1/namespaces/demo'));
    expect(spans.map(({ kind, name, outcome }) => [kind, name, outcome])).toEqual([
      ['api', 'PATCH pods/status', 'ok'],
      ['api', 'LIST leases', 'ok'],
      ['api', 'GET namespaces', 'error'],
    ]);
    expect(spans[0]?.attributes).toMatchObject({ namespace: 'demo', name: 'p', code: 200 });
    expect(spans[2]?.attributes).toMatchObject({ code: 404 });
  });
});

describe('tokens', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nodelet-token-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('sends a static token', async () => {
    await connect({ token: 'abc' }).get('/api/v1/pods');
    expect(server.requests[0]?.headers.authorization).toBe('Bearer abc');
  });

  it('reads a token file again after a minute', async () => {
    const tokenFile = join(directory, 'token');
    const clock = new VirtualClock();
    await writeFile(tokenFile, 'one\n');
    const client = connect({ tokenFile }, clock);
    await client.get('/api/v1/pods');
    await writeFile(tokenFile, 'two\n');
    await client.get('/api/v1/pods');
    await clock.advance(60_000);
    await client.get('/api/v1/pods');
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer one',
      'Bearer one',
      'Bearer two',
    ]);
  });

  it('reads it again at once when the server refuses the token', async () => {
    const tokenFile = join(directory, 'rotated');
    await writeFile(tokenFile, 'old');
    const client = connect({ tokenFile });
    await client.get('/api/v1/pods');
    await writeFile(tokenFile, 'new');
    server.handler = (requested, response) =>
      requested.headers.authorization === 'Bearer new'
        ? json(response, 200, { ok: true })
        : json(response, 401, failure(401, 'Unauthorized', 'Unauthorized'));
    expect(await client.get('/api/v1/pods')).toEqual({ ok: true });
  });

  it('gives up after one more try when the new token is no better', async () => {
    const tokenFile = join(directory, 'bad');
    await writeFile(tokenFile, 'bad');
    server.handler = (_request, response) => json(response, 401, failure(401, 'Unauthorized', 'Unauthorized'));
    expect(await thrown(connect({ tokenFile }).get('/api/v1/pods'))).toMatchObject({ code: 401 });
    expect(server.requests.length).toBe(2);
  });
});

describe('failures that the server reports', () => {
  it.each<[number, string, (error: unknown) => boolean]>([
    [404, 'NotFound', isNotFound],
    [409, 'Conflict', isConflict],
    [409, 'AlreadyExists', isAlreadyExists],
    [410, 'Expired', isGone],
    [500, 'InternalError', isTransient],
  ])('%d %s is recognised', async (code, reason, is) => {
    server.handler = (_request, response) => json(response, code, failure(code, reason, 'the words'));
    const error = await thrown(connect().get('/api/v1/pods'));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code, message: 'the words', status: { reason } });
    const all = [isNotFound, isConflict, isAlreadyExists, isGone, isTransient, isUnreachable];
    expect(all.filter((check) => check(error))).toEqual([is]);
  });

  it('a page that is no Status becomes one line', async () => {
    server.handler = (_request, response) => void response.writeHead(502).end('Bad gateway\n<html>');
    const error = await thrown(connect().get('/api/v1/pods'));
    expect(String(error)).toBe('ApiError: GET pods: the API server answered 502: Bad gateway');
  });

  it('an answer that is not JSON is one line too', async () => {
    server.handler = (_request, response) => void response.writeHead(200).end('<html>');
    const error = await thrown(connect().get('/api/v1/pods'));
    expect(String(error)).toMatch(/^UnreachableError: GET pods: the answer of https:.* cannot be read: not JSON$/);
  });
});

describe('Retry-After', () => {
  it.each([429, 503])('a %d is tried again after the time that the server asks for', async (code) => {
    const clock = new VirtualClock();
    let busy = 2;
    server.handler = (_request, response) => {
      if (busy-- > 0) json(response, code, failure(code, 'TooManyRequests', 'busy'), { 'retry-after': '3' });
      else json(response, 200, { ok: true });
    };
    let done = false;
    const answer = connect({}, clock)
      .create('/api/v1/events', { a: 1 })
      .finally(() => {
        done = true;
      });
    for (const requested of [1, 2]) {
      while (server.requests.length < requested || clock.nextTimerMs !== 3000) await settle();
      await clock.advance(2999);
      expect([server.requests.length, done]).toEqual([requested, false]);
      await clock.advance(1);
    }
    expect(await answer).toEqual({ ok: true });
    expect(server.requests.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
  });

  it('without the header the failure is reported at once', async () => {
    server.handler = (_request, response) => json(response, 429, failure(429, 'TooManyRequests', 'busy'));
    expect(await thrown(connect().get('/api/v1/pods'))).toMatchObject({ code: 429 });
    expect(server.requests.length).toBe(1);
  });

  it('a wait that would outlast the request is not begun', async () => {
    server.handler = (_request, response) =>
      json(response, 503, failure(503, 'ServiceUnavailable', 'starting'), { 'retry-after': '60' });
    expect(await thrown(connect().get('/api/v1/pods'))).toMatchObject({ code: 503 });
  });
});

describe('a server that cannot be reached', () => {
  it('refuses: one line', async () => {
    // Nothing listens there: a port that was free a moment ago may be another program's by now.
    const port = 1;
    const error = await thrown(connect({ server: `https://127.0.0.1:${port}` }).get('/api/v1/pods'));
    expect(isUnreachable(error)).toBe(true);
    expect(String(error)).toContain(`cannot reach the API server https://127.0.0.1:${port}: connection refused`);
  });

  it('has a certificate of another CA: one line', async () => {
    const other = await makeCa('other');
    const error = await thrown(connect({ ca: other.cert }).get('/api/v1/pods'));
    expect(String(error)).toMatch(/its certificate is not signed by the CA that the kubeconfig names \(\w+\)$/);
    expect(isUnreachable(error)).toBe(true);
  });

  it('has a certificate for another name: one line; tls-server-name and insecure-skip-tls-verify help', async () => {
    const wrong = await TestServer.start(await ca.server(['kubernetes']), ca.cert, (_request, response) =>
      json(response, 200, { ok: true }),
    );
    await using _ = wrong;
    expect(String(await thrown(connect({ server: wrong.url }).get('/')))).toContain(
      'its certificate is for another name',
    );
    expect(await connect({ server: wrong.url, tlsServerName: 'kubernetes' }).get('/')).toEqual({ ok: true });
    expect(await connect({ server: wrong.url, insecureSkipTlsVerify: true }).get('/')).toEqual({ ok: true });
  });

  it('has a name that does not resolve: one line', async () => {
    const error = await thrown(connect({ server: 'https://no-such-host.invalid:6443' }).get('/api/v1/pods'));
    expect(String(error)).toMatch(/the host name "no-such-host\.invalid" does not resolve \(E/);
  });

  it('speaks no TLS: one line', async () => {
    const plain = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const address = plain.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const error = await thrown(connect({ server: `https://127.0.0.1:${port}` }).get('/api/v1/pods'));
    expect(String(error)).toMatch(/cannot reach the API server .*TLS/);
    await new Promise((resolve) => plain.close(resolve));
  });

  it('does not answer in time', async () => {
    const clock = new VirtualClock();
    server.handler = () => undefined;
    const error = thrown(connect({}, clock).get('/api/v1/pods', undefined, { timeoutMs: 4000 }));
    while (server.requests.length === 0) await settle();
    await clock.advance(4000);
    expect(String(await error)).toContain('did not answer within 4 s');
  });

  it('does not answer one request in time: the connections that were idle are not tried after it', async () => {
    const clock = new VirtualClock();
    const client = connect({}, clock);
    await Promise.all([client.get('/api/v1/pods'), client.get('/api/v1/pods'), client.get('/api/v1/pods')]);
    expect(server.connections).toBe(3);
    const answers = server.handler;
    server.handler = () => undefined;
    const error = thrown(client.get('/api/v1/nodes', undefined, { timeoutMs: 4000 }));
    while (server.requests.length < 4) await settle();
    await clock.advance(4000);
    expect(isUnreachable(await error)).toBe(true);
    server.handler = answers;
    await client.get('/api/v1/pods');
    expect(server.requests.at(-1)?.connection).toBe(4);
  });

  it('stops in the middle of an answer', async () => {
    const clock = new VirtualClock();
    server.handler = (_request, response) => void response.writeHead(200).write('{"a":');
    const error = thrown(connect({}, clock).get('/api/v1/pods', undefined, { timeoutMs: 4000 }));
    // The first timer watches over the headers, the second over the body.
    while (clock.timersSet < 2) await settle();
    await clock.advance(4000);
    expect(isUnreachable(await error)).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it('closes the connection in the middle of an answer', async () => {
    server.handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"a":', () => response.destroy());
    };
    const error = await thrown(connect().get('/api/v1/pods'));
    expect(isUnreachable(error)).toBe(true);
    expect(String(error)).toContain('cannot be read');
  });

  it('cannot be spoken to with a certificate that is none: one line, before any request', () => {
    const access = { clientCert: 'not PEM', clientKey: 'not PEM' };
    expect(() => connect(access)).toThrow(UserError);
    expect(() => connect(access)).toThrow(
      /client certificate or client key for the API server https:.* cannot be read: /,
    );
  });

  it('is no longer waited for when the caller aborts', async () => {
    server.handler = () => undefined;
    const stop = new AbortController();
    const error = thrown(connect().get('/api/v1/pods', undefined, { signal: stop.signal }));
    while (server.requests.length === 0) await settle();
    const reason = new Error('stopping');
    stop.abort(reason);
    expect(await error).toBe(reason);
  });
});

describe('watch', () => {
  async function collect(client: ApiClient, signal: AbortSignal, into: WatchEvent[]): Promise<void> {
    for await (const event of client.watch('/api/v1/pods', { resourceVersion: '5' }, signal)) into.push(event);
  }
  const event = (name: string): string => `${JSON.stringify({ type: 'ADDED', object: { metadata: { name } } })}\n`;

  it('yields events as they come, however the bytes are cut', async () => {
    const bytes = Buffer.from(event('ä') + event('b'));
    let port: number | undefined;
    server.handler = async (_request, response) => {
      port = response.socket?.remotePort;
      response.writeHead(200);
      for (const byte of bytes) {
        response.write(Buffer.of(byte));
        await settle();
      }
      response.end();
    };
    const events: WatchEvent[] = [];
    await collect(connect(), new AbortController().signal, events);
    expect(events).toMatchObject([{ object: { metadata: { name: 'ä' } } }, { object: { metadata: { name: 'b' } } }]);
    expect(server.requests[0]?.url.search).toBe('?resourceVersion=5&watch=true');
    expect(spans.map(({ name }) => name)).toEqual(['WATCH pods']);
    expect(port).toBeGreaterThan(0);
    expect(spans[0]?.attributes.localPort).toBe(port);
  });

  it('ends quietly when aborted, and throws when the connection breaks', async () => {
    server.handler = (_request, response) => void response.writeHead(200).write(event('a'));
    const stop = new AbortController();
    const first: WatchEvent[] = [];
    const quiet = collect(connect(), stop.signal, first);
    while (first.length === 0) await settle();
    stop.abort();
    await quiet;
    const second: WatchEvent[] = [];
    const broken = thrown(collect(connect(), new AbortController().signal, second));
    while (second.length === 0) await settle();
    server.breakConnections();
    const error = await broken;
    expect(isUnreachable(error)).toBe(true);
    expect(String(error)).toContain(`the connection to the API server ${server.url} broke`);
  });

  it('throws the Status when it is refused', async () => {
    server.handler = (_request, response) => json(response, 410, failure(410, 'Expired', 'too old'));
    expect(isGone(await thrown(collect(connect(), new AbortController().signal, [])))).toBe(true);
  });

  it('closes its connection when the reader stops reading', async () => {
    let closed = false;
    server.handler = (_request, response) => {
      response.on('close', () => {
        closed = true;
      });
      response.writeHead(200).write(event('a'));
    };
    for await (const _event of connect().watch('/api/v1/pods', {}, new AbortController().signal)) break;
    const deadline = Date.now() + 120_000;
    while (!closed && Date.now() < deadline) await settle();
    expect(closed).toBe(true);
  });
});
