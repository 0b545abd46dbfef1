// Reads /proc/self/mountinfo (proc(5)). Pure.

import type { MountEntry } from '../ports/mounter.ts';

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function undoEscapes(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

export function parseMountInfo(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    const dash = line.indexOf(' - ');
    if (dash < 0) continue;
    const [id = '', parent = '', device = '', root = '', path = '', options = '', ...optional] = line
      .slice(0, dash)
      .split(' ');
    const [fsType = '', source = '', superOptions = ''] = line.slice(dash + 3).split(' ');
    entries.push({
      id: Number(id),
      parent: Number(parent),
      device,
      root: undoEscapes(root),
      path: undoEscapes(path),
      options: options.split(','),
      optional,
      fsType,
      source: undoEscapes(source),
      superOptions: superOptions.split(','),
    });
  }
  return entries;
}

/** The topmost mount at exactly `path`; the last line wins, as mounts stack. */
export function mountAt(entries: readonly MountEntry[], path: string): MountEntry | undefined {
  return entries.findLast((entry) => entry.path === path);
}

/** Mounts at or below `directory`, those made last first: the order to unmount in. */
export function mountsUnder(entries: readonly MountEntry[], directory: string): readonly MountEntry[] {
  return entries.filter(({ path }) => path === directory || path.startsWith(`${directory}/`)).reverse();
}
