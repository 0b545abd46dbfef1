import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { Server as GrpcServer, ServerCredentials, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { httpGetRequest } from '../../../../agent/model/http-action.ts';
import { type ContainerId, RuntimeError } from '../../../../agent/ports/runtime.ts';
import { createExecRunner } from '../../../../agent/probes/exec-runner.ts';
import { createGrpcRunner } from '../../../../agent/probes/grpc-runner.ts';
import { createHttpRunner } from '../../../../agent/probes/http-runner.ts';
import { createTcpRunner } from '../../../../agent/probes/tcp-runner.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { loadProto } from '../../../../proto/load.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const never = new AbortController().signal;
/** For giving up only. */
const PATIENCE_MS = 120_000;
/** Node's diagnostics channel. */
const RESPONSE = 'http.client.response.finish';
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function listen(server: Server | TcpServer): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address: string | AddressInfo | null = server.address();
      closing.push(() => {
        server.close();
        if ('closeAllConnections' in server) server.closeAllConnections();
      });
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

/** Nothing listens there: one that was free a moment ago may be another program's by now. */
const CLOSED_PORT = 1;

/** Resolves when a client in this process has the head of its response. */
function responseBegan(): Promise<void> {
  return new Promise((resolve) => {
    const seen = (): void => {
      unsubscribe(RESPONSE, seen);
      resolve();
    };
    subscribe(RESPONSE, seen);
  });
}

describe('an httpGet probe', () => {
  const http = createHttpRunner(systemClock);
  const ask = (port: number, action: object = {}) =>
    http(httpGetRequest({ port, ...action }, {}, '127.0.0.1', 'probe'), PATIENCE_MS, never);
  const serve = (listener: RequestListener) => listen(createServer(listener));

  it('sends the headers of the probe, its own Host, and closes the connection', async () => {
    let seen: Record<string, unknown> = {};
    const port = await serve((request, response) => {
      seen = { ...request.headers, url: request.url };
      response.end('ok');
    });
    const httpHeaders = [
      { name: 'Host', value: 'example.org' },
      { name: 'X-Probe', value: 'yes' },
    ];
    expect(await ask(port, { path: '/healthz?full=1', httpHeaders })).toEqual({ kind: 'success', output: 'ok' });
    expect(seen).toMatchObject({
      host: 'example.org',
      'x-probe': 'yes',
      'user-agent': 'kube-probe/1.34',
      connection: 'close',
      url: '/healthz?full=1',
    });
  });

  it('follows a redirect on the same host, with its Host header when the redirect names none', async () => {
    const hosts: unknown[] = [];
    const port = await serve((request, response) => {
      hosts.push(request.headers.host);
      if (request.url === '/') response.writeHead(302, { Location: '/there' }).end();
      else response.writeHead(request.url === '/there' ? 200 : 500).end('arrived');
    });
    const httpHeaders = [{ name: 'Host', value: 'example.org' }];
    expect(await ask(port, { httpHeaders })).toEqual({ kind: 'success', output: 'arrived' });
    expect(hosts).toEqual(['example.org', 'example.org']);
  });

  it('does not follow a redirect to another host: a success, with a warning', async () => {
    const port = await serve((_, response) => response.writeHead(301, { Location: 'http://192.0.2.1/' }).end('moved'));
    expect(await ask(port)).toEqual({
      kind: 'warning',
      output: 'Probe terminated redirects, Response body: moved',
    });
  });

  it('gives up after ten redirects', async () => {
    let requests = 0;
    const port = await serve((_, response) => {
      requests++;
      response.writeHead(302, { Location: '/again' }).end();
    });
    const output = `Get "http://127.0.0.1:${port}/again": stopped after 10 redirects`;
    expect(await ask(port)).toEqual({ kind: 'failure', output });
    expect(requests).toBe(10);
  });

  it('fails with the status code when the answer is an error', async () => {
    const port = await serve((_, response) => response.writeHead(500).end('secret'));
    expect(await ask(port)).toEqual({ kind: 'failure', output: 'HTTP probe failed with statuscode: 500' });
  });

  it('fails with the words of a dial when nothing listens', async () => {
    const why = `dial tcp 127.0.0.1:${CLOSED_PORT}: connect: connection refused`;
    const output = `Get "http://127.0.0.1:${CLOSED_PORT}/": ${why}`;
    expect(await ask(CLOSED_PORT)).toEqual({ kind: 'failure', output });
  });

  it('fails when no answer comes in time', async () => {
    const clock = new VirtualClock();
    const port = await serve(() => void clock.advance(150));
    const why = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
    const probe = httpGetRequest({ port }, {}, '127.0.0.1', 'probe');
    expect(await createHttpRunner(clock)(probe, 150, never)).toEqual({
      kind: 'failure',
      output: `Get "http://127.0.0.1:${port}/": ${why}`,
    });
  });

  it('fails with EOF when the server closes before it answers', async () => {
    const port = await listen(createTcpServer((socket) => socket.once('data', () => socket.end())));
    expect(await ask(port)).toEqual({ kind: 'failure', output: `Get "http://127.0.0.1:${port}/": EOF` });
  });

  it('says that HTTPS was answered in plain HTTP', async () => {
    const port = await serve((_, response) => response.end('ok'));
    const why = 'http: server gave HTTP response to HTTPS client';
    const outcome = await ask(port, { scheme: 'HTTPS' });
    expect(outcome).toEqual({ kind: 'failure', output: `Get "https://127.0.0.1:${port}/": ${why}` });
  });

  it('reads an answer without an end only up to its limit', async () => {
    let written = 0;
    const port = await serve((_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024, 'x'))) written += 64 * 1024;
      };
      response.on('drain', more);
      more();
    });
    const outcome = await ask(port);
    expect(outcome.kind === 'success' ? outcome.output.length : outcome).toBe(10 * 1024);
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });

  it('knows nothing when the body stops in the middle', async () => {
    const port = await serve((_, response) => response.writeHead(200, { 'Content-Length': 100 }).write('half'));
    const clock = new VirtualClock();
    const probe = httpGetRequest({ port }, {}, '127.0.0.1', 'probe');
    const began = responseBegan();
    const requested = createHttpRunner(clock)(probe, 1_000, never);
    await began;
    await clock.advance(1_000);
    expect(await requested).toEqual({
      kind: 'error',
      state: 'failure',
      message: 'context deadline exceeded (Client.Timeout or context cancellation while reading body)',
    });
  });

  it('rejects with the reason when it is abandoned', async () => {
    const port = await serve(() => undefined);
    const stop = new AbortController();
    const requested = http(httpGetRequest({ port }, {}, '127.0.0.1', 'probe'), PATIENCE_MS, stop.signal);
    setImmediate(() => stop.abort(new Error('the probe ended')));
    await expect(requested).rejects.toThrow('the probe ended');
  });
});

