// Debian packages as directories: downloads them with apt's own client and unpacks them with dpkg-deb. Nothing is ever
// installed, configured or started on this machine.

import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { removeTree } from '../../lib/remove-tree.ts';

export interface UnpackedPackage {
  readonly name: string;
  /** Holds the package's files as they would lie under "/". */
  readonly directory: string;
  /** Direct dependencies, first alternative of each. */
  readonly depends: readonly string[];
}

/** The names in a Depends field: "libc6 (>= 2.36), awk | mawk:any" → libc6, awk. Pure. */
export function parseDepends(field: string): readonly string[] {
  return field
    .split(',')
    .map((item) => item.split('|')[0] ?? '')
    .map((item) =>
      item
        .replace(/\(.*\)/, '')
        .trim()
        .replace(/:.*$/, ''),
    )
    .filter((name) => name !== '');
}

/** Downloads each package at most once, below one working directory. */
export class DebianPackages {
  readonly #work: string;
  readonly #aptCache: string;
  readonly #unpacked = new Map<string, Promise<UnpackedPackage>>();
  #updated: Promise<void> | undefined;
  /**
   * `aptCache`: where apt keeps its index of the lists from call to call. Container images of Debian turn apt's own off, and
   * every call then takes a second of processor time to read the lists.
   */
  constructor(work: string, aptCache = join(work, 'apt')) {
    this.#work = work;
    this.#aptCache = aptCache;
  }

  /** Rejects with UserError when neither apt's cache nor its servers have the package. */
  get(name: string): Promise<UnpackedPackage> {
    let unpacked = this.#unpacked.get(name);
    if (unpacked === undefined) {
      unpacked = this.#unpack(name);
      this.#unpacked.set(name, unpacked);
    }
    return unpacked;
  }

  /** Downloads many at once: one apt run is far cheaper than one per package. */
  async prefetch(names: readonly string[]): Promise<void> {
    const missing = names.filter((name) => !this.#unpacked.has(name));
    if (missing.length > 0) await this.#download(join(this.#work, 'debs'), missing);
  }

  async #download(directory: string, names: readonly string[]): Promise<void> {
    await mkdir(directory, { recursive: true });
    await mkdir(this.#aptCache, { recursive: true });
    const index = `Dir::Cache::pkgcache=${join(this.#aptCache, 'pkgcache.bin')}`;
    const options = ['-qq', '-o', 'APT::Sandbox::User=root', '-o', index];
    const download = () => exec('apt-get', [...options, 'download', ...names], { cwd: directory });
    let result = await download();
    if (result.code !== 0) {
      // Lists that are missing or older than the archive: once, bring them up to date.
      this.#updated ??= exec('apt-get', ['-qq', 'update']).then(() => undefined);
      await this.#updated;
      result = await download();
    }
    if (result.code !== 0) {
      const lastLine = result.stderr.trim().split('\n').at(-1) ?? '';
      throw new UserError(`cannot download the Debian package ${names.join(', ')}: ${lastLine}`);
    }
  }

  async #unpack(name: string): Promise<UnpackedPackage> {
    const debs = join(this.#work, 'debs');
    let deb = await findDeb(debs, name);
    if (deb === undefined) {
      await this.#download(debs, [name]);
      deb = await findDeb(debs, name);
    }
    if (deb === undefined) throw new Error(`apt-get download ${name} left no file in ${debs}`);
    const directory = join(this.#work, 'unpacked', name);
    await removeTree(directory);
    await mkdir(directory, { recursive: true });
    await execOk('dpkg-deb', ['-x', deb, directory]);
    const fields = await execOk('dpkg-deb', ['--show', '--showformat', '$' + '{Pre-Depends},$' + '{Depends}', deb]);
    return { name, directory, depends: parseDepends(fields) };
  }
}

async function findDeb(directory: string, name: string): Promise<string | undefined> {
  await mkdir(directory, { recursive: true });
  const file = (await readdir(directory)).find((entry) => entry.startsWith(`${name}_`) && entry.endsWith('.deb'));
  return file === undefined ? undefined : join(directory, file);
}
