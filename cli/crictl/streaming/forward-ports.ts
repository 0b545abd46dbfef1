// port-forward: local connections to ports in a pod's network namespace, over the streams of one SPDY connection or over a
// WebSocket each.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import { joinHostPort } from '../../../lib/go-words.ts';
import type { Console } from '../console.ts';
import type { SpdyConnection } from './spdy.ts';

export const PORT_FORWARD_PROTOCOL = 'portforward.k8s.io';

export interface ForwardedPort {
  /** 0: any free one. */
  readonly local: number;
  readonly remote: number;
}

function portNumber(text: string, which: string): number {
  if (!/^\d+$/.test(text) || Number(text) > 65_535) throw new UserError(`error parsing ${which} port '${text}'`);
  return Number(text);
}

/** "80", "8080:80", ":80". Throws UserError. Pure. */
export function parsePorts(ports: readonly string[]): ForwardedPort[] {
  return ports.map((text) => {
    const parts = text.split(':');
    const [first = '', second = first] = parts;
    if (parts.length > 2) throw new UserError(`invalid port format '${text}'`);
    const local = portNumber(parts.length === 2 && first === '' ? '0' : first, 'local');
    const remote = portNumber(second, 'remote');
    if (remote === 0) throw new UserError('remote port must be > 0');
    return { local, remote };
  });
}

/** Copies one local connection to a port in the pod, and back; each direction ends by itself. */
function forward(connection: SpdyConnection, local: Socket, remote: number, id: number, console: Console): void {
  const headers = { port: String(remote), requestid: String(id) };
  let failure = '';
  const errors = connection.open(
    { ...headers, streamtype: 'error' },
    {
      data: (chunk) => {
        failure += chunk.toString('utf8');
      },
      end: () => {
        if (failure === '') return;
        console.log('ERRO', `an error occurred forwarding to port ${remote}: ${failure.trim()}`);
        local.destroy();
      },
    },
  );
  errors.end();
  const data = connection.open(
    { ...headers, streamtype: 'data' },
    {
      data: (chunk) => {
        // One slow reader holds up the others: SPDY's flow control is served by no runtime.
        if (local.writable && !local.write(chunk)) {
          connection.pause();
          local.once('drain', () => connection.resume());
          local.once('close', () => connection.resume());
        }
      },
      end: () => local.end(),
    },
  );
  local.on('data', (chunk: Buffer) => {
    if (data.write(chunk)) return;
    local.pause();
    void data.drained().then(() => local.resume());
  });
  local.once('end', () => data.end());
  local.on('error', (error) => console.log('DEBU', `local connection: ${errorMessage(error)}`));
  // The error stream ends by itself: what it says may come after the data has ended.
  local.once('close', () => data.reset());
}

/** How local connections get into the pod. */
export interface Forwarder {
  forward(local: Socket, remote: number): void;
  /** Resolves when nothing can be forwarded any more. */
  readonly closed: Promise<void>;
  close(): void;
}

export function spdyForwarder(connection: SpdyConnection, console: Console): Forwarder {
  let requests = 0;
  return {
    forward: (local, remote) => forward(connection, local, remote, requests++, console),
    closed: connection.closed,
    close: () => connection.close(),
  };
}

/** `serve` copies one connection until its end, and resolves with what the runtime reports of it. */
export function webSocketForwarder(
  serve: (local: Socket, remote: number) => Promise<string>,
  console: Console,
): Forwarder {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const one = async (local: Socket, remote: number): Promise<void> => {
    local.on('error', (error) => console.log('DEBU', `local connection: ${errorMessage(error)}`));
    let failure: string;
    try {
      failure = await serve(local, remote);
    } catch (error) {
      failure = errorMessage(error);
    }
    if (failure === '') return;
    console.log('ERRO', `an error occurred forwarding to port ${remote}: ${failure.trim()}`);
    local.destroy();
  };
  return { forward: (local, remote) => void one(local, remote), closed, close: resolve };
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new TypeError('a TCP server has no address');
  return address.port;
}

/** Listens on loopback and forwards until `signal` aborts. Rejects with UserError when the connection is lost. */
export async function forwardPorts(
  forwarder: Forwarder,
  ports: readonly ForwardedPort[],
  console: Console,
  signal: AbortSignal,
): Promise<void> {
  const servers: Server[] = [];
  const locals = new Set<Socket>();
  const serve = async ({ local, remote }: ForwardedPort): Promise<void> => {
    let port = local;
    const failures: string[] = [];
    for (const host of ['127.0.0.1', '::1']) {
      // What the client has sent and closed is still to be answered.
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        locals.add(socket);
        socket.once('close', () => locals.delete(socket));
        console.line(`Handling connection for ${port}`);
        forwarder.forward(socket, remote);
      });
      try {
        port = await listen(server, host, port);
        servers.push(server);
        console.line(`Forwarding from ${joinHostPort(host, port)} -> ${remote}`);
      } catch (error) {
        if (!isErrno(error, 'EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL', 'EAFNOSUPPORT')) throw error;
        failures.push(errorMessage(error));
      }
    }
    if (failures.length === 2) throw new UserError(`Unable to listen on port ${local}: ${failures.join(', ')}`);
  };
  const aborted = new Promise<'aborted'>((resolve) => {
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
    if (signal.aborted) resolve('aborted');
  });
  try {
    let failures = 0;
    for (const port of ports) {
      try {
        await serve(port);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        failures++;
        console.log('ERRO', error.message);
      }
    }
    if (failures === ports.length) throw new UserError('unable to listen on any of the requested ports');
    const end = await Promise.race([aborted, forwarder.closed.then(() => 'lost' as const)]);
    if (end === 'lost') throw new UserError('lost connection to pod');
  } finally {
    for (const server of servers) server.close();
    for (const socket of locals) socket.destroy();
    forwarder.close();
  }
}
