import type { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { loadProto } from '../../../proto/load.ts';
import { GrpcError, unaryCaller } from '../../../proto/unary.ts';

const directory = mkdtempSync(join(tmpdir(), 'nodelet-unary-'));
const address = `unix://${join(directory, 'cri.sock')}`;
const { runtime } = loadProto('cri');
const server = new Server();
let onStatus: (call: EventEmitter) => void = () => undefined;
const client = new runtime.v1.RuntimeService(address, credentials.createInsecure());

beforeAll(async () => {
  server.addService(runtime.v1.RuntimeService.service, {
    Version: (_call: unknown, reply: (error: null, value: object) => void) =>
      reply(null, { version: '0.1.0', runtime_name: 'fake', runtime_version: 'v9', runtime_api_version: 'v1' }),
    // Status never answers, so that only the deadline or the caller ends it.
    Status: (call: EventEmitter) => onStatus(call),
  });
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(address, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
});
afterAll(() => {
  client.close();
  server.forceShutdown();
  rmSync(directory, { recursive: true });
});

test('a unary call answers with the typed message and leaves one span that names the pod', async () => {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const call = unaryCaller(tracer, 'cri');
  const pod = { namespace: 'demo', name: 'hello-pod', uid: 'u' };
  const version = await tracer.within({ pod }, () => call(client, 'Version', {}, { deadlineMs: 5000 }));
  expect(version.runtime_name).toBe('fake');
  expect(spans).toMatchObject([{ kind: 'cri', name: 'Version', pod, outcome: 'ok' }]);
});

test('a call past its deadline rejects with the status name and the span says so', async () => {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const call = unaryCaller(tracer, 'cri');
  const failure = await call(client, 'Status', {}, { deadlineMs: 20 }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(GrpcError);
  expect(failure).toMatchObject({ method: 'Status', code: 'DEADLINE_EXCEEDED' });
  expect(spans).toMatchObject([{ name: 'Status', outcome: 'error' }]);
});

test('a call that is given up while it waits is cancelled at the server too', async () => {
  const call = unaryCaller(new Tracer(), 'cri');
  const giveUp = new AbortController();
  const { promise: cancelled, resolve } = Promise.withResolvers<void>();
  onStatus = (requested) => {
    requested.on('cancelled', resolve);
    giveUp.abort();
  };
  const failure = await call(client, 'Status', {}, { signal: giveUp.signal }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ method: 'Status', code: 'CANCELLED' });
  await cancelled;
});

test('a call that is given up before it is made rejects as well', async () => {
  const call = unaryCaller(new Tracer(), 'cri');
  const failure = call(client, 'Status', {}, { signal: AbortSignal.abort() });
  await expect(failure).rejects.toMatchObject({ code: 'CANCELLED' });
});

test('a method the server does not have is UNIMPLEMENTED', async () => {
  const call = unaryCaller(new Tracer(), 'cri');
  await expect(call(client, 'RuntimeConfig', {})).rejects.toMatchObject({
    code: 'UNIMPLEMENTED',
  });
});
