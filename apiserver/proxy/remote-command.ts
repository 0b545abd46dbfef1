// exec and attach over a WebSocket (v5.channel.k8s.io) for the client, and over SPDY (v4.channel.k8s.io) for the kubelet: the
// first byte of a message is its channel. Runtimes know WebSockets of v4 alone, which cannot end the input.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { SpdyConnection, type SpdyStream } from '../../lib/spdy-connection.ts';
import { accept, bytesOf, COMMAND_V5, type Spdy, send } from './websockets.ts';

const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
/** The next byte is a channel that is over. */
const CLOSE = 255;
const SUCCESS = JSON.stringify({ metadata: {}, status: 'Success' });

export interface CommandStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** By the query of the kubelet's path. Pure. */
export function streamsOf(query: URLSearchParams): CommandStreams {
  const has = (key: string): boolean => query.get(key) === '1';
  return { stdin: has('input'), stdout: has('output'), stderr: has('error'), tty: has('tty') };
}

/** Copies until the command has ended or either side has gone. */
export async function translateCommand(
  spdy: Spdy,
  wanted: CommandStreams,
  message: IncomingMessage,
  client: Duplex,
  head: Buffer,
): Promise<void> {
  const accepting = accept(COMMAND_V5, message, client, head);
  const connection = new SpdyConnection(spdy.socket, spdy.head);
  const socket = await accepting;
  if (socket === undefined) return connection.close();
  const ends: Promise<void>[] = [];
  let sent: Promise<void> = Promise.resolve();
  const output = (name: 'stdout' | 'stderr' | 'error', onData?: () => void): void => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(promise);
    const data = (chunk: Buffer): void => {
      onData?.();
      connection.pause();
      sent = send(socket, Buffer.concat([Buffer.from([CHANNELS[name]]), chunk]));
      void sent.then(() => connection.resume());
    };
    connection.open({ streamtype: name }, { data, end: resolve }).end();
  };
  let hasStatus = false;
  output('error', () => {
    hasStatus = true;
  });
  const stdin = wanted.stdin ? connection.open({ streamtype: 'stdin' }, {}) : undefined;
  if (wanted.stdout) output('stdout');
  if (wanted.stderr && !wanted.tty) output('stderr');
  const resize = wanted.tty ? connection.open({ streamtype: 'resize' }, {}) : undefined;
  const write = (stream: SpdyStream | undefined, data: Buffer): void => {
    if (stream === undefined || stream.write(data)) return;
    socket.pause();
    void stream.drained().then(() => socket.resume());
  };
  socket.on('message', (received) => {
    const bytes = bytesOf(received);
    const content = bytes.subarray(1);
    if (bytes[0] === CHANNELS.stdin) write(stdin, content);
    else if (bytes[0] === CHANNELS.resize) write(resize, content);
    else if (bytes[0] === CLOSE && content[0] === CHANNELS.stdin) stdin?.end();
  });
  socket.once('close', () => connection.close());
  const ended = await Promise.race([Promise.all(ends).then(() => true), connection.closed.then(() => false)]);
  await sent;
  // A kubelet that has nothing to report ends the stream without a word; the client waits for one.
  if (ended && !hasStatus && !spdy.socket.destroyed)
    await send(socket, Buffer.concat([Buffer.from([CHANNELS.error]), Buffer.from(SUCCESS)]));
  socket.resume();
  socket.close(1000);
  connection.close();
}
