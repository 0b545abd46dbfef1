// HTTP/2 beside HTTP/1.1 on the server's port: the same answers, many watches on one connection, callers by certificate and
// by token, and what clients do that mean no good.

import { type ClientHttp2Stream, constants } from 'node:http2';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Http2ServingOptions } from '../../../../apiserver/options.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';
import { FRAMES, frame, getHeaders, Http2Client, PREFACE, reset } from '../../../support/http2-client.ts';
import { type Client, dial } from '../../../support/tls-clients.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const JSON_TYPE = { 'content-type': 'application/json' };
const MAX_STREAMS = 200;

let stand: TestApiServer;
const clients: Http2Client[] = [];
const raw: Client[] = [];
beforeAll(async () => {
  stand = await start({ maxStreams: MAX_STREAMS });
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  for (const { socket } of raw.splice(0)) socket.destroy();
});
afterAll(() => stand.stop());

function start(http2: Partial<Http2ServingOptions>): Promise<TestApiServer> {
  return TestApiServer.start({ http2 });
}

async function connect(as: 'admin' | 'nobody' = 'admin', windowSize?: number, to = stand): Promise<Http2Client> {
  const { cert = '', key = '' } = as === 'admin' ? to.admin : {};
  const tls = { ca: to.server.pki.ca.cert, ...(as === 'admin' ? { cert, key } : {}) };
  const client = await Http2Client.connect(to.server.url, tls, windowSize === undefined ? {} : { windowSize });
  clients.push(client);
  return client;
}

async function dialH2(as: 'admin' | 'nobody' = 'admin'): Promise<Client> {
  const { cert = '', key = '' } = stand.admin;
  const client = await dial(stand.server.port, { ALPNProtocols: ['h2'], ...(as === 'admin' ? { cert, key } : {}) });
  raw.push(client);
  client.send(PREFACE).send(frame(FRAMES.settings, 0, 0));
  return client;
}

/** A response's code, and the code with which its stream was reset: 0 for one that ended as it should. */
async function ended(stream: ClientHttp2Stream): Promise<{ code: unknown; reset: number | undefined }> {
  let code: unknown;
  stream.on('response', (head) => {
    code = head[':status'];
  });
  // Of a reset, whose code is what is of interest.
  stream.on('error', () => undefined);
  stream.resume();
  await new Promise((resolve) => stream.once('close', resolve));
  return { code, reset: stream.rstCode };
}

function map(name: string, data: Record<string, string> = {}): string {
  return JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data });
}

function nameOf(line: string): string {
  return String(at(JSON.parse(line), 'object', 'metadata', 'name'));
}

describe('the same answer as over HTTP/1.1', () => {
  beforeAll(async () => {
    const large = JSON.parse(map('large', { a: 'x'.repeat(200_000) }));
    await stand.admit('POST', MAPS, { ...large, metadata: { ...large.metadata, labels: { load: '' } } });
  });
  it.each<[string, string, string, string | undefined]>([
    ['a get', 'GET', `${MAPS}/large`, undefined],
    ['a list', 'GET', MAPS, undefined],
    ['one that is not there', 'GET', `${MAPS}/none`, undefined],
    ['the head of an object', 'HEAD', `${MAPS}/large`, undefined],
    ['the head of a health check', 'HEAD', '/readyz', undefined],
    ['a dry run', 'POST', `${MAPS}?dryRun=All`, '{"metadata":{"name":"A"}}'],
    ['a body that is no JSON', 'POST', MAPS, '{"'],
    ['a method that is not there', 'PUT', '/version', ''],
    ['discovery', 'GET', '/apis', undefined],
    ['a path that cannot be decoded', 'GET', '/api/v1/namespaces/%zz', undefined],
    ['too large a body', 'POST', MAPS, 'x'.repeat(3 * 1024 * 1024 + 1)],
  ])('%s', async (_name, method, path, body) => {
    const one = await stand.call({ method, path, as: stand.admin, body });
    const client = await connect();
    const two = await client.send(path, { ':method': method, ...(body === undefined ? {} : JSON_TYPE) }, body);
    expect([two.code, two.body.toString('utf8')]).toEqual([one.code, one.text]);
    const shared = ['content-type', 'cache-control', 'content-length', 'vary', 'etag'];
    expect(shared.map((name) => two.headers[name])).toEqual(shared.map((name) => one.headers[name]));
    expect(typeof two.headers['audit-id']).toBe(typeof one.headers['audit-id']);
  });

  it('compressed, and not modified', async () => {
    const client = await connect();
    const zipped = await client.send(MAPS, { 'accept-encoding': 'gzip' });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(at(JSON.parse(gunzipSync(zipped.body).toString('utf8')), 'kind')).toBe('ConfigMapList');
    const first = await client.send('/openapi/v2');
    const again = await client.send('/openapi/v2', { 'if-none-match': String(first.headers['etag']) });
    expect([again.code, again.body.length]).toEqual([304, 0]);
  });

  it('to a body without a length and a type, and to one after 100 Continue', async () => {
    const client = await connect();
    const stream = client.session.request({ ':method': 'POST', ':path': MAPS });
    const answered = new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'])));
    stream.write(map('streamed').slice(0, 10));
    stream.end(map('streamed').slice(10));
    expect(await answered).toBe(201);
    const expecting = client.session.request({
      ':method': 'POST',
      ':path': MAPS,
      expect: '100-continue',
      ...JSON_TYPE,
    });
    await new Promise((resolve) => expecting.once('continue', () => resolve(undefined)));
    const created = new Promise((resolve) => expecting.once('response', (head) => resolve(head[':status'])));
    expecting.end(map('expected'));
    expect(await created).toBe(201);
  });

  it('to one that goes on sending: its stream ends, the connection does not', async () => {
    const client = await connect();
    const stream = client.session.request({ ':method': 'POST', ':path': MAPS, ...JSON_TYPE });
    stream.on('error', () => undefined);
    const answered = new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'])));
    stream.resume();
    const more = setInterval(() => !stream.closed && stream.write(Buffer.alloc(512 * 1024)), 5);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    expect(await answered).toBe(413);
    await closed;
    clearInterval(more);
    expect((await client.send('/version')).code).toBe(200);
  });

  it('a file that is sent as it is read: a snapshot', async () => {
    const client = await connect();
    const { code, headers, body } = await client.send('/nodelet/snapshot');
    expect([code, String(body.length)]).toEqual([200, headers['content-length']]);
    expect(body.toString('latin1', 0, 15)).toBe('SQLite format 3');
  });

  it('CONNECT leads nowhere, and upgrades stay with HTTP/1.1, as from kube-apiserver', async () => {
    const client = await connect();
    expect(client.session.remoteSettings.enableConnectProtocol).toBe(false);
    const tunnel = { ':method': 'CONNECT', ':authority': 'pod:80' };
    expect(await ended(client.session.request(tunnel, { endStream: true }))).toEqual({ code: 404, reset: 0 });
    const socket = { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'https', ':authority': 'localhost' };
    const exec = '/api/v1/namespaces/default/pods/p/exec';
    const opened = client.session.request({ ...socket, ':path': exec });
    expect(await ended(opened)).toEqual({ code: undefined, reset: constants.NGHTTP2_PROTOCOL_ERROR });
    const anonymous = await connect('nobody');
    expect(await ended(anonymous.session.request(tunnel, { endStream: true }))).toEqual({ code: 401, reset: 0 });
  });
});

