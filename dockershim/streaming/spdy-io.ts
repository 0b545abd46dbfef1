// Exec's and attach's streams over SPDY: the client opens one for each of error, stdin, stdout, stderr and resize.

import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { parseSize, type RemoteIo, type TerminalSize } from './remote-io.ts';
import { SpdyServer, type SpdyServerStream } from './spdy-server.ts';

/** Kubelets give a client this long to open its streams. ms. */
const STREAMS_MS = 30_000;

export interface WantedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** The stream types that the client will open. Pure. */
export function streamTypes({ stdin, stdout, stderr, tty }: WantedStreams): readonly string[] {
  return [
    'error',
    ...(stdin ? ['stdin'] : []),
    ...(stdout ? ['stdout'] : []),
    ...(stderr && !tty ? ['stderr'] : []),
    ...(tty ? ['resize'] : []),
  ];
}

/** Resolves when the client has opened its streams. Rejects when it does not, or has gone. */
export async function spdyIo(socket: Duplex, head: Buffer, wanted: WantedStreams, clock: Clock): Promise<RemoteIo> {
  const types = streamTypes(wanted);
  const streams = new Map<string, SpdyServerStream>();
  const { promise: complete, resolve, reject } = Promise.withResolvers<void>();
  const connection = new SpdyServer(socket, head, (stream) => {
    const type = stream.headers['streamtype'] ?? '';
    if (!types.includes(type) || streams.has(type)) {
      stream.reset();
      return;
    }
    streams.set(type, stream);
    if (streams.size === types.length) resolve();
  });
  const timer = clock.after(STREAMS_MS, () => reject(new Error('the client did not open its streams')));
  connection.gone.addEventListener('abort', () => reject(connection.gone.reason), { once: true });
  try {
    await complete;
  } catch (error) {
    connection.close();
    throw error;
  } finally {
    timer.cancel();
  }
  let listener: ((size: TerminalSize) => void) | undefined;
  let lastSize: TerminalSize | undefined;
  let text = '';
  // The others are only written to; their ends are read so that the connection goes on.
  for (const [type, { input }] of streams) if (type !== 'stdin' && type !== 'resize') input.resume();
  streams.get('resize')?.input.on('data', (chunk: Buffer) => {
    // Sizes come as one JSON object after the other.
    const parts = `${text}${chunk.toString('utf8')}`.split(/(?<=\})\s*/);
    text = parts.at(-1)?.endsWith('}') === true ? '' : (parts.pop() ?? '');
    for (const part of parts) lastSize = parseSize(part) ?? lastSize;
    if (lastSize !== undefined) listener?.(lastSize);
  });
  return {
    stdin: streams.get('stdin')?.input,
    gone: connection.gone,
    write: async (name, data) => {
      await streams.get(name)?.write(data);
    },
    onResize: (wants) => {
      listener = wants;
      if (lastSize !== undefined) wants(lastSize);
    },
    finish: (status) => {
      void streams.get('error')?.write(Buffer.from(status));
      for (const stream of streams.values()) stream.end();
      connection.close();
    },
  };
}
