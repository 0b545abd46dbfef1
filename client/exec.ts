// Runs a command in a container through the API server, over a WebSocket with the v4.channel.k8s.io protocol: the
// first byte of each message is the channel (0 stdin, 1 stdout, 2 stderr, 3 the final Status, 4 terminal size).
// Collects the output; interactive use is kubectl's business.

import WebSocket from 'ws';
import { systemClock } from '../lib/clock.ts';
import { ApiError, UnreachableError, unreachable } from './errors.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import { queryString, resourcePath } from './paths.ts';
import { TokenSource, tlsOptions } from './transport.ts';
import type { Status } from './types.ts';

export interface ExecRequest {
  readonly namespace: string;
  readonly pod: string;
  /** May be left out when the pod has one container. */
  readonly container?: string;
  readonly command: readonly string[];
  readonly tty?: boolean;
  /**
   * Sent to the command. v4 has no half-close, so the command receives no end of input and must decide itself when it
   * has read enough.
   */
  readonly stdin?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

export interface ExecOutcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

const PROTOCOL = 'v4.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;

/**
 * Resolves with the command's output and exit code, whatever it is. Rejects with ApiError when the server, kubelet or
 * runtime refuses or fails to run it, UnreachableError when there is no answer.
 */
export async function execInPod(access: ClusterAccess, request: ExecRequest): Promise<ExecOutcome> {
  const url = execUrl(access, request);
  const headers = await new TokenSource(access, systemClock).headers();
  return await new Promise((resolve, reject) => {
    request.signal?.throwIfAborted();
    const socket = new WebSocket(url, [PROTOCOL], { ...tlsOptions(access), headers, perMessageDeflate: false });
    const output: Record<number, Buffer[]> = { [STDOUT]: [], [STDERR]: [], [ERROR]: [] };
    const text = (channel: number): string => Buffer.concat(output[channel] ?? []).toString('utf8');
    const onAbort = (): void => {
      reject(request.signal?.reason);
      socket.terminate();
    };
    request.signal?.addEventListener('abort', onAbort, { once: true });
    socket.on('open', () => {
      if (request.stdin !== undefined) socket.send(Buffer.concat([Buffer.from([STDIN]), Buffer.from(request.stdin)]));
    });
    socket.on('message', (data: WebSocket.RawData) => {
      const message = asBuffer(data);
      const channel = message[0];
      if (channel !== undefined) output[channel]?.push(message.subarray(1));
    });
    socket.on('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => reject(refusal(Buffer.concat(chunks).toString('utf8'), response.statusCode ?? 0)));
    });
    socket.on('error', (error) => reject(unreachable(access.server, error)));
    socket.on('close', (code) => {
      request.signal?.removeEventListener('abort', onAbort);
      const final = text(ERROR);
      if (final === '') {
        const message = `exec in ${request.namespace}/${request.pod}: the stream ended without a status (close code ${code})`;
        reject(new UnreachableError(message, 'CLOSED'));
        return;
      }
      try {
        resolve({ stdout: text(STDOUT), stderr: text(STDERR), exitCode: exitCodeOf(JSON.parse(final) as Status) });
      } catch (error) {
        reject(error);
      }
    });
  });
}

function execUrl(access: ClusterAccess, request: ExecRequest): string {
  const path = resourcePath('v1', 'pods', { namespace: request.namespace, name: request.pod, subresource: 'exec' });
  const tty = request.tty ?? false;
  const query = queryString({
    command: request.command,
    container: request.container,
    stdin: request.stdin !== undefined,
    stdout: true,
    // A terminal has one output stream.
    stderr: !tty,
    tty,
  });
  return `${access.server.replace(/^http/, 'ws')}${path}${query}`;
}

/** The exit code in the final Status; a failure to run the command at all is thrown as ApiError. */
export function exitCodeOf(status: Status): number {
  if (status.status === 'Success') return 0;
  const cause = status.details?.causes?.find((candidate) => candidate.reason === 'ExitCode');
  const code = Number(cause?.message);
  if (status.reason === 'NonZeroExitCode' && Number.isInteger(code)) return code;
  throw new ApiError(status, status.code ?? 500, 'exec');
}

function refusal(body: string, code: number): ApiError {
  let status: Status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: `exec: ${body.trim()}` };
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null && 'kind' in parsed && parsed.kind === 'Status') {
      status = parsed as Status;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return new ApiError(status, code, 'exec');
}

function asBuffer(data: WebSocket.RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
