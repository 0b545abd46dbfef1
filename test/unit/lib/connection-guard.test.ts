// The guard of an HTTPS server against clients that are slow, many, or both.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientHttp2Stream } from 'node:http2';
import type { Server } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../apiserver/pki/keys.ts';
import { type Clock, epochMs, systemClock } from '../../../lib/clock.ts';
import { ConnectionGuard, type ConnectionTimeouts, type RequestHandlers } from '../../../lib/connection-guard.ts';
import type { ConnectionLimits } from '../../../lib/connection-limits.ts';
import { Http2Client } from '../../support/http2-client.ts';
import { type Client, dial, dialPlain, openConnections } from '../../support/tls-clients.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const HOUR = 3_600_000;
/** Time-outs that never come: a test shortens the one it is about. */
const PATIENT: ConnectionTimeouts = {
  handshakeMs: HOUR,
  headersMs: HOUR,
  requestMs: HOUR,
  responseMs: HOUR,
  idleMs: HOUR,
  unauthenticatedMs: HOUR,
  checkMs: 50,
};
const GENEROUS: ConnectionLimits = { total: 1000, perAddress: 1000, unauthenticated: 500 };
const SHORT_MS = 200;

let caCert: string;
let serving: { cert: string; key: string };
let client: { cert: string; key: string };
let server: Server | undefined;
const log: string[] = [];

beforeAll(async () => {
  const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
  const ca = generateKeyPair();
  caCert = await issueCertificate({ commonName: 'ca', usage: 'ca', ...life }, ca);
  const signer = { cert: caCert, key: ca.privateKey };
  const issue = async (commonName: string, usage: 'server' | 'client') => {
    const pair = generateKeyPair();
    return { cert: await issueCertificate({ commonName, usage, ...life }, pair, signer), key: pair.privateKey };
  };
  serving = await issue('server', 'server');
  client = await issue('client', 'client');
});

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  log.length = 0;
});

interface Given {
  readonly timeouts?: Partial<ConnectionTimeouts>;
  readonly limits?: ConnectionLimits;
  readonly handlers?: Partial<RequestHandlers>;
  readonly clock?: Clock;
}

