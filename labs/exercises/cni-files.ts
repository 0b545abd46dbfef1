// The CNI configuration of the node: what a kubelet's runtime would choose of the files there. Reading is at the end.

import { readdir } from 'node:fs/promises';
import type { Ground } from './model.ts';

export interface CniFacts {
  /** Names in the directory. */
  readonly files: readonly string[];
  /** The first that can be used by its name; undefined where there is none. */
  readonly chosen: string | undefined;
}

/** The first file in order whose name is that of a configuration. Pure. */
export function chooseFile(files: readonly string[]): string | undefined {
  return files.filter((name) => /\.(?:conflist|conf|json)$/.test(name)).sort()[0];
}

export async function readCni({ cniConfDir }: Pick<Ground, 'cniConfDir'>): Promise<CniFacts> {
  const files = (await readdir(cniConfDir)).sort();
  return { files, chosen: chooseFile(files) };
}
