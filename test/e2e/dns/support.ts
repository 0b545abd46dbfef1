// A DNS server in this process with real sockets, an upstream that answers what the test says, and a client.

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, createServer, type Server } from 'node:net';
import { type Answer, decode, encode, RECURSION_AVAILABLE, type RecordType } from 'dns-packet';
import { type Message, parseMessage, Type } from '../../../dns/wire/message.ts';
import { typeText } from '../../../dns/wire/names.ts';
import { makeQuery } from '../../../dns/wire/records.ts';
import { freePort } from '../support/ports.ts';

export const LOCAL = '127.0.0.1';

/** What an upstream answers to a name; `silent`: nothing, so that the client waits. */
export type Says =
  | { readonly answers?: readonly Answer[]; readonly rcode?: number; readonly truncated?: boolean }
  | 'silent';

const TRUNCATED = 0x0200;
const GIVE_UP_MS = 120_000;
const REPEAT_MS = 2000;

export class Upstream {
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  /** "udp A name" for each question, in order. */
  readonly questions: string[] = [];
  says: (name: string, type: RecordType, transport: 'udp' | 'tcp') => Says = () => ({ rcode: 3 });
  readonly port: number;

  private constructor(udp: UdpSocket, tcp: Server, port: number) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.port = port;
  }

  static async start(): Promise<Upstream> {
    // One that the kernel does not lend, of either protocol.
    const port = await freePort();
    const tcp = createServer();
    await new Promise<void>((resolve) => tcp.listen(port, LOCAL, resolve));
    const udp = createSocket('udp4');
    await new Promise<void>((resolve) => udp.bind(port, LOCAL, resolve));
    const upstream = new Upstream(udp, tcp, port);
    udp.on('message', (bytes, from) => {
      const reply = upstream.#answer(bytes, 'udp');
      if (reply !== undefined) udp.send(reply, from.port, from.address);
    });
    tcp.on('connection', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (data) => {
        const reply = upstream.#answer(data.subarray(2), 'tcp');
        if (reply !== undefined) socket.write(framed(reply));
      });
    });
    return upstream;
  }

  #answer(bytes: Buffer, transport: 'udp' | 'tcp'): Buffer | undefined {
    const { id = 0, questions = [] } = decode(bytes);
    const [question] = questions;
    if (question === undefined) return undefined;
    this.questions.push(`${transport} ${question.type} ${question.name}`);
    const found = this.says(question.name, question.type, transport);
    if (found === 'silent') return undefined;
    const { answers = [], rcode = 0, truncated = false } = found;
    const flags = RECURSION_AVAILABLE | rcode | (truncated ? TRUNCATED : 0);
    return encode({ type: 'response', id, flags, questions, answers: [...answers] });
  }

  close(): void {
    this.#udp.close();
    this.#tcp.close();
  }
}

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** The answer to these bytes, whatever they are. Rejects when nothing comes. `once`: the question is not sent again. */
export function exchange(
  port: number,
  bytes: Buffer,
  transport: 'udp' | 'tcp' = 'udp',
  { once = false } = {},
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('no answer'));
    const timer = setTimeout(fail, GIVE_UP_MS);
    const done = (answer: Buffer): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    if (transport === 'udp') {
      const socket = createSocket('udp4');
      const send = (): void => socket.send(bytes, port, LOCAL);
      // A packet may be lost in a flood: resolvers repeat theirs.
      const again = once ? undefined : setInterval(send, REPEAT_MS);
      socket.once('message', (answer) => {
        clearInterval(again);
        socket.close();
        done(answer);
      });
      send();
      return;
    }
    const socket = connect(port, LOCAL, () => socket.write(framed(bytes)));
    let read: Buffer = Buffer.alloc(0);
    socket.once('error', reject);
    socket.on('data', (data) => {
      read = Buffer.concat([read, data]);
      if (read.length < 2 || read.length < 2 + read.readUInt16BE(0)) return;
      socket.destroy();
      done(read.subarray(2));
    });
  });
}

const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];

/** "NOERROR A 10.0.0.1 A 10.0.0.2": the code and the data of the answers, sorted by type. */
export function shortly({ bytes, rcode }: Message): string {
  const answers = (decode(bytes).answers ?? []).map((answer) => {
    const data = 'data' in answer ? answer.data : '';
    return `${answer.type} ${typeof data === 'object' ? JSON.stringify(data) : data}`;
  });
  return [RCODES[rcode], ...answers].join(' ');
}

export async function ask(
  port: number,
  name: string,
  type: keyof typeof Type = 'A',
  transport: 'udp' | 'tcp' = 'udp',
): Promise<string> {
  const query = makeQuery(Math.floor(Math.random() * 65_536), name, Type[type]);
  const reply = parseMessage(await exchange(port, query, transport));
  if (reply.id !== query.readUInt16BE(0)) throw new Error(`another id for ${typeText(Type[type])} ${name}`);
  return shortly(reply);
}
