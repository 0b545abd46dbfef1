// Faults of API calls on a lab: what stands between agent and server is both of them, and passes what no rule is about.

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect as connectSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ensurePki } from '../../../../../apiserver/pki/ensure.ts';
import type { Pki } from '../../../../../apiserver/pki/types.ts';
import { podOfPath } from '../../../../../cli/experiment/fault-set.ts';
import { ApiFaults, callName } from '../../../../../cli/experiment/lab/api-faults.ts';
import { systemClock } from '../../../../../lib/clock.ts';

const STATUS = '/api/v1/namespaces/demo/pods/web/status';

test.each([
  ['PATCH', STATUS, `PATCH ${STATUS}`],
  ['GET', '/api/v1/nodes/n1?resourceVersion=0', 'GET /api/v1/nodes/n1'],
  ['GET', '/api/v1/pods?limit=500', 'LIST /api/v1/pods'],
  ['GET', '/api/v1/pods?watch=true', 'WATCH /api/v1/pods'],
])('%s %s is the call %s', (method, url, call) => {
  expect(callName(method, url).call).toBe(call);
});

test('the pod of a call is in its path', () => {
  expect([STATUS, '/api/v1/namespaces/demo/pods/web', '/api/v1/pods', '/api/v1/nodes/n1'].map(podOfPath)).toEqual([
    'demo/web',
    'demo/web',
    undefined,
    undefined,
  ]);
});

describe('between agent and server', () => {
  let directory: string;
  let pki: Pki;
  let server: Server;
  let faults: ApiFaults;
  /** What the server was called, and by whom. */
  const calls: string[] = [];
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'experiment-api-'));
    pki = await ensurePki(join(directory, 'pki'), { hosts: [], nodeName: 'n1', now: systemClock.now() });
    const { serving, ca } = pki;
    const tls = { cert: serving.cert, key: serving.key, ca: ca.cert, requestCert: true, rejectUnauthorized: true };
    server = createServer(tls, (call, answer) => {
      const subject = (call.socket as TLSSocket).getPeerCertificate().subject;
      calls.push(`${subject.CN} ${call.method} ${call.url}`);
      answer.writeHead(201, { 'x-of': 'server' });
      // The first event of a watch, which goes on.
      if (call.url?.includes('watch') === true) answer.write('{"type":"ADDED"}');
      else call.pipe(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await rm(directory, { recursive: true });
  });
  beforeEach(async () => {
    calls.length = 0;
    const { port } = server.address() as AddressInfo;
    faults = new ApiFaults({
      parties: { ca: pki.ca.cert, server: { ...pki.serving, port }, agent: pki.clients.agent },
      clock: systemClock,
      log: () => undefined,
    });
    await faults.listenAt(join(directory, 'api.sock'));
  });
  afterEach(() => faults.close());

  /** The status and the body; undefined where the signal ended it. */
  const call = (method: string, path: string, body = '', signal?: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = join(directory, 'api.sock');
      const onward = request(
        {
          ...{ method, path, ca: pki.ca.cert, host: '127.0.0.1', ...(signal && { signal }) },
          createConnection: () =>
            connectTls({ socket: connectSocket(socket), ca: pki.ca.cert, host: '127.0.0.1', servername: '' }),
        },
        (response) => {
          let text = `${response.statusCode} `;
          response.on('error', reject).on('data', (part: Buffer) => {
            text += part.toString();
            if (text.includes('ADDED')) {
              resolve(text);
              response.destroy();
            }
          });
          response.on('end', () => resolve(text));
        },
      );
      onward.on('error', reject).end(body);
    });

  test('the server sees the agent, and calls without a rule pass, a watch with its first event', async () => {
    expect(await call('PATCH', STATUS, '{"a":1}')).toBe('201 {"a":1}');
    expect(await call('GET', '/api/v1/pods?watch=true')).toBe('201 {"type":"ADDED"}');
    expect(calls).toEqual([`system:node:n1 PATCH ${STATUS}`, 'system:node:n1 GET /api/v1/pods?watch=true']);
  });

  test('a rule fails the calls it is about, as often as it says', async () => {
    faults.setFaults([
      { call: 'PATCH */status', pod: 'web', action: 'fail', code: '503', message: 'not now', times: 1 },
    ]);
    expect(await call('PATCH', STATUS)).toMatch(/^503 .*"reason":"ServiceUnavailable","message":"not now"/);
    expect(await call('PATCH', STATUS, 'x')).toBe('201 x');
    expect(calls).toEqual([`system:node:n1 PATCH ${STATUS}`]);
  });

  test('one that is delayed is done later, one that is dropped is done without an answer, one that hangs is not done', async () => {
    faults.setFaults([
      { call: 'LIST */delayed', action: 'delay', delay: '50ms' },
      { call: 'LIST */dropped', action: 'drop' },
      { call: 'LIST */hung', action: 'hang' },
    ]);
    const began = performance.now();
    expect(await call('GET', '/api/v1/delayed')).toBe('201 ');
    expect(performance.now() - began).toBeGreaterThanOrEqual(49);
    const controller = new AbortController();
    const lost = Promise.allSettled(
      ['hung', 'dropped'].map((name) => call('GET', `/api/v1/${name}`, '', controller.signal)),
    );
    await vi.waitFor(() => expect(calls).toContain('system:node:n1 GET /api/v1/dropped'));
    controller.abort();
    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(calls).not.toContain('system:node:n1 GET /api/v1/hung');
  });
});
