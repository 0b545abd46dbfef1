// One `nodelet up` per root: a file that names the process that has it. A file whose process is gone is nobody's.

import { link, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno, UserError } from '../../lib/errors.ts';
import { readPidFile } from './child.ts';
import { isAlive, type ProcessId, readProcess } from './proc.ts';

export async function selfId(): Promise<ProcessId> {
  const entry = await readProcess(process.pid);
  if (entry === undefined) throw new Error('/proc does not show this process');
  return { pid: entry.pid, startTime: entry.startTime };
}

/** Rejects with UserError when another process that lives has it. */
export async function acquireLock(file: string, what: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o711 });
  const { pid, startTime } = await selfId();
  const own = `${file}.${pid}`;
  await writeFile(own, `${JSON.stringify({ pid, startTime })}\n`);
  try {
    // A link appears whole or not at all, and never replaces one that is there.
    for (let attempt = 0; attempt < 10; attempt++) {
      try {
        await link(own, file);
        return;
      } catch (error) {
        if (!isErrno(error, 'EEXIST')) throw error;
      }
      const holder = await readPidFile(file);
      if (holder !== undefined && (await isAlive(holder))) {
        throw new UserError(`${what} is in use by process ${holder.pid}`);
      }
      await rm(file, { force: true });
    }
    throw new Error(`${file} is made again as often as it is removed`);
  } finally {
    await rm(own, { force: true });
  }
}

/** The living holder, if there is one. */
export async function lockHolder(file: string): Promise<ProcessId | undefined> {
  const holder = await readPidFile(file);
  return holder !== undefined && (await isAlive(holder)) ? holder : undefined;
}
