// Runs a program to its end and collects its output. For a dialogue with a running program use
// node:child_process directly.

import { spawn } from 'node:child_process';
import { cutWithMark, MAX_OUTPUT_BYTES } from './cut.ts';

export interface ExecOptions {
  readonly stdin?: string | Uint8Array;
  /** The whole environment of the child; defaults to this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Kill the program with SIGKILL after this many ms. No limit by default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Keep at most this many bytes of each stream; the rest is read and dropped. Default 16 MiB. */
  readonly maxOutputBytes?: number;
}

export interface ExecResult {
  /** Exit code, or null when a signal ended the program. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Bytes of each output that are kept, unless a caller says otherwise. */
export const DEFAULT_OUTPUT_BYTES = 16 * 1024 * 1024;

/**
 * How long a caller waits for a program after SIGKILL, ms. A program that is blocked in a system call (the server of a
 * mount is gone) does not end before the call returns.
 */
export const ABANDON_AFTER_MS = 2_000;

/** Runs a program; injected where a test records or fakes the invocation. */
export type Exec = (file: string, args: readonly string[], options?: ExecOptions) => Promise<ExecResult>;

class Capped {
  readonly #chunks: Buffer[] = [];
  #size = 0;
  readonly #limit: number;
  constructor(limit: number) {
    this.#limit = limit;
  }
  push(chunk: Buffer): void {
    const room = this.#limit - this.#size;
    if (room <= 0) return;
    const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
    this.#chunks.push(kept);
    this.#size += kept.length;
  }
  toString(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

/** Resolves however the program ends; rejects only when it could not be started (ENOENT, EACCES). */
export const exec: Exec = (file, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(file, [...args], {
      cwd: options.cwd,
      env: options.env === undefined ? process.env : { ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: options.signal,
    });
    const limit = options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
    const stdout = new Capped(limit);
    const stderr = new Capped(limit);
    let timedOut = false;
    const result = (code: number | null, signal: NodeJS.Signals | null): void => {
      clearTimeout(timer);
      resolve({ code, signal, timedOut, stdout: stdout.toString(), stderr: stderr.toString() });
    };
    const onTimeout = (): void => {
      timedOut = true;
      child.kill('SIGKILL');
      // A child of the program may hold the pipes open for long; nothing it writes is used any more.
      child.stdout.destroy();
      child.stderr.destroy();
      timer = setTimeout(() => {
        child.unref();
        result(null, 'SIGKILL');
      }, ABANDON_AFTER_MS);
    };
    let timer = options.timeoutMs === undefined ? undefined : setTimeout(onTimeout, options.timeoutMs);
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', result);
    // A program may exit without reading its input; that is not an error here; the exit code shows a failure.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.stdin ?? '');
  });

/** Like `exec`, but anything except exit code 0 is an Error that names the command and the beginning of its output. */
export async function execOk(
  file: string,
  args: readonly string[],
  options?: ExecOptions,
  run: Exec = exec,
): Promise<string> {
  const result = await run(file, args, options);
  if (result.code !== 0) {
    const ended = result.timedOut ? 'timed out' : `exit ${result.code ?? result.signal}`;
    const output = cutWithMark((result.stderr || result.stdout).trim(), MAX_OUTPUT_BYTES);
    throw new Error(`${[file, ...args].join(' ')}: ${ended}${output === '' ? '' : `: ${output}`}`);
  }
  return result.stdout;
}
