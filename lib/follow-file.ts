// A file that may change while the process runs: its text is read when the file system reports a change of its directory, and once a
// minute beside that, as kube-apiserver does it. What the text means is the caller's.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock, Timer } from './clock.ts';
import { errorMessage, isErrno } from './errors.ts';
import { type DirectoryWatch, watchDirectory } from './watch-directory.ts';

const CHECK_MS = 60_000;

export interface FollowedFile {
  readonly path: string;
  /** What is in use: `changed` is called for another text. */
  readonly text: string;
  /** Throws where the text is of no use; it is read again with the next change, and what was in use stays so. */
  readonly changed: (text: string) => void;
  /** Called with why a text is of no use, or why it could not be read. */
  readonly refused: (why: string) => void;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

/** Returns what ends it. */
export function followFile({ path, text, changed, refused, clock, log }: FollowedFile): () => void {
  let current = text;
  const look = (): void => {
    try {
      const now = readFileSync(path, 'utf8');
      if (now === current) return;
      changed(now);
      current = now;
    } catch (error) {
      // Between the removal and the coming of its successor.
      if (!isErrno(error, 'ENOENT')) refused(errorMessage(error));
    }
  };
  let timer: Timer;
  const again = (): void => {
    look();
    timer = clock.after(CHECK_MS, again);
  };
  timer = clock.after(CHECK_MS, again);
  const watch: DirectoryWatch = watchDirectory(dirname(path), {
    changed: look,
    failed: (error) => log(`changes of ${path} are seen once a minute: ${error.message}`),
    clock,
  });
  return () => {
    timer.cancel();
    watch.close();
  };
}
