// The LogReader port: formatted reads of a container's log file. agent/runtime/logs implements it over the CRI log
// format; the kubelet's HTTPS API serves it. Types only.

import type { EpochMs } from '../../lib/clock.ts';
import type { ContainerId } from './runtime.ts';

/** PodLogOptions, with times as numbers. */
export interface LogOptions {
  readonly follow: boolean;
  /** Each line is preceded by its RFC 3339 time. */
  readonly timestamps: boolean;
  /** Only the newest lines; absent is all. */
  readonly tailLines?: number;
  /** Only lines written at or after this. */
  readonly sinceTime?: EpochMs;
  /** Stop after this many bytes. */
  readonly limitBytes?: number;
  /** Only one stream of the two; absent is both. */
  readonly stream?: 'stdout' | 'stderr';
}

export interface LogReader {
  /**
   * The log at `path` (ContainerSnapshot.logPath), formatted, in chunks. With `follow` it goes on until `signal` aborts
   * or `isRunning` returns false and everything written has been read; rotation is followed. Rejects with ENOENT when there is
   * no such file.
   */
  readLogs(
    path: string,
    options: LogOptions,
    isRunning: () => boolean | Promise<boolean>,
    signal: AbortSignal,
  ): AsyncIterable<Uint8Array>;
}

export interface LogWriter {
  /**
   * Resolves once the runtime has written the log of a container that has exited to its end: an exit is announced while the
   * runtime still copies what the container wrote last.
   */
  logWritten(id: ContainerId): Promise<void>;
}
