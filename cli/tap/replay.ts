// `nodelet tap replay`: serves CRI from a recording, without containers. What it cannot answer it refuses by name.

import { randomBytes } from 'node:crypto';
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { type Clock, systemClock, type Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { listenOnSocket } from '../../lib/unix-socket.ts';
import { MessageReader } from './grpc-messages.ts';
import { CallResponse, createCallServer, failCall } from './http2-calls.ts';
import { loadRecording } from './recording.ts';
import { type ReplayAnswer, ReplayPlan, type StreamMessage } from './replay-plan.ts';
import { loadSchema } from './schema.ts';

export interface ReplayServerOptions {
  readonly recording: string;
  /** Path of a unix socket. */
  readonly listen: string;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

/** Messages of streams that wait for a call of the client. */
interface OpenStream {
  readonly response: CallResponse;
  readonly timers: Set<Timer>;
  waiting: readonly StreamMessage[];
}

export class ReplayServer {
  readonly #options: ReplayServerOptions;
  readonly #clock: Clock;
  readonly #server: Http2Server = createCallServer();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #streams = new Set<OpenStream>();
  readonly #refused = new Set<string>();
  #plan: ReplayPlan | undefined;

  constructor(options: ReplayServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Rejects with UserError for what is no recording, and for a socket that is taken. */
  async listen(): Promise<void> {
    const { recording, listen, log } = this.#options;
    const { calls, info } = await loadRecording(recording);
    for (const problem of info.problems) log(`note: ${problem}`);
    const plan = new ReplayPlan(calls, {
      schema: loadSchema(),
      now: () => this.#clock.monotonic(),
      newId: () => randomBytes(32).toString('hex'),
    });
    this.#plan = plan;
    this.#server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      session.on('error', (error) => log(`a client's connection failed: ${errorMessage(error)}`));
    });
    this.#server.on('stream', (stream, headers) => this.#serve(stream, headers[':path'] ?? '', plan));
    await listenOnSocket(this.#server, listen);
    this.#server.on('error', (error) => log(`cannot take a connection: ${errorMessage(error)}`));
    log(`${calls.length} calls of ${recording} are replayed on unix://${listen}`);
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(stream: ServerHttp2Stream, method: string, plan: ReplayPlan): void {
    const reader = new MessageReader();
    let request: Buffer | undefined;
    // An error ends the stream, which is what matters.
    stream.on('error', () => undefined);
    stream.on('data', (part: Buffer) => {
      request ??= reader.push(part)[0];
    });
    stream.on('end', () => this.#answer(stream, plan.answer(method, request ?? Buffer.alloc(0))));
  }

  #answer(stream: ServerHttp2Stream, answer: ReplayAnswer): void {
    if (answer.kind === 'refused') {
      if (!this.#refused.has(answer.message)) this.#options.log(`refused: ${answer.message}`);
      this.#refused.add(answer.message);
      failCall(stream, answer.status, answer.message);
      return;
    }
    // The call may have moved the recording on: events that follow it are due.
    this.#sendDue();
    if (answer.kind === 'stream') {
      this.#open(stream, answer.messages);
      return;
    }
    const timer = this.#clock.after(answer.delayMs, () => {
      if (stream.destroyed) return;
      if (answer.response === undefined) {
        failCall(stream, answer.status, answer.message);
        return;
      }
      const response = new CallResponse(stream);
      response.write(answer.response);
      response.end(answer.status, answer.message);
    });
    stream.once('close', () => timer.cancel());
  }

  #open(stream: ServerHttp2Stream, messages: readonly StreamMessage[]): void {
    const now = this.#clock.monotonic();
    const isPast = ({ after, delayMs }: StreamMessage): boolean => {
      const at = after === undefined ? undefined : this.#plan?.matchedAt(after);
      return at !== undefined && at + delayMs < now;
    };
    const open: OpenStream = {
      response: new CallResponse(stream),
      timers: new Set(),
      waiting: messages.filter((message) => message.after !== undefined && !isPast(message)),
    };
    this.#streams.add(open);
    stream.once('close', () => {
      this.#streams.delete(open);
      for (const timer of open.timers) timer.cancel();
    });
    for (const message of messages) if (message.after === undefined) this.#send(open, message, message.delayMs);
    this.#sendDue();
  }

  #sendDue(): void {
    const now = this.#clock.monotonic();
    for (const open of this.#streams) {
      const matched = open.waiting.map((message) => this.#plan?.matchedAt(message.after ?? -1));
      for (const [index, message] of open.waiting.entries()) {
        const at = matched[index];
        if (at !== undefined) this.#send(open, message, Math.max(0, at + message.delayMs - now));
      }
      open.waiting = open.waiting.filter((_, index) => matched[index] === undefined);
    }
  }

  #send(open: OpenStream, message: StreamMessage, delayMs: number): void {
    const timer = this.#clock.after(delayMs, () => {
      open.timers.delete(timer);
      open.response.write(message.bytes);
    });
    open.timers.add(timer);
  }
}
