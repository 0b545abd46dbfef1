// The library of experiments that comes with nodelet: labs/experiments/NAME.yaml. Only finds and reads.

import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { type ExperimentSource, loadExperiment } from './load.ts';

export const LIBRARY = join(import.meta.dirname, '../../labs/experiments');

/** Names, in order. */
export async function libraryNames(): Promise<readonly string[]> {
  const files = await readdir(LIBRARY);
  return files.flatMap((file) => (file.endsWith('.yaml') ? [file.slice(0, -'.yaml'.length)] : [])).sort();
}

/** Where the experiment is that a user names by file or by name. Rejects with UserError. */
export async function findExperiment(fileOrName: string): Promise<string> {
  if (/^[a-z0-9-]+$/.test(fileOrName)) {
    const file = join(LIBRARY, `${fileOrName}.yaml`);
    if (existsSync(file)) return file;
  }
  if (existsSync(fileOrName)) return fileOrName;
  const known = (await libraryNames()).join(', ');
  throw new UserError(`${fileOrName} is neither a file nor an experiment of the library; there are ${known}`);
}

/** Rejects with UserError. */
export async function openExperiment(fileOrName: string): Promise<ExperimentSource> {
  return await loadExperiment(await findExperiment(fileOrName));
}