describe('callers', () => {
  it('are who their certificate names, on each stream', async () => {
    const client = await connect();
    const who = (): Promise<unknown> =>
      client
        .send('/apis/authentication.k8s.io/v1/selfsubjectreviews', { ':method': 'POST', ...JSON_TYPE }, '{}')
        .then(({ body }) => at(JSON.parse(body.toString('utf8')), 'status', 'userInfo', 'username'));
    expect(await Promise.all([who(), who(), who()])).toEqual(Array(3).fill('kubernetes-admin'));
  });

  it('with a token may have many streams; without any credential the connection ends after one', async () => {
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    await stand.admit('POST', accounts, { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'known' } });
    const created = await stand.admit('POST', `${accounts}/known/token`, {});
    const token = { authorization: `Bearer ${at(created, 'status', 'token')}` };
    const known = await connect('nobody');
    const answers = await Promise.all(Array.from({ length: 40 }, () => known.send('/version', token)));
    expect(answers.map(({ code }) => code)).toEqual(Array(40).fill(200));
    expect(known.session.closed).toBe(false);

    const unknown = await connect('nobody');
    expect((await unknown.send(MAPS)).code).toBe(401);
    expect(await unknown.goneAway).toBe(0);
    await unknown.closed;
  });
});

describe('watches on one connection', () => {
  it('all get their events', async () => {
    const client = await connect();
    const watches = await Promise.all(
      Array.from({ length: 150 }, () => client.open(`${MAPS}?watch=1&labelSelector=!load`)),
    );
    await stand.admit('POST', MAPS, JSON.parse(map('seen')));
    await vi.waitFor(() =>
      expect(watches.filter(({ lines }) => lines().some((line) => nameOf(line) === 'seen'))).toHaveLength(150),
    );
    // Those that the client leaves are over, the others go on.
    for (const { stream } of watches.slice(1)) stream.close(8);
    await stand.admit('POST', MAPS, JSON.parse(map('seen-later')));
    const [first] = watches;
    await vi.waitFor(() => expect(first?.lines().map(nameOf)).toContain('seen-later'));
    const open = /apiserver_longrunning_requests\{verb="WATCH",[^}]*resource="configmaps"[^}]*\} (\d+)/;
    const figures = async (): Promise<string> => (await client.send('/metrics')).body.toString('utf8');
    await vi.waitFor(async () => expect(open.exec(await figures())?.[1]).toBe('1'));
  });

  it('a stream that is not read delays none of the others, is sent no more than fits, and is cut off', async () => {
    const client = await connect('admin', 16_384);
    const [slow, brisk] = [
      await client.open(`${MAPS}?watch=1&timeoutSeconds=300&labelSelector=load%3Dslow`),
      await client.open(`${MAPS}?watch=1&labelSelector=load%3Dslow`),
    ];
    slow.stream.pause();
    const big = (at: number): unknown => {
      const object = JSON.parse(map(`load-${at}`, { a: 'x'.repeat(200_000) }));
      return { ...object, metadata: { ...object.metadata, labels: { load: 'slow' } } };
    };
    for (let i = 0; i < 12; i++) await stand.admit('POST', MAPS, big(i));
    await vi.waitFor(() => expect(brisk.lines()).toHaveLength(12));
    expect(slow.stream.closed).toBe(false);
    // Its time is up: what it has not read within half a minute more it does not get.
    stand.clock.elapse(301_000);
    await vi.waitFor(() => stand.clock.elapse(31_000));
    expect(await slow.closed).not.toBe(0);
    expect(slow.lines().length).toBeLessThan(12);
    expect((await client.send('/version')).code).toBe(200);
  });
});

