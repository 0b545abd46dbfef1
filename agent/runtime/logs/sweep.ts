// Removes the logs of pods that no longer exist: directories that were left when a sandbox vanished from the runtime, or
// an agent was killed at the wrong moment, and links to logs that are not there. Everything of a pod that is known stays.

import { existsSync, readdirSync, readlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../../lib/errors.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import type { PodRef } from '../../ports/runtime.ts';
import { podLogsDirectory } from '../config/paths.ts';

export interface LogDirectories {
  /** KubeletConfiguration.podLogsDir. */
  readonly podLogsDir: string;
  /** Where the links are: /var/log/containers. */
  readonly containerLogsDir: string;
}

/** The uid in the name of a pod's log directory, `<namespace>_<name>_<uid>`; undefined for what is something else. */
export function uidOfLogDirectory(name: string): string | undefined {
  return /^[a-z0-9][a-z0-9-]*_[a-z0-9][a-z0-9.-]*_([0-9A-Za-z-]+)$/.exec(name)?.[1];
}

/** Whether a pod has a log directory. Of a pod that only its uid is known of, its name is not needed. */
export function hasLogs(podLogsDir: string, pod: PodRef): boolean {
  if (pod.name !== '') return existsSync(podLogsDirectory(podLogsDir, pod));
  return entriesOf(podLogsDir).some(({ name }) => uidOfLogDirectory(name) === pod.uid);
}

function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** What was removed, by name. `isKept`: the pod is known, or may still be. */
export async function sweepLogs(
  directories: LogDirectories,
  isKept: (uid: string) => boolean,
): Promise<readonly string[]> {
  const { podLogsDir, containerLogsDir } = directories;
  const removed: string[] = [];
  for (const entry of entriesOf(podLogsDir)) {
    const uid = entry.isDirectory() ? uidOfLogDirectory(entry.name) : undefined;
    if (uid === undefined || isKept(uid)) continue;
    await removeTree(join(podLogsDir, entry.name));
    removed.push(entry.name);
  }
  const ours = podLogsDir.endsWith('/') ? podLogsDir : `${podLogsDir}/`;
  for (const entry of entriesOf(containerLogsDir)) {
    const link = join(containerLogsDir, entry.name);
    // Links of other programs lead elsewhere.
    const target = entry.isSymbolicLink() ? readlinkSync(link) : '';
    if (!target.startsWith(ours) || existsSync(link)) continue;
    // A container that is being started has its link before it has a log.
    const [directory = ''] = target.slice(ours.length).split('/');
    const uid = uidOfLogDirectory(directory);
    if (uid !== undefined && isKept(uid)) continue;
    unlinkSync(link);
    removed.push(entry.name);
  }
  return removed;
}