describe('a tcpSocket probe', () => {
  const tcp = createTcpRunner(systemClock);
  it('succeeds when a connection can be made', async () => {
    const port = await listen(createTcpServer((socket) => socket.destroy()));
    expect(await tcp({ host: '127.0.0.1', port }, PATIENCE_MS, never)).toEqual({ kind: 'success', output: '' });
  });
  it('fails with the words of a dial when nothing listens', async () => {
    const output = `dial tcp 127.0.0.1:${CLOSED_PORT}: connect: connection refused`;
    const target = { host: '127.0.0.1', port: CLOSED_PORT };
    expect(await tcp(target, PATIENCE_MS, never)).toEqual({ kind: 'failure', output });
  });
});

describe('an exec probe', () => {
  const id = 'c1' as ContainerId;
  const answer = { stdout: Buffer.from('out'), stderr: Buffer.from('err'), exitCode: 0, timedOut: false };
  const ask = (result: Partial<typeof answer>) =>
    createExecRunner({ execSync: async () => ({ ...answer, ...result }) })(
      { containerId: id, command: ['sleep', '9'] },
      1_000,
      never,
    );
  it('succeeds with exit code 0', async () => {
    expect(await ask({})).toEqual({ kind: 'success', output: 'outerr' });
  });
  it('fails with any other, and shows what was printed', async () => {
    expect(await ask({ exitCode: 3 })).toEqual({ kind: 'failure', output: 'outerr' });
  });
  it('fails when the command takes too long', async () => {
    expect(await ask({ timedOut: true })).toEqual({ kind: 'failure', output: 'command "sleep 9" timed out' });
  });
  it('shows no more than 10 KiB of what was printed', async () => {
    const outcome = await ask({ exitCode: 1, stdout: Buffer.alloc(8_000, 'a'), stderr: Buffer.alloc(80_000, 'b') });
    expect(outcome).toEqual({ kind: 'failure', output: 'a'.repeat(8_000) + 'b'.repeat(2_240) });
  });
  it('knows nothing when the runtime cannot run it', async () => {
    const broken = createExecRunner({
      execSync: () => Promise.reject(new RuntimeError('ExecSync', 'NOT_FOUND', 'no such container')),
    });
    expect(await broken({ containerId: id, command: [] }, 1_000, never)).toEqual({
      kind: 'error',
      state: 'unknown',
      message: 'rpc error: code = NotFound desc = no such container',
    });
  });
});

