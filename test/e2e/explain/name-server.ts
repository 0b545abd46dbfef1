// A small DNS server for tests: what a cluster's would answer, by a table of names. The wire is dns-packet's.

import { createSocket, type Socket } from 'node:dgram';
import { type Answer, decode, encode, RECURSION_DESIRED } from 'dns-packet';

/** NXDOMAIN and SERVFAIL of RFC 1035, as dns-packet has them in the flags. */
const NXDOMAIN = 3;
const SERVFAIL = 2;

/** The addresses of a name; `failure` for one that the server cannot find out. */
export type Names = ReadonlyMap<string, readonly string[] | 'failure'>;

export interface NameServer {
  /** Changed by the test at any time. */
  names: Names;
  close(): void;
}

function answerTo(question: Buffer, names: Names): Buffer {
  const { id = 0, questions = [] } = decode(question);
  const name = questions[0]?.name.toLowerCase() ?? '';
  const found = names.get(name);
  const answers = (Array.isArray(found) ? found : []).map((data): Answer => ({ type: 'A', name, ttl: 1, data }));
  const code = found === undefined ? NXDOMAIN : found === 'failure' ? SERVFAIL : 0;
  return encode({ type: 'response', id, flags: RECURSION_DESIRED | code, questions, answers });
}

/** Serves over UDP on these addresses and ports. */
export async function startNameServer(
  places: readonly { readonly address: string; readonly port: number }[],
): Promise<NameServer> {
  const sockets: Socket[] = [];
  const server: NameServer = {
    names: new Map(),
    close: () => {
      for (const socket of sockets) socket.close();
    },
  };
  for (const { address, port } of places) {
    const socket = createSocket('udp4');
    socket.on('message', (question, from) => socket.send(answerTo(question, server.names), from.port, from.address));
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind(port, address, resolve);
    });
    sockets.push(socket);
  }
  return server;
}