async function start({ timeouts = {}, limits = GENEROUS, handlers = {}, clock = systemClock }: Given) {
  const guard = new ConnectionGuard({
    limits: () => limits,
    timeouts: { ...PATIENT, ...timeouts },
    clock,
    log: (line) => log.push(line),
  });
  const hello = (_request: IncomingMessage, response: ServerResponse): void => void response.end('hello');
  const tls = { ...serving, ca: caCert, requestCert: true, rejectUnauthorized: false };
  const made = guard.createServer(tls, { request: hello, ...handlers });
  server = made;
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  const address = made.address();
  return { guard, port: typeof address === 'object' && address !== null ? address.port : 0 };
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('is cut off', () => {
  test('a connection that never begins its handshake', async () => {
    const { port } = await start({ timeouts: { handshakeMs: SHORT_MS } });
    await (await dialPlain(port)).ended;
  });

  test('a handshake that is never finished', async () => {
    const { port } = await start({ timeouts: { handshakeMs: SHORT_MS } });
    // The head of a ClientHello of 512 bytes, which do not come.
    await (await dialPlain(port)).send(Buffer.from([0x16, 3, 1, 2, 0, 1])).ended;
  });

  test.each([
    ['no request', ''],
    ['half a head', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '],
  ])('an authenticated client that sends %s', async (_name, text) => {
    const { port } = await start({ timeouts: { headersMs: SHORT_MS } });
    await (await dial(port, client)).send(text).ended;
  });

  test('an authenticated client whose body does not come', async () => {
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      message.resume().on('end', () => response.end('done'));
    };
    const { port } = await start({ timeouts: { requestMs: 2 * SHORT_MS }, handlers: { request } });
    const slow = (await dial(port, client)).send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc');
    await slow.ended;
    expect(slow.received).not.toContain('done');
  });

  test('a client that does not read its response', async () => {
    const request = (_message: IncomingMessage, response: ServerResponse): void => {
      response.end(Buffer.alloc(64 * 1024 * 1024));
    };
    const { port } = await start({ timeouts: { responseMs: SHORT_MS }, handlers: { request } });
    const deaf = await dial(port, client);
    deaf.socket.pause();
    deaf.send(GET);
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
    deaf.socket.destroy();
  });

  test('a connection that is idle after its request', async () => {
    const { port } = await start({ timeouts: { idleMs: SHORT_MS } });
    const idle = (await dial(port, client)).send(GET);
    expect(await idle.sees('hello')).toContain('200 OK');
    await idle.ended;
  });

  test('an unauthenticated one, however busy it is', async () => {
    const clock = new VirtualClock();
    const { port } = await start({ timeouts: { unauthenticatedMs: SHORT_MS }, clock });
    const busy = await dial(port);
    expect(await busy.send(GET).sees('hello')).toContain('hello');
    await clock.advance(SHORT_MS - 1);
    const again = setInterval(() => busy.send(GET), 20);
    expect(busy.socket.readableEnded).toBe(false);
    await clock.advance(1);
    await busy.ended;
    clearInterval(again);
  });

  test('a client that pipelines more than anyone waits for', async () => {
    const request = (): void => undefined;
    const { port } = await start({ handlers: { request } });
    await (await dial(port, client)).send(GET.repeat(1000)).ended;
  });
});

describe('is left alone', () => {
  test('an authenticated client, by the time-out of the unauthenticated', async () => {
    const clock = new VirtualClock();
    const { port, guard } = await start({ timeouts: { unauthenticatedMs: SHORT_MS }, clock });
    const [known, unknown] = [await dial(port, client), await dial(port)];
    // Its handshake may end at the client before it does at the server.
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 2, unauthenticated: 1 }));
    await clock.advance(SHORT_MS);
    await unknown.ended;
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 1, unauthenticated: 0 }));
    expect(await known.send(GET).sees('hello')).toContain('hello');
    known.socket.destroy();
  });

  test('one that has shown a token, when the server says so', async () => {
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      if (message.headers.authorization !== undefined) made.guard.authenticated(message.socket);
      response.end('hello');
    };
    const clock = new VirtualClock();
    const made = await start({ timeouts: { unauthenticatedMs: SHORT_MS }, handlers: { request }, clock });
    const [known, unknown] = [await dial(made.port), await dial(made.port)];
    await known.send('GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n').sees('hello');
    await vi.waitFor(() => expect(made.guard.open).toEqual({ total: 2, unauthenticated: 1 }));
    await clock.advance(SHORT_MS);
    await unknown.ended;
    expect(await known.send(GET.replace('/', '/again')).sees('hello')).toContain('hello');
    await vi.waitFor(() => expect(made.guard.open).toEqual({ total: 1, unauthenticated: 0 }));
    known.socket.destroy();
  });

  test('a response that takes longer, when the server allows it', async () => {
    const responses: ServerResponse[] = [];
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      if (message.url === '/watch') made.guard.allowTime(response, Number.POSITIVE_INFINITY);
      response.write('begun');
      responses.push(response);
    };
    const made = await start({ timeouts: { responseMs: SHORT_MS }, handlers: { request } });
    const long = (await dial(made.port, client)).send('GET /watch HTTP/1.1\r\nHost: x\r\n\r\n');
    await long.sees('begun');
    const short = (await dial(made.port, client)).send(GET);
    await short.ended;
    for (const response of responses) response.end('finished');
    expect(await long.sees('finished')).toContain('finished');
    expect(short.received).not.toContain('finished');
    long.socket.destroy();
  });
});

