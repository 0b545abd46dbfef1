// Requests over HTTPS with as little work on this side as can be: bytes that are ready before the clock runs, one request at
// a time on each of some connections, and of a response no more than its code and its length. So that what is measured is
// the server.

import { connect, type TLSSocket } from 'node:tls';
import type { ClusterAccess } from '../../../client/kubeconfig.ts';

const CLOSED = 'the server closed the connection';
const HEAD_END = Buffer.from('\r\n\r\n');

export interface RequestParts {
  readonly method: string;
  readonly path: string;
  /** Default: application/json. */
  readonly type?: string;
  readonly body?: object | string;
  /** Of a caller other than the connection's. */
  readonly token?: string;
}

/** The bytes of a request. */
export function requestBytes({ method, path, type = 'application/json', body, token }: RequestParts): Buffer {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const length = body === undefined ? '' : `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  const caller = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  const head = `${method} ${path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\n${caller}${length}\r\n`;
  return Buffer.from(head + text);
}

/** A response's head as it is read here. Pure. Throws RangeError for one whose end is not known. */
export function readHead(head: string): { code: number; length: number | 'chunked' } {
  const code = Number(head.slice(9, 12));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return { code, length: Number(length) };
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return { code, length: 'chunked' };
  throw new RangeError(`a response without a length: ${head}`);
}

/** Finds the end of a body; each of them returns whether it has been reached. */
interface Body {
  take(bytes: Buffer): boolean;
}

class SizedBody implements Body {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  take(bytes: Buffer): boolean {
    this.#left -= bytes.length;
    return this.#left <= 0;
  }
}

const NEWLINE = 0x0a;

/** RFC 9112, section 7.1. Throws RangeError for what is no chunk. */
export class ChunkedBody implements Body {
  /** Of the chunk, with the line's end after it. */
  #left = 0;
  #line = '';
  #last = false;

  take(bytes: Buffer): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        continue;
      }
      const end = bytes.indexOf(NEWLINE, at);
      this.#line += bytes.toString('latin1', at, end < 0 ? bytes.length : end);
      if (end < 0) return false;
      at = end + 1;
      if (this.#endLine()) return true;
    }
    return false;
  }

  #endLine(): boolean {
    const line = this.#line.trim();
    this.#line = '';
    // After the last chunk come trailers and an empty line.
    if (this.#last) return line === '';
    const size = Number.parseInt(line, 16);
    if (Number.isNaN(size)) throw new RangeError(`not the size of a chunk: ${line}`);
    if (size === 0) this.#last = true;
    else this.#left = size + 2;
    return false;
  }
}

/** What is read of one response: its code, and where its body ends. */
interface Reading {
  readonly code: number;
  readonly body: Body;
}

class Connection {
  readonly #socket: TLSSocket;
  #head: Buffer = Buffer.alloc(0);
  #body: Buffer[] = [];
  #reading: Reading | undefined;
  #done: PromiseWithResolvers<void> | undefined;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      try {
        this.#read(chunk);
      } catch (error) {
        this.#done?.reject(error);
      }
    });
    socket.on('error', (error) => this.#done?.reject(error));
    socket.on('close', () => this.#done?.reject(new Error(CLOSED)));
  }

  /** Resolves when the whole response is there. Rejects for a failure, with its body. */
  send(bytes: Buffer): Promise<void> {
    if (this.#socket.destroyed || this.#socket.readableEnded) return Promise.reject(new Error(CLOSED));
    this.#done = Promise.withResolvers();
    this.#socket.write(bytes);
    return this.#done.promise;
  }

  close(): void {
    this.#done = undefined;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    let body = chunk;
    if (this.#reading === undefined) {
      const all = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = all.indexOf(HEAD_END);
      this.#head = all;
      if (end < 0) return;
      const { code, length } = readHead(all.toString('latin1', 0, end));
      this.#reading = { code, body: length === 'chunked' ? new ChunkedBody() : new SizedBody(length) };
      this.#head = Buffer.alloc(0);
      body = all.subarray(end + HEAD_END.length);
    }
    const { code } = this.#reading;
    if (code >= 300) this.#body.push(body);
    if (!this.#reading.body.take(body)) return;
    this.#reading = undefined;
    const failure = Buffer.concat(this.#body).toString();
    this.#body = [];
    if (code >= 300) this.#done?.reject(new Error(`${code}: ${failure}`));
    else this.#done?.resolve();
  }
}

/** Some connections to one server. */
export class Connections {
  readonly #all: readonly Connection[];
  readonly #free: Connection[];
  readonly #waiting: ((connection: Connection) => void)[] = [];

  private constructor(all: readonly Connection[]) {
    this.#all = all;
    this.#free = [...all];
  }

  static async open(access: ClusterAccess, count: number): Promise<Connections> {
    const { hostname, port } = new URL(access.server);
    const tls = { host: hostname, port: Number(port), ca: access.ca, cert: access.clientCert, key: access.clientKey };
    const one = (): Promise<Connection> =>
      new Promise((resolve, reject) => {
        const socket = connect(tls, () => {
          socket.off('error', reject);
          resolve(new Connection(socket));
        });
        socket.setNoDelay(true);
        socket.once('error', reject);
      });
    return new Connections(await Promise.all(Array.from({ length: count }, one)));
  }

  /**
   * Sends all of them, one at a time on each connection. Returns how long that took, ms; `times` gets the time of each
   * request in the order in which they ended. Rejects for the first failure.
   */
  async run(requests: readonly Buffer[], times?: number[]): Promise<number> {
    let next = 0;
    const began = performance.now();
    const worker = async (connection: Connection): Promise<void> => {
      for (let bytes = requests[next++]; bytes !== undefined; bytes = requests[next++]) {
        const sent = times === undefined ? 0 : performance.now();
        await connection.send(bytes);
        times?.push(performance.now() - sent);
      }
    };
    await Promise.all(this.#all.map(worker));
    return performance.now() - began;
  }

  /** Sends one on the connection that has been free for longest; not beside `run`. Returns how long it took, with the wait, ms. */
  async send(bytes: Buffer): Promise<number> {
    const began = performance.now();
    const connection = this.#free.shift() ?? (await new Promise<Connection>((resolve) => this.#waiting.push(resolve)));
    await connection.send(bytes);
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(connection);
    else next(connection);
    return performance.now() - began;
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }
}
