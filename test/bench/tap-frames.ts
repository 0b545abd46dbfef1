// A client and a server for measuring `nodelet tap` that take as little processor time as they can: frames that are prepared once,
// and of what comes only the headers of frames are read. So the tap is what ends the growth of calls a second, and not the pair.

import { connect, createServer, type Socket } from 'node:net';

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const PING = 6;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const HEADER_BYTES = 9;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
/** Room for every byte of a run: no more has to be granted. */
const WINDOW = 0x7fff_ffff - 65_535;

function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

const windowUpdate = (): Buffer => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(WINDOW);
  return frame(WINDOW_UPDATE, 0, 0, payload);
};

/** HPACK: a literal that enters the table, by the index of its name in the static table; 0 with a new name. */
function literal(index: number, value: string, name = ''): Buffer {
  const text = (each: string): Buffer => Buffer.concat([Buffer.of(each.length), Buffer.from(each, 'latin1')]);
  return Buffer.concat([Buffer.of(0x40 | index), ...(index === 0 ? [text(name)] : []), text(value)]);
}

/** Calls `onFrame` for every frame of a connection; answers what HTTP/2 wants answered. */
function readFrames(
  socket: Socket,
  preface: number,
  onFrame: (type: number, flags: number, stream: number) => void,
): void {
  let rest = Buffer.alloc(0);
  let skip = preface;
  socket.on('data', (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = skip;
    while (at + HEADER_BYTES <= bytes.length) {
      const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
      const [type, flags] = [bytes[at + 3] ?? 0, bytes[at + 4] ?? 0];
      // The payload of a PING is needed; of all others that it has come.
      if (end > bytes.length) break;
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0));
      else if (type === PING && (flags & ACK) === 0)
        socket.write(frame(PING, ACK, 0, bytes.subarray(at + HEADER_BYTES, end)));
      else onFrame(type, flags, bytes.readUInt32BE(at + 5));
      at = end;
    }
    skip = Math.max(0, at - bytes.length);
    rest = Buffer.from(bytes.subarray(Math.min(at, bytes.length)));
  });
}

/** What is written in one turn of the event loop goes out together. */
function batched(socket: Socket): (parts: readonly Buffer[]) => void {
  let corked = false;
  return (parts) => {
    if (!corked) {
      corked = true;
      socket.cork();
      setImmediate(() => {
        corked = false;
        socket.uncork();
      });
    }
    for (const part of parts) socket.write(part);
  };
}

/** Answers every unary call with a message of `body`. */
export function serveFrames(path: string, body: Buffer, onListening: () => void): void {
  const responseHeaders = Buffer.concat([Buffer.of(0x88), literal(31, 'application/grpc')]);
  const trailers = literal(0, '0', 'grpc-status');
  createServer((socket) => {
    // A client that goes away is the end of its calls, and no more.
    socket.on('error', () => socket.destroy());
    socket.write(Buffer.concat([frame(SETTINGS, 0, 0), windowUpdate()]));
    const write = batched(socket);
    let first = true;
    readFrames(socket, PREFACE.length, (type, flags, stream) => {
      if (type !== DATA || (flags & END_STREAM) === 0) return;
      write([
        // The newest entry of the table has the index 62.
        frame(HEADERS, END_HEADERS, stream, first ? responseHeaders : Buffer.of(0x88, 0x80 | 63)),
        frame(DATA, 0, stream, body),
        frame(HEADERS, END_HEADERS | END_STREAM, stream, first ? trailers : Buffer.of(0x80 | 62)),
      ]);
      first = false;
    });
  }).listen(path, onListening);
}

export interface FramesClient {
  readonly call: () => Promise<void>;
  readonly close: () => void;
}

/** Makes a unary call of `method` with a message of `body`; many may be under way. */
export async function connectFrames(path: string, method: string, body: Buffer): Promise<FramesClient> {
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(path, () => resolve(opened));
    opened.once('error', reject);
  });
  const firstHeaders = Buffer.concat([
    Buffer.of(0x83, 0x86),
    literal(4, method),
    literal(1, 'localhost'),
    literal(31, 'application/grpc'),
    literal(0, 'trailers', 'te'),
  ]);
  const headers = Buffer.of(0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62);
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), windowUpdate()]));
  const write = batched(socket);
  const waiting = new Map<number, () => void>();
  readFrames(socket, 0, (type, flags, stream) => {
    if (type !== HEADERS || (flags & END_STREAM) === 0) return;
    waiting.get(stream)?.();
    waiting.delete(stream);
  });
  let last = -1;
  const call = (): Promise<void> =>
    new Promise((resolve) => {
      const first = last < 0;
      last += 2;
      waiting.set(last, resolve);
      write([frame(HEADERS, END_HEADERS, last, first ? firstHeaders : headers), frame(DATA, END_STREAM, last, body)]);
    });
  return { call, close: () => socket.end() };
}
