// The streams of one exec or attach, whichever protocol brought them, and the Status that ends them (v4.channel.k8s.io).
// Types and pure functions.

import type { Readable } from 'node:stream';
import type { Output } from '../exec.ts';

export const REMOTE_COMMAND_PROTOCOL = 'v4.channel.k8s.io';
/** Over a WebSocket alone: v4, and a message that ends a channel. */
export const REMOTE_COMMAND_V5 = 'v5.channel.k8s.io';

export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

export interface RemoteIo {
  /** Undefined where the client sends no input. */
  readonly stdin: Readable | undefined;
  /** Resolves when the client can take more. */
  write(stream: Output, data: Buffer): Promise<void>;
  /** Sizes of the client's terminal, from now on and the last one before. */
  onResize(listener: (size: TerminalSize) => void): void;
  /** Aborts when the client has gone. */
  readonly gone: AbortSignal;
  /** The end: the Status is sent, and everything is closed. */
  finish(status: string): void;
}

/** The Status of a command that has ended. */
export function exitStatus(code: number): string {
  if (code === 0) return JSON.stringify({ metadata: {}, status: 'Success' });
  return JSON.stringify({
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${code}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
  });
}

/** The Status of a command that could not be run. */
export function failureStatus(message: string): string {
  return JSON.stringify({
    metadata: {},
    status: 'Failure',
    message: `error executing command in container: ${message}`,
    reason: 'InternalError',
    details: { causes: [{ message }] },
    code: 500,
  });
}

/** A message of the resize stream; undefined for what is none. */
export function parseSize(text: string): TerminalSize | undefined {
  try {
    const size: unknown = JSON.parse(text);
    if (typeof size !== 'object' || size === null) return undefined;
    const width: unknown = Reflect.get(size, 'Width');
    const height: unknown = Reflect.get(size, 'Height');
    return typeof width === 'number' && typeof height === 'number' ? { width, height } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
