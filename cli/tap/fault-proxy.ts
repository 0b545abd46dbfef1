// `nodelet tap fault`: a proxy that takes calls apart, so that it can delay, fail, drop, duplicate or hang them by rule. All
// other calls pass with their metadata, bytes, status and trailers. A client's connection has one of its own to the runtime.

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { listenOnSocket } from '../../lib/unix-socket.ts';
import { type CallObserver, type CallSink, endOf } from './calls.ts';
import { decodeOrShow } from './decoded.ts';
import { eventIn } from './events.ts';
import { type FaultDecision, FaultEngine, type FaultRules } from './fault-rules.ts';
import { frameMessage, MessageReader } from './grpc-messages.ts';
import { createCallServer, failCall, metadataOf } from './http2-calls.ts';
import { Names } from './names.ts';
import { loadSchema, type MethodType } from './schema.ts';
import type { JsonMessage } from './wire.ts';

export interface FaultProxyOptions {
  readonly listen: string;
  readonly to: string;
  readonly faults: FaultRules;
  readonly sink?: CallSink | undefined;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

interface Client {
  readonly id: number;
  readonly runtime: ClientHttp2Session;
}

export class FaultProxy {
  readonly #options: FaultProxyOptions;
  readonly #clock: Clock;
  readonly #server: Http2Server;
  #engine: FaultEngine;
  readonly #names = new Names();
  readonly #schema = loadSchema();
  readonly #clients = new Map<ServerHttp2Stream['session'], Client>();
  #connections = 0;

  constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#engine = new FaultEngine(options.faults);
    this.#server = createCallServer();
    this.#server.on('session', (session) => this.#accept(session));
    this.#server.on('stream', (stream, headers) => this.#serve(stream, headers));
  }

  async listen(): Promise<void> {
    await listenOnSocket(this.#server, this.#options.listen);
    this.#server.on('error', (error) => this.#options.log(`cannot take a connection: ${errorMessage(error)}`));
  }

  /** Other rules from now on, whose counts begin anew. A call that was decided before keeps its fault. */
  setFaults(faults: FaultRules): void {
    this.#engine = new FaultEngine(faults);
  }

  async close(): Promise<void> {
    for (const session of this.#clients.keys()) session?.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(session: ServerHttp2Session): void {
    const { to, log } = this.#options;
    const runtime = connect('http://localhost', { createConnection: () => connectSocket(to) });
    this.#clients.set(session, { id: ++this.#connections, runtime });
    // A runtime that is away is seen by the client as what it is: a connection that ends.
    runtime.on('error', (error) => log(`the connection to ${to} failed: ${errorMessage(error)}`));
    runtime.on('close', () => session.destroy());
    session.on('error', (error) => log(`a client's connection failed: ${errorMessage(error)}`));
    session.on('close', () => {
      this.#clients.delete(session);
      runtime.destroy();
    });
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const client = this.#clients.get(stream.session);
    if (client === undefined) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const method = headers[':path'] ?? '';
    const observer = this.#options.sink?.begin(client.id, method, metadataOf(headers));
    // Errors of a stream also emit "close".
    stream.on('error', () => undefined);
    const type = this.#schema.method(method);
    let about = '';
    const onDropped = (): void => this.#options.log(`${about}: the runtime has answered`);
    const call = new FaultyCall({
      ...{ stream, headers, client, observer, type, onDropped },
      loses: (message) => type !== undefined && this.#loses(message, type),
    });
    const decide = (request: JsonMessage | undefined): FaultDecision => {
      const decision = this.#decide(method, type, request);
      about = this.#describe(method, type, request);
      if (decision.rules.length > 0) {
        const what = decision.effect.kind === 'pass' ? '' : ` ${decision.effect.kind}`;
        const delay = decision.delayMs === 0 ? '' : ` delay ${decision.delayMs} ms`;
        this.#options.log(`${about}:${delay}${what} (${decision.rules.join(', ')})`);
      }
      return decision;
    };
    call.start(decide, this.#clock, this.#names);
  }

  /** "StartContainer default/web main" */
  #describe(method: string, type: MethodType | undefined, request: JsonMessage | undefined): string {
    const { pod, container } = this.#names.subject(request);
    const about = [pod, container].filter((each) => each !== undefined).join(' ');
    return `${type?.name ?? method} ${about === '' ? '-' : about}`;
  }

  #loses(message: Buffer, type: MethodType): boolean {
    const event = eventIn(message, type, this.#names);
    const rule = event === undefined ? undefined : this.#engine.loses(event);
    if (event === undefined || rule === undefined) return false;
    const { pod, container } = event.subject;
    this.#options.log(
      `event ${event.event} ${pod ?? '-'}${container === undefined ? '' : ` ${container}`}: drop (${rule})`,
    );
    return true;
  }

  #decide(method: string, type: MethodType | undefined, request: JsonMessage | undefined): FaultDecision {
    const subject = this.#names.subject(request);
    return this.#engine.decide({ method, subject, responseStream: type?.responseStream ?? false });
  }
}