describe('limits', () => {
  it('streams of a connection: the client has the figure, and one more is refused', async () => {
    const client = await connect();
    expect(client.session.remoteSettings.maxConcurrentStreams).toBe(MAX_STREAMS);
    const eager = await dialH2();
    const path = `${MAPS}?watch=1&labelSelector=none`;
    const heads = Array.from({ length: MAX_STREAMS + 1 }, (_, i) => getHeaders(2 * i + 1, path));
    eager.send(Buffer.concat(heads));
    // RST_STREAM with REFUSED_STREAM.
    await eager.sees(frame(FRAMES.reset, 0, 2 * MAX_STREAMS + 1, Buffer.from([0, 0, 0, 7])).toString('latin1'));
    expect(eager.socket.destroyed).toBe(false);
  });

  it('HTTP/1.1 alone where HTTP/2 is disabled', async () => {
    const other = await start({ isDisabled: true });
    const client = await dial(other.server.port, { ALPNProtocols: ['h2', 'http/1.1'] });
    expect(client.socket.alpnProtocol).toBe('http/1.1');
    client.socket.destroy();
    await other.stop();
  });

  it('a GOAWAY by chance: the request is answered, open watches go on, and the client connects anew', async () => {
    const other = await start({ goawayChance: 1 });
    const client = await connect('admin', undefined, other);
    const watch = await client.open(`${MAPS}?watch=1`);
    expect(await client.goneAway).toBe(0);
    await other.admit('POST', MAPS, JSON.parse(map('later')));
    await vi.waitFor(() =>
      expect(watch.lines().map(nameOf)).toEqual(['kube-root-ca.crt', 'later'].slice(-watch.lines().length)),
    );
    expect(watch.lines().length).toBeGreaterThan(0);
    await other.stop();
  });

  it('a server that stops ends its watches, says so, and is gone', async () => {
    const other = await start({});
    const client = await connect('admin', undefined, other);
    const watch = await client.open(`${MAPS}?watch=1`);
    const stopped = other.stop();
    expect([await watch.closed, await client.goneAway]).toEqual([0, 0]);
    await client.closed;
    await stopped;
  });
});

describe('floods', () => {
  async function serves(): Promise<void> {
    const client = await connect();
    expect((await client.send('/version')).code).toBe(200);
  }

  it.each<[string, 'admin' | 'nobody', (at: number) => Buffer]>([
    [
      'streams that are reset at once',
      'admin',
      (i) => Buffer.concat([getHeaders(2 * i + 1, '/version'), reset(2 * i + 1)]),
    ],
    ['those of nobody', 'nobody', (i) => Buffer.concat([getHeaders(2 * i + 1, MAPS), reset(2 * i + 1)])],
    ['pings whose answers are not read', 'admin', () => frame(FRAMES.ping, 0, 0, Buffer.alloc(8))],
    [
      'settings whose answers are not read',
      'admin',
      () => frame(FRAMES.settings, 0, 0, Buffer.from([0, 4, 0, 0, 255, 255])),
    ],
  ])('%s end the connection and no other', async (_name, as, one) => {
    const other = await connect();
    const watch = await other.open(`${MAPS}?watch=1&labelSelector=flood`);
    const flood = await dialH2(as);
    flood.socket.pause();
    let at = 0;
    const more = setInterval(() => {
      // As much as the connection takes, and no more: what is not sent does no harm.
      while (!flood.socket.destroyed && flood.socket.writableLength < 256 * 1024) {
        flood.send(Buffer.concat(Array.from({ length: 500 }, () => one(at++))));
      }
    }, 1);
    await vi.waitFor(() => expect(flood.socket.destroyed || flood.socket.errored !== null).toBe(true));
    clearInterval(more);
    expect(watch.stream.closed).toBe(false);
    await serves();
  });

  it('a head in endless continuations ends the connection', async () => {
    const flood = await dialH2();
    const head = getHeaders(1, '/version');
    head[4] = 0x1;
    flood.send(head);
    const more = setInterval(() => flood.send(frame(FRAMES.continuation, 0, 1, Buffer.alloc(100, 0x82))), 1);
    await flood.ended;
    clearInterval(more);
    await serves();
  });
});
