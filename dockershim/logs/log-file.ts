// One container's log in CRI's format: appended to, opened again when the kubelet has moved it away, and read back at its
// end after a restart. Writes whole lines only; what a crash cut off is removed.

import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno } from '../../lib/errors.ts';
import { type LogMessage, parseCriLine } from './messages.ts';
import type { LogTail } from './resume.ts';

/** Holds the last messages of any log: lines are 16 KiB at most. */
const TAIL_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/** The messages at the end of a log of which the last bytes are given. `isWhole`: they are all of it. Pure. */
export function tailOf(bytes: Buffer, isWhole: boolean, size: number): LogTail {
  const end = bytes.lastIndexOf(LINE_FEED) + 1;
  const start = isWhole ? 0 : bytes.indexOf(LINE_FEED) + 1;
  const messages: LogMessage[] = [];
  for (let at = start; at < end; ) {
    const feed = bytes.indexOf(LINE_FEED, at);
    const message = parseCriLine(bytes.subarray(at, feed));
    if (message !== undefined) messages.push(message);
    at = feed + 1;
  }
  return { messages, wholeBytes: size - (bytes.length - end) };
}

async function readTail(path: string): Promise<LogTail | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return tailOf(buffer, length === size, size);
  } finally {
    await file.close();
  }
}

/** The kubelet moves a log to `<name>.<time>` and compresses it when the next one has been moved. Pure. */
export function newestRotated(names: readonly string[], log: string): string | undefined {
  return names
    .filter((name) => name.startsWith(`${log}.`) && /\.\d{8}-\d{6}$/.test(name))
    .toSorted()
    .at(-1);
}

export class LogFile {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #closed = false;
  /** Writes and reopenings, one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** The messages to go on behind: of the log, or of the one that was moved away last when this one is new. */
  async tail(): Promise<readonly LogMessage[]> {
    const own = await readTail(this.#path);
    if (own !== undefined) {
      const handle = await this.#open();
      const { size } = await handle.stat();
      if (size > own.wholeBytes) await handle.truncate(own.wholeBytes);
      if (own.messages.length > 0) return own.messages;
    }
    const directory = dirname(this.#path);
    const rotated = newestRotated(await namesIn(directory), basename(this.#path));
    return rotated === undefined ? [] : ((await readTail(join(directory, rotated)))?.messages ?? []);
  }

  async #open(): Promise<FileHandle> {
    if (this.#handle === undefined) {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o755 });
      this.#handle = await open(this.#path, 'a', 0o640);
    }
    return this.#handle;
  }

  append(lines: Buffer): Promise<void> {
    return this.#inTurn(async () => {
      await (await this.#open()).appendFile(lines);
    });
  }

  /** The log is there, empty or not. */
  create(): Promise<void> {
    return this.append(Buffer.alloc(0));
  }

  /** What is written from now on goes to a file of the log's name, a new one where the old one was moved. */
  reopen(): Promise<void> {
    return this.#inTurn(async () => {
      // The container has ended in the meantime.
      if (this.#closed) return;
      await this.#handle?.close();
      this.#handle = undefined;
      await this.#open();
    });
  }

  /** For good. */
  close(): Promise<void> {
    return this.#inTurn(async () => {
      this.#closed = true;
      await this.#handle?.close();
      this.#handle = undefined;
    });
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
