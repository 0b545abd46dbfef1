// mountPropagation needs the agent's root to be on a shared mount: then what a Bidirectional container mounts reaches the
// machine, and what the machine mounts later reaches a HostToContainer container. With systemd / is shared and there is
// nothing to do.

import { realpath } from 'node:fs/promises';
import type { MountEntry, Mounter } from '../ports/mounter.ts';

/** The mount that `path` is on; pure. */
export function mountOf(entries: readonly MountEntry[], path: string): MountEntry | undefined {
  const on = entries.filter(({ path: at }) => at === '/' || path === at || path.startsWith(`${at}/`));
  const longest = Math.max(...on.map(({ path: at }) => at.length));
  return on.findLast(({ path: at }) => at.length === longest);
}

export function isShared(entry: MountEntry | undefined): boolean {
  return entry?.optional.some((field) => field.startsWith('shared:')) ?? false;
}

/**
 * Makes `rootDir` a shared mount where it is not on one, by binding it onto itself as the kubelet does. For the start of
 * the agent, before any pod's volume is mounted. Resolves to whether a mount was made; a caller that removes the root
 * directory for good unmounts it.
 */
export async function ensureSharedRoot(rootDir: string, mounter: Mounter): Promise<boolean> {
  const root = await realpath(rootDir);
  const entries = await mounter.list();
  if (isShared(mountOf(entries, root))) return false;
  // Mounts already below would be hidden by the new one and never be found again.
  if (entries.some(({ path }) => path.startsWith(`${root}/`))) {
    throw new Error(`${root} is not on a shared mount and carries mounts already; mountPropagation will not work`);
  }
  await mounter.mount({ source: root, target: root, options: ['bind', 'rshared'] });
  return true;
}
