// A program that runs in a pod's network namespace, connects to ports of its loopback and hands each connection to its
// parent: Node itself cannot enter a namespace. It ends with its parent.

import { connect, type Socket } from 'node:net';

interface Request {
  readonly id: number;
  readonly port: number;
}

/** IPv4 first, as containerd does. */
const HOSTS = ['127.0.0.1', '::1'];

function dial(port: number, host: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true });
    // Nothing is read here: it would be lost to the parent.
    socket.pause();
    socket.once('error', reject);
    socket.once('connect', () => resolve(socket));
  });
}

async function serve({ id, port }: Request): Promise<void> {
  const failures: string[] = [];
  for (const host of HOSTS) {
    try {
      const socket = await dial(port, host);
      process.send?.({ id }, socket);
      return;
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  process.send?.({ id, error: failures.join(', ') });
}

process.on('message', (request: Request) => void serve(request));
process.on('disconnect', () => process.exit(0));
