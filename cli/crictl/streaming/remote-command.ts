// exec and attach: a command's streams over SPDY with the v4.channel.k8s.io protocol of the kubelet, or over a WebSocket, and
// the Status that says how it ended.

import { UserError } from '../../../lib/errors.ts';
import type { Terminal } from '../console.ts';
import { connectSpdy, type SpdyStream, type StreamTls } from './spdy.ts';
import { DetachKeys, inRawMode, terminalSize } from './tty.ts';
import { connectWebSocket, type StreamConnection } from './websocket.ts';

export type Transport = 'spdy' | 'websocket';

export interface RemoteCommand {
  readonly url: URL;
  readonly stdin: boolean;
  readonly tty: boolean;
  readonly transport: Transport;
  readonly tls: StreamTls;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
}

const PROTOCOL = 'v4.channel.k8s.io';

interface StatusMessage {
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** What the error stream says of the end: undefined for success, else the words. Pure. */
export function endOfCommand(text: string): string | undefined {
  // A server that has nothing to complain of may just end the stream.
  if (text === '') return undefined;
  let status: StatusMessage;
  try {
    status = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return `error stream protocol error: ${error.message} in ${JSON.stringify(text)}`;
  }
  if (status.status === 'Success') return undefined;
  const code = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  if (status.reason === 'NonZeroExitCode' && code !== undefined) return `command terminated with exit code ${code}`;
  return status.message ?? 'error stream protocol error: unknown error';
}

/** Passes on what is typed until it ends; the answer stops it. `onDetach`: the detach keys were typed. */
function copyStdin(
  stdin: Terminal['stdin'],
  remote: SpdyStream,
  keys: DetachKeys | undefined,
  onDetach: () => void,
): () => void {
  const onData = (chunk: Buffer | string): void => {
    const bytes = Buffer.from(chunk);
    const { pass, detach } = keys?.push(bytes) ?? { pass: bytes, detach: false };
    if (pass.length > 0 && !remote.write(pass)) {
      stdin.pause();
      void remote.drained().then(() => stdin.resume());
    }
    if (detach) onDetach();
  };
  // An error is the end too: the terminal went away.
  const onEnd = (): void => remote.end();
  stdin.on('data', onData).once('end', onEnd).once('error', onEnd);
  return () => {
    stdin.off('data', onData).off('end', onEnd);
    stdin.pause();
  };
}

/** Streams of one command until it ends. Resolves with the text of the error stream. */
async function stream(command: RemoteCommand, connection: StreamConnection): Promise<string> {
  const { terminal, tty } = command;
  let end = '';
  const ends: Promise<void>[] = [];
  const open = (streamtype: string, data?: (chunk: Buffer) => void, awaited = true): SpdyStream => {
    let done: () => void = () => undefined;
    if (awaited) ends.push(new Promise((resolve) => (done = resolve)));
    return connection.open({ streamtype }, { ...(data !== undefined && { data }), end: () => done() });
  };
  const copyTo =
    (output: Terminal['stdout'] | Terminal['stderr']) =>
    (chunk: Buffer): void => {
      if (output.write(chunk)) return;
      connection.pause();
      output.once('drain', () => connection.resume());
    };
  open('error', (chunk) => {
    end += chunk.toString('utf8');
  }).end();
  const remoteStdin = command.stdin ? open('stdin', undefined, false) : undefined;
  open('stdout', copyTo(terminal.stdout)).end();
  if (!tty) open('stderr', copyTo(terminal.stderr)).end();
  const resize = tty ? open('resize', undefined, false) : undefined;
  // Not before there is a place for what comes.
  connection.resume();
  const sendSize = (): void => {
    const size = terminalSize(terminal);
    if (size !== undefined) resize?.write(Buffer.from(`${JSON.stringify(size)}\n`));
  };
  sendSize();
  terminal.stdout.on('resize', sendSize);
  let stopStdin = (): void => undefined;
  const detached = new Promise<'detached'>((resolve) => {
    if (remoteStdin === undefined) return;
    stopStdin = copyStdin(terminal.stdin, remoteStdin, tty ? new DetachKeys() : undefined, () => resolve('detached'));
  });
  try {
    return (await Promise.race([Promise.all(ends), detached])) === 'detached' ? '' : end;
  } finally {
    terminal.stdout.off('resize', sendSize);
    stopStdin();
  }
}

async function connect({ url, tls, transport, warn }: RemoteCommand): Promise<StreamConnection> {
  if (transport === 'websocket') {
    return connectWebSocket(url, tls, () =>
      warn('the input has ended, of which this runtime cannot be informed over a WebSocket: --transport spdy can'),
    );
  }
  const { connection, protocol } = await connectSpdy(url, [PROTOCOL], tls);
  if (protocol === '' || protocol === PROTOCOL) return connection;
  connection.close();
  throw new UserError(`the server speaks "${protocol}", not ${PROTOCOL}`);
}

/** Resolves when the command has ended with 0, or the user detached. Rejects with UserError that says how it ended. */
export async function runRemoteCommand(command: RemoteCommand): Promise<void> {
  const { terminal, tty, stdin, signal } = command;
  if (tty && !stdin) throw new UserError('tty=true must be specified with interactive=true');
  if (tty && terminal.stdin.isTTY !== true) throw new UserError('input is not a terminal');
  const connection = await connect(command);
  const stop = (): void => connection.close();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const run = (): Promise<string> => stream(command, connection);
    const failure = endOfCommand(await (tty ? inRawMode(terminal, run) : run()));
    if (signal.aborted) throw new UserError('interrupted');
    if (failure !== undefined) throw new UserError(failure);
  } finally {
    signal.removeEventListener('abort', stop);
    connection.close();
    // An open pipe would keep this process alive.
    terminal.stdin.destroy();
  }
}
