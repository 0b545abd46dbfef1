// Connections to one upstream: a socket has one question under way, is used again by the next one, and is closed when it has been
// idle for a while. What comes back is for the question that was sent, or is left alone.

import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { connect, isIPv6, type Socket as TcpSocket } from 'node:net';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Upstream } from '../corefile/settings.ts';
import type { Transport } from '../wire/finish.ts';
import { HEADER_BYTES } from '../wire/message.ts';

const MAX_MESSAGE = 65_535;

/** The other side has closed a connection that was idle: another one may do. */
export class IdleClosedError extends Error {
  override name = 'IdleClosedError';
}

/** One socket. Its `exchange` is called for one question at a time. */
interface Connection {
  /** Resolves to the answer with the id of the question. Rejects when nothing came in time, and when the socket fails. */
  exchange(query: Buffer, timeoutMs: number): Promise<Buffer>;
  close(): void;
  readonly isOpen: boolean;
}

interface Waiting {
  readonly id: number;
  readonly resolve: (answer: Buffer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer;
}

/** What UDP and TCP have in common: one question that waits for its answer. */
abstract class OneQuestion implements Connection {
  readonly #clock: Clock;
  readonly #name: string;
  #waiting: Waiting | undefined;
  #isOpen = true;
  #answers = 0;

  constructor(clock: Clock, name: string) {
    this.#clock = clock;
    this.#name = name;
  }

  protected abstract write(query: Buffer): void;
  protected abstract end(): void;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  exchange(query: Buffer, timeoutMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(timeoutMs, () => this.fail(new Error(`read ${this.#name}: i/o timeout`)));
      this.#waiting = { id: query.readUInt16BE(0), resolve, reject, timer };
      this.write(query);
    });
  }

  protected received(answer: Buffer): void {
    const waiting = this.#waiting;
    if (waiting === undefined || answer.length < HEADER_BYTES || answer.readUInt16BE(0) !== waiting.id) return;
    this.#waiting = undefined;
    this.#answers++;
    waiting.timer.cancel();
    waiting.resolve(answer);
  }

  /** The other side has ended it. Before the first answer that is its answer; after one, it was idle. */
  protected broken(error: Error): void {
    this.fail(this.#answers > 0 ? new IdleClosedError(`${this.#name} was closed: ${error.message}`) : error);
  }

  /** What is under way fails, and the socket is not used again: a late answer cannot come to another question. */
  protected fail(error: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.close();
    waiting?.timer.cancel();
    waiting?.reject(error);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.end();
  }
}

class UdpConnection extends OneQuestion {
  readonly #socket: UdpSocket;
  #isConnected = false;

  constructor(clock: Clock, { address, port }: Upstream) {
    super(clock, `udp ${address}:${port}`);
    this.#socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    this.#socket.on('message', (answer) => this.received(answer));
    this.#socket.on('error', (error) => this.fail(error));
    this.#socket.once('connect', () => {
      this.#isConnected = true;
    });
    // Connected: the kernel drops what others send, and reports a port on which nothing listens.
    this.#socket.connect(port, address);
    this.#socket.unref();
  }

  protected write(query: Buffer): void {
    const send = (): void => this.#socket.send(query, (error) => error !== null && this.fail(error));
    if (this.#isConnected) send();
    else this.#socket.once('connect', () => this.isOpen && send());
  }
  protected end(): void {
    this.#socket.close();
  }
}

class TcpConnection extends OneQuestion {
  readonly #socket: TcpSocket;
  #read: Buffer = Buffer.alloc(0);

  constructor(clock: Clock, { address, port }: Upstream) {
    super(clock, `tcp ${address}:${port}`);
    this.#socket = connect({ host: address, port, noDelay: true });
    this.#socket.on('data', (data) => this.#take(data));
    this.#socket.on('error', (error) => this.broken(error));
    this.#socket.on('close', () => this.broken(new Error('EOF')));
    this.#socket.unref();
  }

  #take(data: Buffer): void {
    this.#read = Buffer.concat([this.#read, data]);
    while (this.#read.length >= 2) {
      const end = 2 + this.#read.readUInt16BE(0);
      if (this.#read.length < end) return;
      const answer = this.#read.subarray(2, end);
      this.#read = this.#read.subarray(end);
      this.received(answer);
    }
  }

  protected write(query: Buffer): void {
    if (query.length > MAX_MESSAGE) throw new Error('the question is too long for TCP');
    const length = Buffer.alloc(2);
    length.writeUInt16BE(query.length);
    this.#socket.write(Buffer.concat([length, query]));
  }
  protected end(): void {
    this.#socket.destroy();
  }
}

interface Idle {
  readonly connection: Connection;
  readonly timer: Timer;
}

export interface PoolCounts {
  reused(transport: Transport): void;
  opened(transport: Transport): void;
}

export interface PoolOptions {
  readonly clock: Clock;
  readonly expireMs: number;
  /** 0: as many as there are. */
  readonly maxIdle: number;
  readonly counts: PoolCounts;
}

/** The connections to one upstream. */
export class ConnectionPool {
  readonly #upstream: Upstream;
  readonly #options: PoolOptions;
  readonly #idle: Readonly<Record<Transport, Idle[]>> = { udp: [], tcp: [] };
  #closed = false;

  constructor(upstream: Upstream, options: PoolOptions) {
    this.#upstream = upstream;
    this.#options = options;
  }

  /** Rejects as the connection does; with IdleClosedError where another try has a new one. */
  async exchange(query: Buffer, transport: Transport, timeoutMs: number): Promise<Buffer> {
    const connection = this.#take(transport);
    const answer = await connection.exchange(query, timeoutMs);
    this.#giveBack(transport, connection);
    return answer;
  }

  #take(transport: Transport): Connection {
    const { clock, counts } = this.#options;
    for (let idle = this.#idle[transport].pop(); idle !== undefined; idle = this.#idle[transport].pop()) {
      idle.timer.cancel();
      if (!idle.connection.isOpen) continue;
      counts.reused(transport);
      return idle.connection;
    }
    counts.opened(transport);
    return transport === 'udp' ? new UdpConnection(clock, this.#upstream) : new TcpConnection(clock, this.#upstream);
  }

  #giveBack(transport: Transport, connection: Connection): void {
    const { clock, expireMs, maxIdle } = this.#options;
    const all = this.#idle[transport];
    if (this.#closed || (maxIdle > 0 && all.length >= maxIdle)) {
      connection.close();
      return;
    }
    const idle: Idle = {
      connection,
      timer: clock.after(expireMs, () => {
        const place = all.indexOf(idle);
        if (place !== -1) all.splice(place, 1);
        connection.close();
      }),
    };
    all.push(idle);
  }

  /** Idle connections are closed now, others when they have their answer. */
  close(): void {
    this.#closed = true;
    for (const transport of ['udp', 'tcp'] as const) {
      for (const { connection, timer } of this.#idle[transport].splice(0)) {
        timer.cancel();
        connection.close();
      }
    }
  }
}
