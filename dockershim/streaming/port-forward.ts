// Port-forward over SPDY (portforward.k8s.io): each forwarded connection is a pair of streams, one for data and one for
// what went wrong, with the same request id.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorMessage } from '../../lib/errors.ts';
import { PodDialer } from './pod-dialer.ts';
import { SpdyServer, type SpdyServerStream } from './spdy-server.ts';

export const PORT_FORWARD_PROTOCOL = 'portforward.k8s.io';

interface Pair {
  error?: SpdyServerStream;
  data?: SpdyServerStream;
}

function portOf({ headers }: SpdyServerStream): number | undefined {
  const port = Number(headers['port']);
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

async function copyBack(socket: Socket, data: SpdyServerStream): Promise<void> {
  for await (const chunk of socket) await data.write(Buffer.from(chunk));
}

async function forward(dialer: PodDialer, error: SpdyServerStream, data: SpdyServerStream): Promise<void> {
  const port = portOf(data);
  error.input.resume();
  try {
    if (port === undefined) throw new Error(`"${data.headers['port'] ?? ''}" is no port`);
    const socket = await dialer.connect(port);
    data.input.pipe(socket);
    socket.on('error', () => socket.destroy());
    await copyBack(socket, data);
  } catch (failure) {
    await error.write(Buffer.from(`error forwarding port ${port ?? 0} to pod: ${errorMessage(failure)}`));
  } finally {
    data.end();
    error.end();
  }
}

/** `pid`: a process in the pod's network namespace. Resolves when the client has gone. */
export async function servePortForward(socket: Duplex, head: Buffer, pid: number): Promise<void> {
  const dialer = new PodDialer(pid);
  const pairs = new Map<string, Pair>();
  const connection = new SpdyServer(socket, head, (stream) => {
    const type = stream.headers['streamtype'];
    if (type !== 'error' && type !== 'data') {
      stream.reset();
      return;
    }
    const id = stream.headers['requestid'] ?? '';
    const pair = pairs.get(id) ?? {};
    pair[type] = stream;
    pairs.set(id, pair);
    const { error, data } = pair;
    if (error === undefined || data === undefined) return;
    pairs.delete(id);
    void forward(dialer, error, data);
  });
  await new Promise<void>((resolve) => {
    if (connection.gone.aborted) resolve();
    connection.gone.addEventListener('abort', () => resolve(), { once: true });
  });
  dialer.close();
}
