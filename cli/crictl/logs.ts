// crictl logs: reads the log file that the runtime names, as the kubelet does; what went to stderr goes to stderr.

import { LogFormatter, type LogPart } from '../../agent/runtime/logs/log-formatter.ts';
import { readLogBytes } from '../../agent/runtime/logs/read-logs.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { systemClock } from '../../lib/clock.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { Flags } from './arguments.ts';
import { type Cri, RpcError } from './cri.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { failed } from './report.ts';
import { parseSince } from './units.ts';

export interface LogRequest {
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tailLines?: number;
  readonly limitBytes?: number;
  readonly sinceTime?: EpochMs;
  readonly stream?: 'stdout' | 'stderr';
}

/** `now`: epoch ms. Throws UserError. Pure. */
export function logRequest(flags: Flags, now: EpochMs): LogRequest {
  const stream = flags.text('stream');
  if (stream !== '' && stream !== 'stdout' && stream !== 'stderr') {
    throw new UserError(`invalid stream "${stream}", must be "stdout" or "stderr"`);
  }
  if (flags.isSet('tail') && flags.isSet('stream')) {
    throw new UserError('--tail and --stream are mutually exclusive');
  }
  const since = flags.text('since');
  const sinceTime = since === '' ? undefined : parseSince(since, now);
  if (since !== '' && sinceTime === undefined) {
    throw new UserError(`failed to parse value as time or duration: "${since}"`);
  }
  const [tail, limit] = [flags.number('tail'), flags.number('limit-bytes')];
  return {
    follow: flags.bool('follow'),
    timestamps: flags.bool('timestamps'),
    ...(tail >= 0 && { tailLines: tail }),
    ...(limit >= 0 && { limitBytes: limit }),
    ...(sinceTime !== undefined && { sinceTime }),
    ...(stream !== '' && { stream }),
  };
}

/** Where the log is; with `previous` that of the container's attempt before. Throws UserError. Pure. */
export function logPath(status: Pick<ContainerStatus__Output, 'log_path' | 'metadata'>, previous: boolean): string {
  const { log_path: path, metadata } = status;
  if (path === '') throw new UserError('the container has not set log path');
  if (!previous) return path;
  const attempt = metadata?.attempt ?? 0;
  if (attempt === 0) throw new UserError(`previous terminated container ${metadata?.name ?? ''} not found`);
  return `${path.slice(0, path.lastIndexOf('/') + 1)}${attempt - 1}${path.slice(path.lastIndexOf('.'))}`;
}

async function statusOf(cri: Cri, id: string): Promise<ContainerStatus__Output> {
  const { status } = await cri.call('ContainerStatus', { container_id: id, verbose: false });
  if (status === null) throw new TypeError(`the runtime answered no status for ${id}`);
  return status;
}

/** A runtime that is away does not stop the container. */
async function isRunning(cri: Cri, id: string): Promise<boolean> {
  try {
    return (await statusOf(cri, id)).state === 'CONTAINER_RUNNING';
  } catch (error) {
    if (error instanceof RpcError && error.code === 'UNAVAILABLE') return true;
    if (error instanceof RpcError && error.code === 'NOT_FOUND') return false;
    throw error;
  }
}

export async function logs({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const [id = ''] = args;
  if (id === '') throw new UserError('ID cannot be empty');
  if (args.length > 1) throw new ShowHelp();
  const request = logRequest(flags, console.now());
  const cri = await openCri();
  if (flags.bool('reopen')) {
    await failed('reopen container logs', cri.call('ReopenContainerLog', { container_id: id }));
    console.log('INFO', 'Container logs reopened');
  }
  const status = await statusOf(cri, id);
  const path = logPath(status, flags.bool('previous'));
  const formatter = new LogFormatter(request);
  const write = (parts: readonly LogPart[]): void => {
    const { stdout, stderr } = console.terminal;
    for (const { stream, bytes } of parts) (stream === 'stdout' ? stdout : stderr).write(bytes);
  };
  const running = (): boolean | Promise<boolean> => request.follow && isRunning(cri, status.id);
  try {
    for await (const chunk of readLogBytes(systemClock, path, request, running, signal)) {
      write(formatter.pushParts(chunk));
      if (formatter.full) return;
    }
    if (!signal.aborted) write(formatter.endParts());
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES')) throw new UserError(`failed to open log file "${path}": ${error}`);
    throw error;
  }
}
