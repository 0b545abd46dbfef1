// Reads /proc/self/mountinfo (proc(5)). Pure: the text comes from the caller. Paths in it are the kernel's, with every link
// resolved: compare them with resolved paths only.

/** One line of /proc/self/mountinfo, octal escapes undone. */
export interface MountEntry {
  readonly id: number;
  readonly parent: number;
  /** "major:minor" of the filesystem. */
  readonly device: string;
  /** The directory of the filesystem that is mounted here ("/" unless it is a bind mount of less). */
  readonly root: string;
  /** That directory or file has been removed since; the mount still shows it. */
  readonly rootDeleted: boolean;
  readonly path: string;
  /** Per-mount options ("ro", "nosuid"). */
  readonly options: readonly string[];
  /** Propagation ("shared:12", "master:3"); empty is private. */
  readonly optional: readonly string[];
  readonly fsType: string;
  readonly source: string;
  /** Per-superblock options ("size=1024k"). */
  readonly superOptions: readonly string[];
}

/** The kernel writes space, tab, newline and backslash (in the source "#" too) as three octal digits. */
function undoEscapes(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function escaped(path: string): string {
  return path.replace(/[ \t\n\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

/** What the kernel appends to the root of a mount when it has been removed: no path has two slashes of its own. */
const DELETED = '//deleted';

function parseLine(line: string, dash: number): MountEntry {
  const [id = '', parent = '', device = '', rawRoot = '', path = '', options = '', ...optional] = line
    .slice(0, dash)
    .split(' ');
  const [fsType = '', source = '', superOptions = ''] = line.slice(dash + 3).split(' ');
  const root = undoEscapes(rawRoot);
  const rootDeleted = root.endsWith(DELETED);
  return {
    id: Number(id),
    parent: Number(parent),
    device,
    root: rootDeleted ? root.slice(0, -DELETED.length) : root,
    rootDeleted,
    // A mount point that ends in " (deleted)" is really called so: Linux takes the mounts of a removed one away.
    path: undoEscapes(path),
    options: options.split(','),
    optional,
    fsType,
    source: undoEscapes(source),
    superOptions: superOptions.split(','),
  };
}

/** Every mount, in mount order. */
export function parseMountInfo(text: string): MountEntry[] {
  return text.split('\n').flatMap((line) => {
    const dash = line.indexOf(' - ');
    return dash < 0 ? [] : [parseLine(line, dash)];
  });
}

/** The topmost mount at exactly `path`; the last line wins, as mounts stack. */
export function mountAt<T extends Pick<MountEntry, 'path'>>(entries: readonly T[], path: string): T | undefined {
  return entries.findLast((entry) => entry.path === path);
}

/** Whether `path` is `directory` or inside it. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}

/** Mounts at or below `directory`, those made last first: the order to unmount in. */
export function mountsUnder<T extends Pick<MountEntry, 'path'>>(
  entries: readonly T[],
  directory: string,
): readonly T[] {
  return entries.filter(({ path }) => isWithin(path, directory)).reverse();
}

/**
 * The mounts of `text` at or below `directory`, in mount order. Lines without the directory's name are not parsed: a node full
 * of pods has many hundred mounts, and each pod that goes asks for its own.
 */
export function parseMountsUnder(text: string, directory: string): MountEntry[] {
  const name = ` ${escaped(directory)}`;
  if (!text.includes(name)) return [];
  const lines = text.split('\n').filter((line) => line.includes(name));
  return parseMountInfo(lines.join('\n')).filter(({ path }) => isWithin(path, directory));
}

/** The path of a mount at or below `directory`, or undefined. */
export function firstMountUnder(text: string, directory: string): string | undefined {
  return parseMountsUnder(text, directory)[0]?.path;
}