interface CallParts {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly client: Client;
  readonly observer: CallObserver | undefined;
  readonly type: MethodType | undefined;
  /** The runtime has answered a call whose answer is dropped: it has done what there was to do. */
  readonly onDropped: () => void;
  /** Whether a message of a stream of events is lost. */
  readonly loses: (message: Buffer) => boolean;
}

type Decide = (request: JsonMessage | undefined) => FaultDecision;

class FaultyCall {
  readonly type: MethodType | undefined;
  readonly #parts: CallParts;
  #ended = false;

  constructor(parts: CallParts) {
    this.#parts = parts;
    this.type = parts.type;
  }

  /** Waits for the first message of the request: a rule may ask for the pod in it. */
  start(decide: Decide, clock: Clock, names: Names): void {
    const { stream, observer, type } = this.#parts;
    const reader = new MessageReader();
    const waiting: Buffer[] = [];
    let runtime: ClientHttp2Stream | undefined;
    let request: JsonMessage | undefined;
    let decided = false;
    let acted = false;
    let requestEnded = false;
    const go = (): void => {
      if (decided) return;
      decided = true;
      const decision = decide(request);
      const act = (): void => {
        if (stream.destroyed) return;
        acted = true;
        runtime = this.#act(decision, request, names);
        for (const part of waiting.splice(0)) runtime?.write(part);
        if (requestEnded) runtime?.end();
        stream.resume();
      };
      if (decision.delayMs === 0) act();
      else {
        stream.pause();
        const timer = clock.after(decision.delayMs, act);
        stream.once('close', () => timer.cancel());
      }
    };
    stream.on('data', (part: Buffer) => {
      observer?.request(part);
      if (runtime !== undefined) {
        if (!runtime.write(part)) {
          stream.pause();
          runtime.once('drain', () => stream.resume());
        }
        return;
      }
      // Of a call that is not passed on nothing is kept.
      if (acted) return;
      waiting.push(part);
      if (decided) return;
      const [message] = reader.push(part);
      if (message !== undefined) {
        request = decodeOrShow(message, type?.request);
        go();
      }
    });
    stream.on('end', () => {
      requestEnded = true;
      observer?.requestEnd();
      go();
      runtime?.end();
    });
    stream.on('close', () => {
      this.#end({ kind: 'reset', by: 'client', code: stream.rstCode });
      runtime?.close(constants.NGHTTP2_CANCEL);
    });
  }

  #end(end: Parameters<CallObserver['end']>[0]): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#parts.observer?.end(end);
  }

  #act({ effect }: FaultDecision, request: JsonMessage | undefined, names: Names): ClientHttp2Stream | undefined {
    const { stream, client, headers } = this.#parts;
    if (effect.kind === 'hang') return undefined;
    if (effect.kind === 'fail') {
      this.#end({ kind: 'status', status: effect.status, message: effect.message, trailers: [] });
      failCall(stream, effect.status, effect.message);
      return undefined;
    }
    const runtime = client.runtime.request({ ...headers }, { endStream: false });
    runtime.on('error', () => undefined);
    if (effect.kind === 'drop') runtime.on('end', this.#parts.onDropped).resume();
    else this.#answer(runtime, effect.kind === 'duplicate' ? effect.times : 0, request, names);
    return runtime;
  }

  #answer(runtime: ClientHttp2Stream, duplicates: number, request: JsonMessage | undefined, names: Names): void {
    const { stream, observer, type, loses } = this.#parts;
    const isStream = type?.responseStream === true;
    const reader = new MessageReader();
    let trailers: IncomingHttpHeaders = {};
    runtime.on('response', (headers, flags) => {
      if (stream.destroyed) return;
      if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
        this.#end(endOf(metadataOf(headers)));
        stream.respond({ ...headers }, { endStream: true });
        return;
      }
      observer?.headers(metadataOf(headers));
      stream.respond({ ...headers }, { waitForTrailers: true });
      stream.once('wantTrailers', () => {
        this.#end(endOf(metadataOf(trailers)));
        stream.sendTrailers({ ...trailers });
      });
    });
    const pass = (bytes: Buffer): void => {
      observer?.response(bytes);
      if (stream.destroyed || stream.write(bytes)) return;
      runtime.pause();
      stream.once('drain', () => runtime.resume());
    };
    runtime.on('data', (part: Buffer) => {
      const messages = type === undefined ? [] : reader.push(part);
      for (const message of messages) names.learn(type?.name ?? '', request, decodeOrShow(message, type?.response));
      const kept = isStream ? messages.filter((message) => !loses(message)) : messages;
      // A message of a stream is passed on when it has come whole: whose it is shows then alone.
      if (isStream)
        for (const message of kept) for (let copy = 0; copy <= duplicates; copy++) pass(frameMessage(message));
      else pass(part);
    });
    runtime.on('trailers', (fields) => {
      trailers = fields;
    });
    runtime.on('end', () => {
      if (!stream.destroyed && stream.headersSent && !stream.writableEnded) stream.end();
    });
    runtime.on('close', () => {
      const { rstCode } = runtime;
      if (rstCode === constants.NGHTTP2_NO_ERROR) return;
      this.#end({ kind: 'reset', by: 'server', code: rstCode });
      if (!stream.destroyed) stream.close(rstCode);
    });
  }
}
