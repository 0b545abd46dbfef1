// The sockets on which questions come: UDP and TCP of one address and port. What answers can be exchanged while they are open.

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, isIPv6, type Server, type Socket as TcpSocket } from 'node:net';
import { errorMessage } from '../../lib/errors.ts';
import type { Answerer } from './answer.ts';

/** Of questions that wait while others are answered. Bytes. */
const RECEIVE_BUFFER = 1024 * 1024;
const MOST_CONNECTIONS = 512;
/** A TCP client that sends nothing for so long, ms. */
const IDLE_MS = 10_000;

export interface Listener {
  readonly address: string;
  readonly port: number;
  /** What answers from now on. */
  answerer: Answerer;
  close(): void;
}

interface Shared {
  answerer: Answerer;
  readonly log: (level: 'info' | 'error', message: string) => void;
}

/** Rejects where the address is not there, or taken. */
function openUdp(address: string, port: number, shared: Shared): Promise<UdpSocket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BUFFER });
  socket.on('message', (bytes, from) => {
    const client = { transport: 'udp', address: from.address, port: from.port } as const;
    void shared.answerer.answer(bytes, client).then((reply) => {
      // A client that is gone, or to which there is no way back, is none of the others' concern.
      if (reply !== undefined && isOpen) socket.send(reply, from.port, from.address, () => undefined);
    });
  });
  let isOpen = true;
  socket.once('close', () => {
    isOpen = false;
  });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address, port, exclusive: true }, () => {
      socket.off('error', reject);
      socket.on('error', (error) => shared.log('error', `udp ${address}:${port}: ${errorMessage(error)}`));
      resolve(socket);
    });
  });
}

/** One connection: its questions are answered one after the other, so that it cannot have many under way. */
function serveConnection(socket: TcpSocket, shared: Shared): void {
  const client = { transport: 'tcp', address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 } as const;
  let read: Buffer = Buffer.alloc(0);
  let isBusy = false;
  const next = async (): Promise<void> => {
    isBusy = true;
    while (read.length >= 2 && read.length >= 2 + read.readUInt16BE(0) && !socket.destroyed) {
      const end = 2 + read.readUInt16BE(0);
      const bytes = read.subarray(2, end);
      read = read.subarray(end);
      const reply = await shared.answerer.answer(bytes, client);
      if (reply === undefined || socket.destroyed) {
        socket.destroy();
        return;
      }
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length);
      socket.write(Buffer.concat([length, reply]));
    }
    isBusy = false;
    socket.resume();
  };
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (data) => {
    read = Buffer.concat([read, data]);
    // What the client sends meanwhile stays in the kernel.
    socket.pause();
    if (!isBusy) void next();
  });
}

function openTcp(address: string, port: number, shared: Shared, sockets: Set<TcpSocket>): Promise<Server> {
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    serveConnection(socket, shared);
  });
  server.maxConnections = MOST_CONNECTIONS;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port, exclusive: true }, () => {
      server.off('error', reject);
      server.on('error', (error) => shared.log('error', `tcp ${address}:${port}: ${errorMessage(error)}`));
      resolve(server);
    });
  });
}

/** Port 0: any, the same for both. Rejects where one of them cannot be opened; then none is open. */
export async function listenAt(
  address: string,
  port: number,
  answerer: Answerer,
  log: Shared['log'],
): Promise<Listener> {
  const shared: Shared = { answerer, log };
  const sockets = new Set<TcpSocket>();
  const tcp = await openTcp(address, port, shared, sockets);
  const bound = tcp.address();
  const chosen = typeof bound === 'object' && bound !== null ? bound.port : port;
  try {
    const udp = await openUdp(address, chosen, shared);
    return {
      address,
      port: chosen,
      get answerer() {
        return shared.answerer;
      },
      set answerer(next: Answerer) {
        shared.answerer = next;
      },
      close: () => {
        udp.close();
        tcp.close();
        for (const socket of sockets) socket.destroy();
      },
    };
  } catch (error) {
    tcp.close();
    throw error;
  }
}
