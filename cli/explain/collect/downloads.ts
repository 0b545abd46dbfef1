// What containerd is fetching from registries now, with figures: the writers of its content store, which are directories below
// its root. CRI has no call for it. Other runtimes answer Status without a root of containerd, and have no downloads here.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type EpochMs, epochMs } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { Download } from '../facts.ts';
import type { LocalNode } from './source.ts';

/** ms */
const DEADLINE_MS = 3_000;
/** Below containerd's root. */
const INGESTS = 'io.containerd.content.v1.content/ingest';

/** containerd's root, from the `config` of a verbose Status; undefined for another runtime. Pure. */
export function containerdRoot(config: string | undefined): string | undefined {
  if (config === undefined) return undefined;
  const value: unknown = JSON.parse(config);
  if (typeof value !== 'object' || value === null || !('containerdRootDir' in value)) return undefined;
  const { containerdRootDir: root } = value;
  return typeof root === 'string' && root !== '' ? root : undefined;
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    // There is no total where the registry has named none; what is complete is moved away meanwhile.
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function downloadIn(directory: string): Promise<Download | undefined> {
  const [ref, total, started, data] = await Promise.all([
    textOf(join(directory, 'ref')),
    textOf(join(directory, 'total')),
    textOf(join(directory, 'startedat')),
    stat(join(directory, 'data')).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return undefined;
      throw error;
    }),
  ]);
  if (ref === undefined || data === undefined) return undefined;
  const since: EpochMs = parseRfc3339(started) ?? epochMs(data.birthtimeMs);
  const whole = total === undefined ? undefined : Number(total);
  // "k8s.io/7/layer-sha256:…": containerd's namespace and a number come before what it is.
  return { part: ref.replace(/^.*\//, ''), bytes: data.size, total: whole, since, updated: epochMs(data.mtimeMs) };
}

/** What is being written below containerd's root, oldest first. Rejects with a system error. */
export async function downloadsBelow(root: string): Promise<readonly Download[]> {
  const directory = join(root, INGESTS);
  const found = await Promise.all((await readdir(directory)).map((name) => downloadIn(join(directory, name))));
  return found.filter((each) => each !== undefined).toSorted((a, b) => a.since - b.since);
}

/** Rejects with RuntimeError, or a system error. */
export async function collectDownloads({ cri }: LocalNode): Promise<readonly Download[]> {
  const { info } = await cri.call('Status', { verbose: true }, { deadlineMs: DEADLINE_MS });
  const root = containerdRoot(info['config']);
  return root === undefined ? [] : await downloadsBelow(root);
}
