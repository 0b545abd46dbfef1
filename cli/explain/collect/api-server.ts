// One request to an API server, step by step, so that a failure has a name: the host's name is resolved, a connection opened, TLS
// agreed on, the request answered. Only reads; each step has a short deadline.

import { lookup } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { unreachable } from '../../../client/errors.ts';
import type { ClusterAccess } from '../../../client/kubeconfig.ts';
import { TokenSource, tlsOptions } from '../../../client/transport.ts';
import { type EpochMs, systemClock } from '../../../lib/clock.ts';
import { errnoOf } from '../../../lib/errors.ts';
import { request as httpRequest } from '../../../lib/node-http.ts';
import { clockOffset } from '../clock-offset.ts';
import type { ClockFact, ServerAttempt } from '../facts.ts';

/** For each step. ms */
const STEP_MS = 5_000;
/** Of a response that is read: a Status has its message near the beginning. Bytes. */
const MAX_BODY = 16 * 1024;

class ConnectionError extends Error {
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

const late = (who: string): ConnectionError => new ConnectionError(`${who} gave no answer`, 'ETIMEDOUT');

export interface ServerCall {
  readonly attempt: ServerAttempt;
  /** Undefined where there was no answer with a time. */
  readonly clock: ClockFact | undefined;
}

async function addressOf(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  // The resolver of the C library cannot be interrupted.
  const limit = systemClock.sleep(STEP_MS).then(() => {
    throw late('the resolver');
  });
  return (await Promise.race([lookup(host), limit])).address;
}

function opened(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.setTimeout(STEP_MS, () => socket.destroy(late('it')));
    socket.once('error', reject);
    socket.once('close', () => reject(new ConnectionError('it closed the connection', 'ECONNRESET')));
    socket.once(event, () => resolve());
  });
}

function sent(socket: Socket, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ createConnection: () => socket, path, headers });
    outgoing.once('error', reject);
    outgoing.once('response', resolve);
    outgoing.end();
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response.setEncoding('utf8')) {
    text += part;
    if (text.length > MAX_BODY) break;
  }
  return text;
}

/** What a response says: the message of a Status, or the HTTP code in words. Pure. */
export function answerText(status: number, reason: string, body: string): string {
  const message = /"message":\s*"((?:[^"\\]|\\.)*)"/.exec(body)?.[1];
  return `${status} ${message === undefined || message === '' ? reason : message.replaceAll('\\"', '"')}`;
}

/** The TLS peer may refuse this side's certificate only when it has read it: after the handshake. */
function stepOf(step: ServerAttempt['step'], error: unknown): ServerAttempt['step'] {
  return step === 'http' && /^ERR_SSL_/.test(errnoOf(error) ?? '') ? 'tls' : step;
}

/** GET with the credentials of the access. Never rejects for what a network or a server can do. */
export async function callServer(access: ClusterAccess, path: string, now: () => EpochMs): Promise<ServerCall> {
  const { server } = access;
  const url = new URL(server);
  const isSecure = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  const request = `GET ${path}`;
  let step: ServerAttempt['step'] = 'dns';
  let socket: Socket | undefined;
  try {
    const address = await addressOf(host);
    step = 'tcp';
    socket = connectTcp({ host: address, port });
    await opened(socket, 'connect');
    if (isSecure) {
      step = 'tls';
      const names = isIP(host) === 0 ? { host, servername: host } : { host };
      socket = connectTls({ socket, ...names, ...tlsOptions(access) });
      await opened(socket, 'secureConnect');
    }
    step = 'http';
    const credentials = await new TokenSource(access, systemClock).headers();
    const requested = now();
    const headers = { host: url.host, accept: 'application/json', 'user-agent': 'nodelet-explain', ...credentials };
    const response = await sent(socket, `${url.pathname.replace(/\/+$/, '')}${path}`, headers);
    const clock = clockOffset(response.headers.date, requested, now());
    const { statusCode: status = 0, statusMessage = '' } = response;
    const answer = answerText(status, statusMessage, await textOf(response));
    return { attempt: { server, request, step: status < 400 ? 'answered' : 'http', answer, status }, clock };
  } catch (error) {
    // Failures of sockets, TLS and HTTP have a code.
    if (errnoOf(error) === undefined) throw error;
    const text = unreachable(server, error).message.replace(`cannot reach the API server ${server}: `, '');
    return {
      attempt: { server, request, step: stepOf(step, error), answer: text, status: undefined },
      clock: undefined,
    };
  } finally {
    socket?.destroy();
  }
}
