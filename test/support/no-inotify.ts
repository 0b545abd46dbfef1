// A machine that has no inotify watch or instance left, as Node shows it.

import fs from 'node:fs';
import { vi } from 'vitest';

export type InotifyError = 'ENOSPC' | 'EMFILE' | 'ENFILE';

/** What fs.watch throws when `fs.inotify.max_user_watches` (ENOSPC) or `max_user_instances` (EMFILE) is reached. */
export function inotifyError(code: InotifyError): Error {
  return Object.assign(new Error(`${code}: no inotify left, watch`), { code, errno: -1, syscall: 'watch' });
}

/** Every fs.watch fails from now on; `free` makes them work again. */
export function exhaustInotify(code: InotifyError = 'ENOSPC'): {
  readonly tried: () => number;
  readonly free: () => void;
} {
  const spy = vi.spyOn(fs, 'watch').mockImplementation(() => {
    throw inotifyError(code);
  });
  return { tried: () => spy.mock.calls.length, free: () => spy.mockRestore() };
}
