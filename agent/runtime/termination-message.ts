// A dead container's last words: from the file it could write to or, by policy, from the end of its log. Reads files
// that the container controlled, and therefore trusts nothing about them.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import { ANNOTATION_TERMINATION_POLICY } from './config/labels.ts';
import { containerFileNames } from './convert.ts';
import { lastLogText } from './logs/cri-log.ts';

/** The API's limits: bytes of the file; bytes and lines of the log. */
const MAX_MESSAGE_BYTES = 4096;
const MAX_LOG_BYTES = 2048;
const MAX_LOG_LINES = 80;
/** Enough of a log's end to hold 2048 bytes of content however short its lines are. */
const LOG_TAIL_BYTES = 64 * 1024;

/**
 * The last `limit` bytes of a regular file; undefined when it does not exist. A link, a pipe or a device that the
 * container put in its place is refused: it could point anywhere, or never end.
 */
export function readFileEnd(path: string, limit: number): Buffer | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
    const length = Math.min(limit, stat.size);
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(fd, buffer, 0, length, stat.size - length));
  } finally {
    closeSync(fd);
  }
}

/**
 * Undefined when the message would have to come from the log and the runtime has not written that to its end yet.
 * Synchronous on purpose: both files are small and warm, and a thread-pool trip costs more than the read.
 */
export function terminationMessage(
  status: ContainerStatus__Output,
  { logIsComplete }: { readonly logIsComplete: boolean },
): string | undefined {
  const file = containerFileNames(status).terminationLog;
  let text = '';
  if (file !== undefined) {
    try {
      text = readFileEnd(file, MAX_MESSAGE_BYTES)?.toString('utf8') ?? '';
    } catch (error) {
      text = `Error on reading termination log ${file}: ${errorMessage(error)}`;
    }
  }
  const fallback = status.annotations[ANNOTATION_TERMINATION_POLICY] === 'FallbackToLogsOnError';
  if (text === '' && fallback && status.exit_code !== 0 && status.log_path !== '') {
    if (!logIsComplete) return undefined;
    try {
      const end = readFileEnd(status.log_path, LOG_TAIL_BYTES);
      if (end !== undefined) text = lastLogText(end, MAX_LOG_LINES, MAX_LOG_BYTES);
    } catch (error) {
      text = `Error on reading termination message from logs: ${errorMessage(error)}`;
    }
  }
  return [status.message, text].filter((part) => part !== '').join(': ');
}
