// Writes the CRI logs of all containers from Docker's log streams, one follower for each container. A follower goes on
// behind what its file already has: after a restart of the shim, of dockerd, or after any break. Nothing is remembered.

import type { Readable } from 'node:stream';
import type { BackoffPolicy } from '../../lib/backoff.ts';
import { type Clock, epochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { retryUntilAborted } from '../../lib/retry.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { Engine } from '../engine.ts';
import { isNotFound, toCriError } from '../errors.ts';
import { type ContainerRecord, decodeRecord, KIND_LABEL } from '../records.ts';
import { LogFile } from './log-file.ts';
import { criLine, FrameSplitter, type LogMessage, TerminalSplitter } from './messages.ts';
import { ResumePoint, sinceOf } from './resume.ts';

const RETRY: BackoffPolicy = { initialMs: 50, maxMs: 2_000, factor: 2, resetMs: 30_000 };
/** How long an exit is kept back for the last lines of the log: a disk that takes longer delays no status. ms. */
const DRAIN_LIMIT_MS = 10_000;

interface Follower {
  readonly file: LogFile;
  readonly abort: AbortController;
  /** Resolves when all that the container ever wrote is in its log, or when the follower was ended. */
  readonly done: Promise<void>;
}

export interface ContainerLogsParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Log;
}

/** A message's time without its fraction, in epoch seconds. */
function secondOf(time: string): number {
  return (parseRfc3339(`${time.slice(0, 19)}Z`) ?? epochMs(0)) / 1000;
}

/** The stream is over although the container runs. */
class StreamBroken extends Error {
  override name = 'StreamBroken';
}

export class ContainerLogs {
  readonly #parts: ContainerLogsParts;
  readonly #followers = new Map<string, Follower>();

  constructor(parts: ContainerLogsParts) {
    this.#parts = parts;
  }

  /** At the start: every container that may have written something. */
  async resumeAll(): Promise<void> {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=container`]);
    for (const { Id, Labels, State } of listed) {
      const record = decodeRecord(Labels);
      if (record?.kind !== 'container' || State === 'created') continue;
      const { Config } = await this.#parts.engine.inspect(Id);
      this.follow(Id, record, Config.Tty);
    }
  }

  /** Idempotent. A container without a log path has no log. */
  follow(id: string, { logPath }: ContainerRecord, tty: boolean): void {
    if (logPath === '' || this.#followers.has(id)) return;
    const file = new LogFile(logPath);
    const abort = new AbortController();
    const done = this.#run(id, file, tty, abort.signal);
    this.#followers.set(id, { file, abort, done });
  }

  /** All of an ended container's output is in its log, or has taken too long. */
  async drained(id: string): Promise<void> {
    const follower = this.#followers.get(id);
    if (follower === undefined) return;
    const limit = new AbortController();
    try {
      const late = this.#parts.clock.sleep(DRAIN_LIMIT_MS, limit.signal).then(
        () => this.#parts.log('warn', 'the log of an ended container is late', { container: id }),
        () => undefined,
      );
      await Promise.race([follower.done, late]);
    } finally {
      limit.abort();
    }
  }

  async reopen(id: string): Promise<void> {
    await this.#followers.get(id)?.file.reopen();
  }

  /** The container is gone. */
  forget(id: string): void {
    this.#followers.get(id)?.abort.abort();
    this.#followers.delete(id);
  }

  async close(): Promise<void> {
    const followers = [...this.#followers.values()];
    for (const { abort } of followers) abort.abort();
    await Promise.all(followers.map(({ done }) => done));
  }

  async #run(id: string, file: LogFile, tty: boolean, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts;
    const pass = async (): Promise<void> => {
      while ((await this.#pass(id, file, tty, signal)) === 'more') signal.throwIfAborted();
    };
    const onFailure = (error: unknown): void => {
      if (!(error instanceof StreamBroken)) {
        log('warn', 'a container log cannot be written now', { container: id, error: errorMessage(error) });
      }
    };
    await retryUntilAborted(pass, { clock, policy: RETRY, signal, onFailure });
    await file.close();
  }

  /** From where the file ends to the end of Docker's stream. "more": the container ran when this began. */
  async #pass(id: string, file: LogFile, tty: boolean, signal: AbortSignal): Promise<'more' | 'all'> {
    const { engine } = this.#parts;
    const running = await this.#isRunning(id);
    if (running === undefined) return 'all';
    await file.create();
    const resume = new ResumePoint(await file.tail(), secondOf);
    const { since } = resume;
    const options = {
      // Of one that has ended all is sent at once; without it Docker's answer would be kept in memory whole.
      follow: true,
      stdout: true,
      stderr: true,
      timestamps: true,
      abortSignal: signal,
      ...(since === undefined ? {} : { since: sinceOf(since, secondOf(since)) }),
    } as const;
    // The types have `since` as a number, which has no room for nanoseconds.
    const stream = await engine.call('ContainerLogs', { container: id }, (docker) =>
      docker.getContainer(id).logs(options as typeof options & { since?: never }),
    );
    await this.#copy(stream as Readable, file, resume, tty);
    if (running && (await this.#isRunning(id)) === true) throw new StreamBroken('the log stream ended');
    return running ? 'more' : 'all';
  }

  async #copy(stream: Readable, file: LogFile, resume: ResumePoint, tty: boolean): Promise<void> {
    const splitter = tty ? new TerminalSplitter() : new FrameSplitter();
    const write = async (messages: readonly LogMessage[]): Promise<void> => {
      if (messages.length > 0) await file.append(Buffer.concat(messages.map(criLine)));
    };
    try {
      for await (const chunk of stream) {
        await write(splitter.push(Buffer.from(chunk)).flatMap((message) => resume.take(message)));
      }
    } catch (error) {
      throw toCriError(error);
    } finally {
      stream.destroy();
    }
    await write([...splitter.end().flatMap((message) => resume.take(message)), ...resume.end()]);
  }

  /** Undefined: there is no such container any more. */
  async #isRunning(id: string): Promise<boolean | undefined> {
    try {
      return (await this.#parts.engine.inspect(id)).State.Running;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}
