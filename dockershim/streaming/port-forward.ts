// Port-forward over SPDY (portforward.k8s.io): each forwarded connection is a pair of streams, one for data and one for
// what went wrong, with the same request id. Over a WebSocket (v4.channel.k8s.io) each port has two channels, and one connection.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { errorMessage } from '../../lib/errors.ts';
import { PodDialer } from './pod-dialer.ts';
import { SpdyServer, type SpdyServerStream } from './spdy-server.ts';
import { bytesOf } from './websocket-io.ts';

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

/** Channels 2n and 2n+1: data and error of the nth port. Each begins with the port's number, low byte first. */
class ForwardedChannels {
  readonly #client: WebSocket;
  readonly #port: number;
  readonly #data: number;

  constructor(client: WebSocket, port: number, index: number) {
    this.#client = client;
    this.#port = port;
    this.#data = 2 * index;
  }

  #send(channel: number, data: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#client.send(Buffer.concat([Buffer.from([channel]), data]), () => resolve());
    });
  }

  async begin(): Promise<void> {
    const number = Buffer.from([this.#port & 0xff, this.#port >> 8]);
    await this.#send(this.#data, number);
    await this.#send(this.#data + 1, number);
  }

  fail(error: unknown): Promise<void> {
    const text = `error forwarding port ${this.#port} to pod: ${errorMessage(error)}`;
    return this.#send(this.#data + 1, Buffer.from(text));
  }

  /** From the client. */
  listen(socket: Socket): void {
    this.#client.on('message', (data) => {
      const message = bytesOf(data);
      if (message[0] !== this.#data || socket.write(message.subarray(1))) return;
      this.#client.pause();
      socket.once('drain', () => this.#client.resume());
    });
    this.#client.once('close', () => socket.destroy());
    socket.on('error', () => socket.destroy());
  }

  async copyBack(socket: Socket): Promise<void> {
    try {
      for await (const chunk of socket) await this.#send(this.#data, Buffer.from(chunk));
    } catch (error) {
      await this.fail(error);
    }
  }
}

/** Resolves when all connections have ended, or the client has gone. */
export async function servePortForwardSocket(client: WebSocket, pid: number, ports: readonly number[]): Promise<void> {
  // What comes before the connections stand waits.
  client.pause();
  client.on('error', () => client.terminate());
  const gone = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const dialer = new PodDialer(pid);
  const all = ports.map((port, index) => new ForwardedChannels(client, port, index));
  const connect = async (channels: ForwardedChannels, port: number): Promise<Socket | undefined> => {
    await channels.begin();
    try {
      const socket = await dialer.connect(port);
      channels.listen(socket);
      return socket;
    } catch (error) {
      await channels.fail(error);
      return undefined;
    }
  };
  const forward = async (): Promise<void> => {
    const sockets = await Promise.all(all.map((channels, index) => connect(channels, ports[index] ?? 0)));
    client.resume();
    await Promise.all(
      sockets.map((socket, index) => (socket === undefined ? undefined : all[index]?.copyBack(socket))),
    );
  };
  try {
    await Promise.race([gone, forward()]);
  } finally {
    client.resume();
    client.close(1000);
    dialer.close();
  }
}
