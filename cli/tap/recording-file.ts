// A recording on disk: opened for appending, readable by its owner alone (it holds requests as they are, with secrets), and
// never overwritten.

import { type FileHandle, open } from 'node:fs/promises';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import { Recorder } from './recorder.ts';
import { RecordingWriter } from './recording-writer.ts';

/** How long what a call has gathered waits for its end before it is written. */
const FLUSH_MS = 1000;
/** A write that a stuck disk holds up is waited for no longer than this at the end. */
const CLOSE_MS = 5000;

export interface OpenRecording {
  readonly recorder: Recorder;
  /** Calls, and lines that were lost. */
  summary(): { readonly calls: number; readonly lostLines: number; readonly lostBytes: number };
  /** Bytes that wait to be written. */
  queuedBytes(): number;
  close(): Promise<void>;
}

export interface RecordingOptions {
  readonly to: string;
  readonly redact: boolean;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

/** Rejects with UserError for a file that is there already: a recording has one beginning. */
export async function createRecording(path: string, options: RecordingOptions): Promise<OpenRecording> {
  const { to, redact, log, clock = systemClock } = options;
  let handle: FileHandle;
  try {
    handle = await open(path, 'ax', 0o600);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw new UserError(`${path} is there already: a recording is never overwritten`);
    throw new UserError(`cannot write the recording: ${errorMessage(error)}`);
  }
  const begin = clock.monotonic();
  const at = (): number => clock.monotonic() - begin;
  const writer = new RecordingWriter({
    file: { append: async (bytes) => (await handle.write(bytes)).bytesWritten },
    clock,
    at,
    onLoss: (why) => log(`${path} lacks calls from now on: ${why}; what is lost is counted in it`),
  });
  const recorder = new Recorder({
    start: rfc3339Milli(clock.now()),
    to,
    redact,
    at,
    write: (line) => writer.add(line),
  });
  let timer = clock.after(FLUSH_MS, flush);
  function flush(): void {
    recorder.flush();
    timer = clock.after(FLUSH_MS, flush);
  }
  return {
    recorder,
    summary: () => ({ calls: recorder.calls, lostLines: writer.lost.lines, lostBytes: writer.lost.bytes }),
    queuedBytes: () => writer.queuedBytes,
    close: async () => {
      timer.cancel();
      recorder.finish();
      const ended = new AbortController();
      const limit = clock.sleep(CLOSE_MS, ended.signal).catch(() => undefined);
      await Promise.race([writer.close(), limit]);
      ended.abort();
      await handle.close();
    },
  };
}
