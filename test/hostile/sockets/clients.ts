// The hostile clients of the campaign `sockets`: each speaks one kind of nonsense to an HTTPS server on this machine, and
// then leaves its side of the connection open. None of them has a credential.

import type { Socket } from 'node:net';
import { type Client, dial, dialPlain } from '../../support/tls-clients.ts';
import type { Random } from '../random.ts';

type Hostile = Client<Socket>;
type Kind = (port: number, random: Random) => Promise<Hostile>;

function head(method: string, path: string, ...headers: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n');
}

const PATHS = ['/api/v1/secrets', '/api/v1/namespaces/default/configmaps', '/pods', '/exec/demo/web/c', '/'] as const;

function garbage(random: Random, most: number): Buffer {
  return Buffer.from(Array.from({ length: 1 + random.below(most) }, () => random.below(256)));
}

/** The beginning of a ClientHello that promises more bytes than come. */
function halfHandshake(random: Random): Buffer {
  return Buffer.concat([Buffer.from([0x16, 3, 1, 1 + random.below(60), 0, 1, 0]), garbage(random, 200)]);
}

const KINDS: Readonly<Record<string, Kind>> = {
  silent: (port) => dialPlain(port),
  garbage: async (port, random) => (await dialPlain(port)).send(garbage(random, 5000)),
  halfHandshake: async (port, random) => (await dialPlain(port)).send(halfHandshake(random)),
  resetHandshake: async (port, random) => {
    const client = (await dialPlain(port)).send(halfHandshake(random));
    client.socket.resetAndDestroy();
    return client;
  },
  plainHttp: async (port, random) => (await dialPlain(port)).send(head('GET', random.pick(PATHS))),
  noRequest: (port) => dial(port),
  halfHead: async (port, random) => {
    const whole = head('GET', random.pick(PATHS), `X-Long: ${'x'.repeat(random.below(4000))}`);
    return (await dial(port)).send(whole.slice(0, random.below(whole.length - 4)));
  },
  hugeHead: async (port, random) =>
    (await dial(port)).send(head('GET', random.pick(PATHS), `X-Long: ${'x'.repeat(100_000)}`)),
  badHead: async (port, random) => (await dial(port)).send(`G\u0000T ${random.pick(PATHS)}\r\n\r\n`),
  upgrade: async (port, random) => {
    const protocol = random.pick(['SPDY/3.1', 'websocket', 'h2c', 'x'.repeat(100)]);
    const request = head('POST', random.pick(PATHS), 'Connection: Upgrade', `Upgrade: ${protocol}`);
    return (await dial(port)).send(request).send(garbage(random, 20_000));
  },
  body: async (port, random) => {
    const bytes = Buffer.alloc(1 + random.below(3 * 1024 * 1024), 'x');
    return (await dial(port)).send(head('POST', random.pick(PATHS), `Content-Length: ${bytes.length}`)).send(bytes);
  },
  slowBody: async (port, random) => {
    const client = (await dial(port)).send(head('PUT', random.pick(PATHS), 'Content-Length: 1000000'));
    const drip = setInterval(() => client.send('x'), 50);
    void client.ended.then(() => clearInterval(drip));
    return client;
  },
  badChunks: async (port, random) =>
    (await dial(port))
      .send(head('POST', random.pick(PATHS), 'Transfer-Encoding: chunked'))
      .send(`${random.pick(['ffffffffffff', 'zz', '-1', '5'])}\r\nxx`),
  expect: async (port, random) =>
    (await dial(port)).send(head('POST', random.pick(PATHS), 'Expect: 100-continue', 'Content-Length: 1000')),
  pipeline: async (port, random) =>
    (await dial(port)).send(head('GET', random.pick(PATHS)).repeat(2 + random.below(1000))),
  idle: async (port, random) => (await dial(port)).send(head('GET', random.pick(PATHS))),
  halfClosed: async (port, random) => {
    const client = (await dial(port)).send(head('GET', random.pick(PATHS)));
    client.socket.end();
    return client;
  },
  deaf: async (port, random) => {
    const client = await dial(port);
    client.socket.pause();
    return client.send(head('GET', random.pick(PATHS)).repeat(100));
  },
};

export interface Attempt {
  readonly kind: string;
  /** Undefined when the server ended the connection before there was one. */
  readonly client: Hostile | undefined;
}

/** One client of a random kind. Never rejects. */
export async function attempt(port: number, random: Random): Promise<Attempt> {
  const names = Object.keys(KINDS);
  const kind = names[random.below(names.length)] ?? '';
  try {
    return { kind, client: await KINDS[kind]?.(port, random) };
  } catch (error) {
    // Pushed out during the handshake, for one.
    if (error instanceof Error) return { kind, client: undefined };
    throw error;
  }
}