describe('a connection with HTTP/2', () => {
  const http2 = { maxStreams: 100 };
  const connectTo = (port: number, tls: ConnectionOptions): Promise<Http2Client> =>
    Http2Client.connect(`https://127.0.0.1:${port}`, { ca: caCert, rejectUnauthorized: false, ...tls });
  const closing = (stream: ClientHttp2Stream): Promise<number> =>
    new Promise((resolve) => stream.on('error', () => undefined).once('close', () => resolve(stream.rstCode ?? 0)));

  test('loses a response that takes too long, and nothing else', async () => {
    const clock = new VirtualClock();
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      if (message.url === '/watch') made.guard.allowTime(response, Number.POSITIVE_INFINITY);
      response.write('begun');
    };
    const made = await start({ timeouts: { responseMs: SHORT_MS }, handlers: { request, http2 }, clock });
    const known = await connectTo(made.port, client);
    const [long, short] = [await known.open('/watch'), await known.open('/')];
    await clock.advance(SHORT_MS);
    // INTERNAL_ERROR, as Go's server has it.
    expect(await short.closed).toBe(2);
    expect([long.stream.closed, known.session.closed]).toEqual([false, false]);
    known.close();
  });

  test('ends when it is idle, whatever the client does with it, and not while a response goes on', async () => {
    const clock = new VirtualClock();
    let finish = (): void => undefined;
    const request = (message: IncomingMessage, response: ServerResponse): void => {
      if (message.url !== '/watch') return void response.end('hello');
      made.guard.allowTime(response, Number.POSITIVE_INFINITY);
      response.write('begun');
      finish = () => void response.end();
    };
    const made = await start({ timeouts: { idleMs: SHORT_MS }, handlers: { request, http2 }, clock });
    const known = await connectTo(made.port, client);
    const watch = await known.open('/watch');
    expect((await known.send('/')).body.toString()).toBe('hello');
    await clock.advance(10 * SHORT_MS);
    expect(known.session.closed).toBe(false);
    finish();
    await watch.closed;
    const pings = setInterval(() => !known.session.closed && known.session.ping(() => undefined), 10);
    await vi.waitFor(() => expect(clock.timers).toBeGreaterThan(0));
    await clock.advance(SHORT_MS);
    expect(await known.goneAway).toBe(0);
    clearInterval(pings);
    await known.closed;
    await vi.waitFor(() => expect(made.guard.open.total).toBe(0));
  });

  test('that is not authenticated has few streams at a time, and ends with the first of them', async () => {
    const responses: ServerResponse[] = [];
    const request = (_message: IncomingMessage, response: ServerResponse): void => void responses.push(response);
    const { port, guard } = await start({ handlers: { request, http2 } });
    const unknown = await connectTo(port, {});
    const streams = Array.from({ length: 12 }, (_, i) => unknown.session.request({ ':path': `/${i}` }));
    const codes = streams.slice(8).map(closing);
    for (const stream of streams.slice(0, 8)) stream.resume().on('error', () => undefined);
    // REFUSED_STREAM: it was not begun, and may be sent again.
    expect(await Promise.all(codes)).toEqual([7, 7, 7, 7]);
    for (const response of responses) response.end('hello');
    expect(await unknown.goneAway).toBe(0);
    await unknown.closed;
    await vi.waitFor(() => expect(guard.open.total).toBe(0));
  });

  test('whose client does not close its side is closed', async () => {
    const clock = new VirtualClock();
    const { port, guard } = await start({ timeouts: { idleMs: SHORT_MS }, handlers: { http2 }, clock });
    const deaf = await dial(port, { ...client, ALPNProtocols: ['h2'] });
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 1, unauthenticated: 0 }));
    await clock.advance(SHORT_MS);
    await deaf.ended;
    await clock.advance(1_000);
    await vi.waitFor(async () => expect(await openConnections(port)).toBe(0));
    deaf.socket.destroy();
  });
});

