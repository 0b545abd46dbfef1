import type { IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { ApiError, isUnreachable } from '../../../client/errors.ts';
import { execInPod, exitCodeOf } from '../../../client/exec.ts';
import type { ClusterAccess } from '../../../client/kubeconfig.ts';
import type { Status } from '../../../client/types.ts';
import { TestServer } from '../../support/https-server.ts';
import { makeCa } from '../../support/tls.ts';

let server: TestServer;
let sockets: WebSocketServer;
let access: ClusterAccess;
let upgrade: IncomingMessage | undefined;
let serve: (socket: WebSocket) => void;

beforeEach(async () => {
  const ca = await makeCa();
  server = await TestServer.start(await ca.server(['127.0.0.1']), ca.cert, () => undefined);
  access = { server: server.url, ca: ca.cert, token: 'secret' };
  sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] ?? false });
  server.server.on('upgrade', (request, socket, head) => {
    upgrade = request;
    sockets.handleUpgrade(request, socket, head, (accepted) => serve(accepted));
  });
});
afterEach(async () => {
  sockets.close();
  await server[Symbol.asyncDispose]();
});

const frame = (channel: number, text: string): Buffer => Buffer.concat([Buffer.of(channel), Buffer.from(text)]);
const success: Status = { kind: 'Status', apiVersion: 'v1', status: 'Success' };
const nonZero: Status = {
  ...success,
  status: 'Failure',
  reason: 'NonZeroExitCode',
  message: 'command terminated with non-zero exit code: exit status 3',
  details: { causes: [{ reason: 'ExitCode', message: '3' }] },
};

describe('execInPod', () => {
  it('asks in the v4 protocol with its credentials, and keeps the streams apart', async () => {
    serve = (socket) => {
      socket.send(frame(1, ''));
      socket.send(frame(1, 'out '));
      socket.send(frame(2, 'err'));
      socket.send(frame(1, 'more'));
      socket.send(frame(3, JSON.stringify(success)));
      socket.close();
    };
    const outcome = await execInPod(access, { namespace: 'demo', pod: 'p', container: 'web', command: ['ls', '-l /'] });
    expect(outcome).toEqual({ stdout: 'out more', stderr: 'err', exitCode: 0 });
    expect(upgrade?.headers['sec-websocket-protocol']).toBe('v4.channel.k8s.io');
    expect(upgrade?.headers.authorization).toBe('Bearer secret');
    expect(upgrade?.url).toBe(
      '/api/v1/namespaces/demo/pods/p/exec?command=ls&command=-l+%2F&container=web&stdin=false&stdout=true&stderr=true&tty=false',
    );
  });

  it('sends standard input and returns the exit code', async () => {
    serve = (socket) => {
      socket.on('message', (data: Buffer) => {
        socket.send(frame(1, `got ${data[0]} ${data.subarray(1).toString()}`));
        socket.send(frame(3, JSON.stringify(nonZero)));
        socket.close();
      });
    };
    const outcome = await execInPod(access, { namespace: 'demo', pod: 'p', command: ['cat'], stdin: 'hello' });
    expect(outcome).toEqual({ stdout: 'got 0 hello', stderr: '', exitCode: 3 });
  });

  it('throws the Status of a refusal', async () => {
    server.server.removeAllListeners('upgrade');
    const status = { ...success, status: 'Failure', code: 404, reason: 'NotFound', message: 'pods "p" not found' };
    server.server.on('upgrade', (_request, socket) => {
      const body = JSON.stringify(status);
      socket.end(`HTTP/1.1 404 Not Found\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
    });
    const error = await execInPod(access, { namespace: 'demo', pod: 'p', command: ['ls'] }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 404, message: 'pods "p" not found' });
  });

  it('says so when the stream ends without a status', async () => {
    serve = (socket) => socket.close();
    const error = await execInPod(access, { namespace: 'demo', pod: 'p', command: ['ls'] }).catch((e: unknown) => e);
    expect(isUnreachable(error)).toBe(true);
    expect(String(error)).toContain('exec in demo/p: the stream ended without a status');
  });

  it('stops when aborted', async () => {
    const stop = new AbortController();
    const reason = new Error('enough');
    serve = () => stop.abort(reason);
    await expect(
      execInPod(access, { namespace: 'demo', pod: 'p', command: ['sleep'], signal: stop.signal }),
    ).rejects.toBe(reason);
  });
});

describe('exitCodeOf', () => {
  it('is 0 for Success and the ExitCode cause for NonZeroExitCode', () => {
    expect([exitCodeOf(success), exitCodeOf(nonZero)]).toEqual([0, 3]);
  });
  it('throws what kept the command from running', () => {
    const failed: Status = {
      ...success,
      status: 'Failure',
      reason: 'InternalError',
      code: 500,
      message: 'no such file',
    };
    expect(() => exitCodeOf(failed)).toThrow('no such file');
  });
});
