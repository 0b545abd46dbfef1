// Whether a program can be started by its name. Starts nothing.

import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from './errors.ts';

/** On `path`, a list as the variable PATH has it. */
export async function hasProgram(name: string, path: string = process.env['PATH'] ?? ''): Promise<boolean> {
  for (const directory of path.split(':')) {
    try {
      await access(join(directory, name), constants.X_OK);
      return true;
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'EACCES', 'ENOTDIR', 'ELOOP')) throw error;
    }
  }
  return false;
}
