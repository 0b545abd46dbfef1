// A virtual machine's disks, made without mounting anything: Debian's own files, and the project with its packages and images.
// Each is named by what it was made from, and made again only when that has changed. A third has what a run brings along.

import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno, UserError } from '../../lib/errors.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { unmountBelow } from '../../lib/mounts.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { buildImages, loadDefinitions } from '../images/build.ts';
import {
  debootstrapArguments,
  IMAGE_FILES,
  IMAGE_LINKS,
  INPUT_LABEL,
  mkfsArguments,
  ROOT_LABEL,
  rootKey,
  shortHash,
  TREE_LABEL,
} from './plan.ts';

export interface RootDisk {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
  readonly fromCache: boolean;
}

export interface Making {
  /** Of all disks; it is there. */
  readonly cache: string;
  /** A directory that is the run's own and not there yet. */
  readonly work: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

async function exists(path: string): Promise<boolean> {
  try {
    await readdir(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

/** Everything in `cache` of one kind except the current one: older disks are unused. */
async function removeOthers(cache: string, prefix: string, keep: string): Promise<void> {
  for (const name of await readdir(cache)) {
    if (name.startsWith(prefix) && name !== keep) await removeTree(join(cache, name));
  }
}

/** Debian as a disk image with its kernel beside it. Rejects with UserError when Debian's archive cannot be had. */
export async function rootDisk({ cache, work, say, signal }: Making): Promise<RootDisk> {
  const name = `root-${rootKey()}`;
  const directory = join(cache, name);
  const disk = { disk: join(directory, 'disk'), kernel: join(directory, 'vmlinuz'), initrd: join(directory, 'initrd') };
  if (await exists(directory)) return { ...disk, fromCache: true };
  await mkdir(work);
  const tree = join(work, 'tree');
  say('installing Debian into a directory with debootstrap');
  await debootstrap(tree, signal);
  await putFiles(tree);
  await rename(await newest(join(tree, 'boot'), 'vmlinuz-'), join(work, 'vmlinuz'));
  await rename(await newest(join(tree, 'boot'), 'initrd.img-'), join(work, 'initrd'));
  say('making the root disk');
  await execOk('mkfs.ext4', mkfsArguments(tree, join(work, 'disk'), ROOT_LABEL, '4G'), { signal });
  await removeTree(tree);
  // Under its name only when it is whole; another run may have made the same meanwhile.
  await rename(work, directory).catch((error: unknown) => {
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  });
  await removeOthers(cache, 'root-', name);
  return { ...disk, fromCache: false };
}

async function debootstrap(tree: string, signal: AbortSignal): Promise<void> {
  const result = await exec('debootstrap', debootstrapArguments(tree), { signal });
  // Whatever ended it, its mounts in the directory must not outlive it.
  await unmountBelow([tree]);
  if (result.code !== 0) {
    const words = result.stdout.trim().split('\n').slice(-5).join('\n');
    throw new UserError(`debootstrap failed (${result.code ?? result.signal}):\n${words}\n${result.stderr.trim()}`);
  }
  await removeTree(join(tree, 'var/cache/apt/archives'));
  await removeTree(join(tree, 'var/lib/apt/lists'));
}

async function putFiles(tree: string): Promise<void> {
  for (const file of IMAGE_FILES) {
    const path = join(tree, file.path);
    await mkdir(dirname(path), { recursive: true });
    // debootstrap copies some of ours from the host, a link among them perhaps.
    await rm(path, { force: true });
    await writeFile(path, file.text);
    await chmod(path, file.mode);
  }
  for (const link of IMAGE_LINKS) {
    const path = join(tree, link.path);
    await mkdir(dirname(path), { recursive: true });
    await rm(path, { force: true });
    await symlink(link.target, path);
  }
}

async function newest(directory: string, prefix: string): Promise<string> {
  const name = (await readdir(directory))
    .filter((entry) => entry.startsWith(prefix))
    .toSorted()
    .at(-1);
  if (name === undefined) throw new Error(`debootstrap left no ${prefix}* in ${directory}`);
  return join(directory, name);
}

/** What the machine needs of the project: its sources, what npm installed, and the lab's images, built beforehand. */
export const SOURCES: readonly string[] = [
  'agent',
  'apiserver',
  'bin',
  'cli',
  'client',
  'cni',
  'controlplane',
  'csi',
  'dns',
  'dockershim',
  'labs',
  'lib',
  'netpol',
  'proto',
  'proxy',
  'scripts',
  'test/support',
  'test/vm',
  'package.json',
];

/** The project as a disk image. `root` is the checkout. */
export async function treeDisk(
  root: string,
  { cache, work, say, signal }: Making,
): Promise<{ disk: string; fromCache: boolean }> {
  const built = await buildImages(await loadDefinitions(), say);
  signal.throwIfAborted();
  const archives = built.flatMap(({ archive }) => [archive, `${archive}.sha256`]).toSorted();
  const sources = await existing(root, SOURCES);
  const lock = await readFile(join(root, 'package-lock.json'), 'utf8');
  const files = await listFiles(root, sources);
  const parts = [lock, ...archives];
  for (const file of files) {
    parts.push(
      file,
      createHash('sha256')
        .update(await readFile(join(root, file)))
        .digest('hex'),
    );
  }
  const name = `tree-${shortHash(parts)}.ext4`;
  const disk = join(cache, name);
  if ((await readdir(cache)).includes(name)) return { disk, fromCache: true };
  say('making the disk with the project');
  const [tree, made] = [join(work, 'tree'), join(work, 'disk')];
  await mkdir(tree, { recursive: true });
  for (const path of sources) await cp(join(root, path), join(tree, path), { recursive: true });
  await copyPackages(join(root, 'node_modules'), join(tree, 'node_modules'), signal);
  await mkdir(join(tree, '.cache/images'), { recursive: true });
  for (const archive of archives) await execOk('cp', [archive, join(tree, '.cache/images')], { signal });
  await execOk('mkfs.ext4', mkfsArguments(tree, made, TREE_LABEL, '2G'), { signal });
  await rename(made, disk);
  await removeTree(work);
  await removeOthers(cache, 'tree-', name);
  return { disk, fromCache: false };
}

/** Hard links: these are many and never edited in place. Copies, where the cache is on another file system. */
async function copyPackages(from: string, to: string, signal: AbortSignal): Promise<void> {
  const [{ dev: here }, { dev: there }] = [await stat(from), await stat(dirname(to))];
  await execOk('cp', [here === there ? '-al' : '-a', from, to], { signal });
}

const MiB = 1024 * 1024;

/**
 * A disk with these files, made in `directory`, which is the run's own: by name, a text, or the path of a file that can be
 * executed there.
 */
export async function inputDisk(
  directory: string,
  files: ReadonlyMap<string, { readonly text: string } | { readonly copyOf: string }>,
  signal: AbortSignal,
): Promise<string> {
  const [tree, disk] = [join(directory, 'input'), join(directory, 'input.ext4')];
  await mkdir(tree);
  let bytes = 0;
  for (const [name, file] of files) {
    const path = join(tree, name);
    if ('text' in file) await writeFile(path, file.text);
    else {
      await execOk('cp', ['-L', file.copyOf, path], { signal });
      await chmod(path, 0o755);
    }
    bytes += (await stat(path)).size;
  }
  // What the file system itself needs is a small part of it, and a few MiB at least.
  const size = `${Math.ceil((bytes * 1.1) / MiB) + 16}M`;
  await execOk('mkfs.ext4', mkfsArguments(tree, disk, INPUT_LABEL, size), { signal });
  await removeTree(tree);
  return disk;
}

async function existing(root: string, paths: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const names = await readdir(join(root, dirname(path)));
    if (names.includes(path.slice(path.lastIndexOf('/') + 1))) found.push(path);
  }
  return found;
}

/** Files below `paths`, by name, so that the order is the same everywhere. */
async function listFiles(root: string, paths: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of paths) {
    try {
      const entries = await readdir(join(root, path), { withFileTypes: true });
      const below = entries.map((entry) => `${path}/${entry.name}`);
      found.push(...(await listFiles(root, below)));
    } catch (error) {
      if (!isErrno(error, 'ENOTDIR')) throw error;
      found.push(path);
    }
  }
  return found.toSorted();
}