describe('many connections', () => {
  test('without a credential are few at a time, and keep no authenticated client out', async () => {
    const limits = { total: 40, perAddress: 40, unauthenticated: 8 };
    // A line of the log is repeated a minute later.
    const { port, guard } = await start({ limits, clock: new VirtualClock() });
    const hostile: Client[] = [];
    for (let round = 0; round < 10; round++) {
      // One that is pushed out during its handshake is a rejection.
      const dialled = await Promise.allSettled(Array.from({ length: 10 }, () => dial(port)));
      for (const one of dialled) if (one.status === 'fulfilled') hostile.push(one.value);
      expect(guard.open.unauthenticated).toBeLessThanOrEqual(8);
      const good = await dial(port, client);
      expect(await good.send(GET).sees('hello')).toContain('hello');
      good.socket.destroy();
    }
    await vi.waitFor(async () => expect(await openConnections(port)).toBeLessThanOrEqual(8));
    expect(hostile.length).toBeGreaterThan(20);
    expect(log.filter((line) => line.includes('unauthenticated connections are closed'))).toHaveLength(1);
    for (const { socket } of hostile) socket.destroy();
  });

  test('from one address are limited, and the other addresses have their own', async () => {
    const { port, guard } = await start({ limits: { total: 10, perAddress: 3, unauthenticated: 3 } });
    const good: Client[] = [];
    for (let i = 0; i < 3; i++) good.push(await dial(port, { ...client, from: '127.0.0.2' }));
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 3, unauthenticated: 0 }));
    await expect(dial(port, { ...client, from: '127.0.0.2' })).rejects.toThrow();
    const other = await dial(port, { ...client, from: '127.0.0.3' });
    for (const one of [...good, other]) expect(await one.send(GET).sees('hello')).toContain('hello');
    for (const { socket } of [...good, other]) socket.destroy();
  });

  test('of an address that has most of the unauthenticated ones make room first', async () => {
    const { port, guard } = await start({ limits: { total: 20, perAddress: 20, unauthenticated: 4 } });
    const quiet = await dial(port, { from: '127.0.0.2' });
    const many: Client[] = [];
    for (let i = 0; i < 12; i++) many.push(await dial(port, { from: '127.0.0.3' }));
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 4, unauthenticated: 4 }));
    expect(await quiet.send(GET).sees('hello')).toContain('hello');
    for (const { socket } of [quiet, ...many]) socket.destroy();
  });

  test('are limited anew when the process may have fewer descriptors, and stay as they are when the limit cannot be read', async () => {
    const clock = new VirtualClock();
    let total = 100;
    const limits = (): ConnectionLimits => {
      if (total === 0) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return { total, perAddress: total, unauthenticated: 5 };
    };
    const guard = new ConnectionGuard({ limits, clock, log: (line) => log.push(line) });
    const made = guard.createServer(
      { ...serving, ca: caCert, requestCert: true, rejectUnauthorized: false },
      {
        request: (_request, response) => void response.end('hello'),
      },
    );
    server = made;
    await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
    const address = made.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const good = [await dial(port, client), await dial(port, client)];
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 2, unauthenticated: 0 }));
    total = 2;
    await clock.advance(5_000);
    await expect(dial(port, client)).rejects.toThrow();
    total = 0;
    await clock.advance(5_000);
    await expect(dial(port, client)).rejects.toThrow();
    for (const { socket } of good) socket.destroy();
  });

  test('in all are limited: what is authenticated stays, what is more is refused', async () => {
    const { port, guard } = await start({ limits: { total: 5, perAddress: 5, unauthenticated: 2 } });
    const good: Client[] = [];
    for (let i = 0; i < 5; i++) {
      good.push(await dial(port, client));
      await vi.waitFor(() => expect(guard.open).toEqual({ total: i + 1, unauthenticated: 0 }));
    }
    await expect(dial(port, client)).rejects.toThrow();
    expect(log).toEqual([expect.stringMatching(/^a connection from 127\.0\.0\.1 was refused: 5 connections/)]);
    for (const one of good) expect(await one.send(GET).sees('hello')).toContain('hello');
    good[0]?.socket.destroy();
    await vi.waitFor(() => expect(guard.open.total).toBe(4));
    const next = await dial(port, client);
    expect(await next.send(GET).sees('hello')).toContain('hello');
    for (const { socket } of [...good, next]) socket.destroy();
    await vi.waitFor(() => expect(guard.open).toEqual({ total: 0, unauthenticated: 0 }));
  });
});