describe('a grpc probe', () => {
  const grpc = createGrpcRunner(systemClock);
  const ask = (port: number, service = '', timeoutMs = PATIENCE_MS) =>
    grpc({ host: '127.0.0.1', port, service }, timeoutMs, never);

  async function serve(withHealth: boolean): Promise<number> {
    const server = new GrpcServer();
    const { Health } = loadProto('grpc-health').grpc.health.v1;
    if (withHealth) {
      server.addService(Health.service, {
        Check: (call: { request: { service: string } }, reply: (error: object | null, value?: object) => void) => {
          const { service } = call.request;
          if (service === 'slow') return;
          if (service === 'missing') reply({ code: status.NOT_FOUND, details: 'unknown service' });
          else reply(null, { status: service === 'bad' ? 'NOT_SERVING' : 'SERVING' });
        },
      });
    }
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    closing.push(() => server.forceShutdown());
    return port;
  }

  it.each([
    ['succeeds when the service serves', '', PATIENCE_MS, { kind: 'success', output: 'service healthy' }],
    [
      'fails when it says that it does not',
      'bad',
      PATIENCE_MS,
      { kind: 'failure', output: 'service unhealthy (responded with "NOT_SERVING")' },
    ],
    [
      'fails when it does not know the service',
      'missing',
      PATIENCE_MS,
      { kind: 'failure', output: 'error: health rpc probe failed: rpc error: code = NotFound desc = unknown service' },
    ],
    [
      'fails when no answer comes in time',
      'slow',
      // The connection is made within it.
      3_000,
      { kind: 'failure', output: 'timeout: health rpc did not complete within 3s' },
    ],
  ])('%s', async (_name, service, timeoutMs, outcome) => {
    const port = await serve(true);
    expect(await ask(port, service, timeoutMs)).toEqual(outcome);
  });

  it('fails when the server has no health service', async () => {
    const outcome = await ask(await serve(false));
    expect(outcome).toMatchObject({
      kind: 'failure',
      output: expect.stringContaining('this server does not implement the grpc health protocol'),
    });
  });

  it('fails when nothing listens, once its time is over', async () => {
    const address = `127.0.0.1:${CLOSED_PORT}`;
    const output = `timeout: failed to connect service "${address}" within 1s: context deadline exceeded`;
    expect(await ask(CLOSED_PORT, '', 1_000)).toEqual({ kind: 'failure', output });
  });
});
