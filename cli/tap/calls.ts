// From the frames of a connection's two directions to gRPC calls: begin, bytes of requests and responses, end. It knows
// nothing of messages, and holds nothing of a call's bytes.

import { errorMessage } from '../../lib/errors.ts';
import { type FrameHandler, FrameReader } from './frames.ts';
import type { HeaderField } from './hpack.ts';

export type Metadata = readonly HeaderField[];

/** How a call came to its end. */
export type CallEnd =
  /** The server's trailers. `status` is gRPC's code; undefined where the server sent none, as one that is not gRPC. */
  | {
      readonly kind: 'status';
      readonly status: number | undefined;
      readonly message: string;
      readonly trailers: Metadata;
    }
  /** RST_STREAM; a client's is a cancelled call. `code` is HTTP/2's. */
  | { readonly kind: 'reset'; readonly by: 'client' | 'server'; readonly code: number }
  /** The connection ended first, or could not be read any further. */
  | { readonly kind: 'connection'; readonly why: string };

export interface CallObserver {
  request(bytes: Buffer): void;
  requestEnd(): void;
  /** The server's initial metadata, which a call without any response message lacks. */
  headers(metadata: Metadata): void;
  response(bytes: Buffer): void;
  /** Once, and the last. */
  end(end: CallEnd): void;
}

export interface CallSink {
  /** `method` is the path: "/runtime.v1.RuntimeService/Version". */
  begin(connection: number, method: string, metadata: Metadata): CallObserver;
  /** Calls of this connection are not observed any more; its bytes still pass. */
  unreadable(connection: number, why: string): void;
}

function fieldValue(fields: Metadata, name: string): string | undefined {
  return fields.find(([each]) => each === name)?.[1];
}

function withoutPseudo(fields: Metadata): Metadata {
  return fields.filter(([name]) => !name.startsWith(':'));
}

/** grpc-message as people read it: percent-encoded UTF-8; what is not is left as it came. */
export function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

/** What trailers say of a call's end. Pure. */
export function endOf(fields: Metadata): CallEnd {
  const status = fieldValue(fields, 'grpc-status');
  return {
    kind: 'status',
    status: status === undefined || !/^\d+$/.test(status) ? undefined : Number(status),
    message: decodeMessage(fieldValue(fields, 'grpc-message') ?? ''),
    trailers: withoutPseudo(fields).filter(([name]) => name !== 'grpc-status' && name !== 'grpc-message'),
  };
}

/** Reads along on one connection. Its methods never throw. */
export class ConnectionObserver {
  readonly #id: number;
  readonly #sink: CallSink;
  readonly #calls = new Map<number, CallObserver>();
  readonly #client: FrameReader;
  readonly #server: FrameReader;
  #readable = true;

  constructor(id: number, sink: CallSink) {
    this.#id = id;
    this.#sink = sink;
    this.#client = new FrameReader('client', this.#clientFrames());
    this.#server = new FrameReader('server', this.#serverFrames());
  }

  fromClient(chunk: Buffer): void {
    this.#read(this.#client, chunk, 'client');
  }

  fromServer(chunk: Buffer): void {
    this.#read(this.#server, chunk, 'server');
  }

  /** Ends the calls that are still open. */
  close(why: string): void {
    for (const call of this.#calls.values()) call.end({ kind: 'connection', why });
    this.#calls.clear();
    this.#readable = false;
  }

  #read(reader: FrameReader, chunk: Buffer, from: string): void {
    if (!this.#readable) return;
    try {
      reader.push(chunk);
    } catch (error) {
      // Whatever is wrong with what is read along must not touch the bytes that pass.
      const why = `what the ${from} sends cannot be read: ${errorMessage(error)}`;
      this.close(why);
      this.#sink.unreadable(this.#id, why);
    }
  }

  #clientFrames(): FrameHandler {
    return {
      headers: (stream, fields, endStream) => {
        let call = this.#calls.get(stream);
        const method = fieldValue(fields, ':path');
        // Without a path these are the trailers of a request.
        if (call === undefined && method !== undefined) {
          call = this.#sink.begin(this.#id, method, withoutPseudo(fields));
          this.#calls.set(stream, call);
        }
        if (endStream) call?.requestEnd();
      },
      data: (stream, bytes, endStream) => {
        const call = this.#calls.get(stream);
        if (bytes.length > 0) call?.request(bytes);
        if (endStream) call?.requestEnd();
      },
      reset: (stream, code) => this.#end(stream, { kind: 'reset', by: 'client', code }),
    };
  }

  #serverFrames(): FrameHandler {
    return {
      headers: (stream, fields, endStream) => {
        if (endStream) this.#end(stream, endOf(fields));
        else this.#calls.get(stream)?.headers(withoutPseudo(fields));
      },
      data: (stream, bytes, endStream) => {
        if (bytes.length > 0) this.#calls.get(stream)?.response(bytes);
        if (endStream) this.#end(stream, endOf([]));
      },
      reset: (stream, code) => this.#end(stream, { kind: 'reset', by: 'server', code }),
    };
  }

  #end(stream: number, end: CallEnd): void {
    const call = this.#calls.get(stream);
    this.#calls.delete(stream);
    call?.end(end);
  }
}
