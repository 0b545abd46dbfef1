// What the containers of a simulated runtime write to the disk: their logs, and their last words where the agent gave them
// a place. Faults of the disk are made here, too. It keeps nothing.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ANNOTATION_TERMINATION_PATH } from '../../../agent/runtime/config/labels.ts';
import type { Faults } from '../faults.ts';
import type { Breakable } from '../witness.ts';
import type { Instance } from './state.ts';

/** What a container writes before it ends. */
export function lastWordsOf(id: string): string {
  return `last words of ${id}`;
}

/** Writes them into the file that the agent mounted for it; nothing where there is none. */
export function writeLastWords({ id, config }: Instance, faults: Faults): void {
  const path = config.annotations[ANNOTATION_TERMINATION_PATH];
  const mount = config.mounts.find(({ container_path }) => container_path === path);
  if (faults.has('last words are lost')) return;
  if (mount !== undefined && existsSync(mount.host_path)) writeFileSync(mount.host_path, lastWordsOf(id));
}

/** A container's log begins. Its directory, and everything that it mounts, has to be there. */
export function beginLog({ id, logPath, config, pod }: Instance, rules: Breakable, faults: Faults): void {
  if (!existsSync(dirname(logPath))) {
    rules.break(`${id} has no directory for its log`);
    return;
  }
  if (existsSync(logPath)) rules.break(`two instances of a container write to ${logPath}`);
  writeFileSync(logPath, `2026-01-01T00:00:00.000000000Z stdout F ${id} begins\n`);
  if (faults.has('logs are left behind')) {
    mkdirSync(join(dirname(dirname(logPath)), '../foreign'), { recursive: true });
  }
  for (const { host_path, container_path } of config.mounts) {
    if (host_path !== '' && !existsSync(host_path)) {
      rules.break(`${pod.name}: ${host_path}, which ${id} mounts as ${container_path}, is not there`);
    }
  }
}

/** A fault: the directory of links is removed. */
export function removeLogLinks({ logPath }: Instance): void {
  rmSync(join(dirname(dirname(logPath)), '../../containers'), { recursive: true, force: true });
}
