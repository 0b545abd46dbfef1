// Runs commands in containers by Docker's exec: ExecSync here, and the process behind a streamed exec. Docker has no limit
// of time for a command, and no kill: its process is one of this machine.

import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../lib/clock.ts';
import { isErrno } from '../lib/errors.ts';
import { poll } from '../lib/retry.ts';
import type { Containers } from './containers.ts';
import type { Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, invalid, toCriError } from './errors.ts';

/** containerd's limit of ExecSync for each stream; the rest is read and dropped. */
export const MAX_OUTPUT = 16 * 1024 * 1024;
/** Docker notes the end of a process a moment after its streams have ended. ms. */
const END_LIMIT_MS = 10_000;
/** What Docker writes to the command's output when there is no command: OCI's runtime could not start it. */
const START_FAILED = 'OCI runtime exec failed';

export type Output = 'stdout' | 'stderr';

export interface OutputChunk {
  readonly stream: Output;
  readonly data: Buffer;
}

/** Cuts the output of a process without a terminal into its two streams. Pure but for what it has read so far. */
export class OutputSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): readonly OutputChunk[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const found: OutputChunk[] = [];
    let at = 0;
    while (at + 8 <= bytes.length) {
      const end = at + 8 + bytes.readUInt32BE(at + 4);
      if (end > bytes.length) break;
      found.push({ stream: bytes[at] === 2 ? 'stderr' : 'stdout', data: bytes.subarray(at + 8, end) });
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return found;
  }
}

/** The chunks of Docker's attached stream. */
export async function* outputOf(stream: Duplex, tty: boolean): AsyncGenerator<OutputChunk> {
  const splitter = new OutputSplitter();
  for await (const chunk of stream) {
    const data = Buffer.from(chunk);
    if (tty) yield { stream: 'stdout', data };
    else yield* splitter.push(data);
  }
}

export interface ExecSpec {
  readonly containerId: string;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
}

export interface ExecParts {
  readonly engine: Engine;
  readonly containers: Containers;
  readonly clock?: Clock;
}

/** A command that has been started. */
export interface Execution {
  readonly id: string;
  readonly stream: Duplex;
}

interface Inspection {
  readonly Running: boolean;
  readonly ExitCode: number | null;
  readonly Pid: number;
}

export class Execs {
  readonly #engine: Engine;
  readonly #containers: Containers;
  readonly #clock: Clock;

  constructor({ engine, containers, clock = systemClock }: ExecParts) {
    this.#engine = engine;
    this.#containers = containers;
    this.#clock = clock;
  }

  /** Rejects with CriError when the container does not run. */
  async start({ containerId, command, tty, stdin }: ExecSpec): Promise<Execution> {
    const { inspected } = await this.#containers.requireRunning(containerId);
    const options = {
      AttachStdin: stdin,
      AttachStdout: true,
      AttachStderr: !tty,
      Tty: tty,
      Cmd: [...command],
      Privileged: inspected.HostConfig.Privileged === true,
    };
    const attributes = { container: inspected.Id, command: [...command] };
    const exec = await this.#engine.call('ContainerExec', attributes, (docker) =>
      docker.getContainer(inspected.Id).exec(options),
    );
    const stream = await this.#engine.call('ExecStart', attributes, () =>
      exec.start({ hijack: true, stdin: true, Tty: tty }),
    );
    return { id: exec.id, stream };
  }

  #inspect(id: string): Promise<Inspection> {
    return this.#engine.call('ExecInspect', { exec: id }, (docker) => docker.getExec(id).inspect());
  }

  async resize(id: string, size: { readonly h: number; readonly w: number }): Promise<void> {
    await this.#engine.call('ExecResize', { exec: id }, (docker) => docker.getExec(id).resize(size));
  }

  /**
   * The exit code of a command whose streams have ended. `firstOutput`: what came first; Docker puts there why there was
   * no process. Rejects with CriError when the command could not be started.
   */
  async exitCode(id: string, firstOutput: string): Promise<number> {
    let last = await this.#inspect(id);
    const ended = async (): Promise<boolean> => {
      if (!last.Running && last.ExitCode !== null) return true;
      last = await this.#inspect(id);
      return !last.Running && last.ExitCode !== null;
    };
    if (!(await poll(ended, { clock: this.#clock, everyMs: 100, firstMs: 5, limitMs: END_LIMIT_MS }))) {
      throw new CriError('UNKNOWN', `Docker does not say how the command ${id} ended`);
    }
    if (last.Pid === 0 && firstOutput.startsWith(START_FAILED)) {
      throw new CriError('UNKNOWN', `failed to exec in container: ${firstOutput.trim()}`);
    }
    return last.ExitCode ?? 0;
  }

  async execSync(
    { container_id, cmd, timeout }: Received<'ExecSync'>,
    signal: AbortSignal,
  ): Promise<Reply<'ExecSync'>> {
    if (cmd.length === 0) throw invalid('cmd', 'missing');
    const execution = await this.start({ containerId: container_id, command: cmd, tty: false, stdin: false });
    const kept: Record<Output, Buffer[]> = { stdout: [], stderr: [] };
    const sizes: Record<Output, number> = { stdout: 0, stderr: 0 };
    const late = new AbortController();
    const seconds = Number(timeout);
    const timer = seconds > 0 ? this.#clock.after(seconds * 1000, () => late.abort()) : undefined;
    const ending = AbortSignal.any([late.signal, signal]);
    const stop = (): void => void execution.stream.destroy();
    ending.addEventListener('abort', stop, { once: true });
    if (ending.aborted) stop();
    try {
      for await (const { stream, data } of outputOf(execution.stream, false)) {
        const part = data.subarray(0, Math.max(0, MAX_OUTPUT - sizes[stream]));
        sizes[stream] += part.length;
        kept[stream].push(part);
      }
    } catch (error) {
      if (!ending.aborted) throw toCriError(error);
    } finally {
      timer?.cancel();
      ending.removeEventListener('abort', stop);
    }
    if (ending.aborted) {
      await this.#kill(execution.id);
      throw new CriError(
        'DEADLINE_EXCEEDED',
        `failed to exec in container: timeout ${seconds}s exceeded: context deadline exceeded`,
      );
    }
    const [stdout, stderr] = [Buffer.concat(kept.stdout), Buffer.concat(kept.stderr)];
    const exit_code = await this.exitCode(execution.id, stdout.toString('utf8', 0, 4096));
    return { stdout, stderr, exit_code };
  }

  /** The process of a command, which Docker shows by its number on this machine. */
  async #kill(id: string): Promise<void> {
    const { Running, Pid } = await this.#inspect(id);
    if (!Running || Pid <= 1) return;
    try {
      process.kill(Pid, 'SIGKILL');
    } catch (error) {
      if (!isErrno(error, 'ESRCH')) throw error;
    }
  }
}
