// The file tree of an image while it is put together: packages' files, then the libraries that these need, then what
// the definition adds. Reads unpacked packages; writes nothing.

import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { ImageDefinition, PackageSpec } from './definition.ts';
import { readElfNeeds } from './elf.ts';
import type { UnpackedPackage } from './packages.ts';
import type { TarEntry } from './tar.ts';

/** Merged /usr, as every Debian since 12 has it: packages may still name the old places. */
const MERGED: Readonly<Record<string, string>> = {
  '/bin': 'usr/bin',
  '/sbin': 'usr/sbin',
  '/lib': 'usr/lib',
  '/lib32': 'usr/lib32',
  '/lib64': 'usr/lib64',
};
const BASE_DIRECTORIES = [
  '/dev',
  '/etc',
  '/proc',
  '/root',
  '/run',
  '/sys',
  '/usr/bin',
  '/usr/lib',
  '/usr/sbin',
  '/var',
];
const DOCUMENTATION = [
  '/usr/share/doc',
  '/usr/share/man',
  '/usr/share/info',
  '/usr/share/locale',
  '/usr/share/lintian',
];

/** `/lib/x` → `/usr/lib/x`. Pure. */
export function mergedPath(path: string): string {
  const slash = path.indexOf('/', 1);
  const top = slash < 0 ? path : path.slice(0, slash);
  const target = getOwn(MERGED, top);
  return target === undefined ? path : `/${target}${slash < 0 ? '' : path.slice(slash)}`;
}

/** Whether a package's file goes into the image. Pure. */
export function isTaken(path: string, spec: PackageSpec): boolean {
  // A licence travels with what it licenses.
  if (path === `/usr/share/doc/${spec.name}/copyright`) return true;
  if (spec.take !== undefined) return spec.take.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  return !DOCUMENTATION.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
}

/** Where packages come from; `DebianPackages`, or a table in a test. */
export interface PackageSource {
  get(name: string): Promise<UnpackedPackage>;
}

type Node = TarEntry;

export class ImageTree {
  readonly #nodes = new Map<string, Node>();
  readonly #source: PackageSource;
  /** Files whose dependencies have not been resolved. */
  readonly #unresolved: { readonly data: Buffer; readonly path: string; readonly owner: UnpackedPackage }[] = [];

  constructor(source: PackageSource) {
    this.#source = source;
  }

  #put(node: Node): void {
    for (let parent = dirname(`/${node.path}`); parent !== '/'; parent = dirname(parent)) {
      const path = parent.slice(1);
      if (!this.#nodes.has(path)) this.#nodes.set(path, { type: 'directory', path, mode: 0o755, uid: 0, gid: 0 });
    }
    this.#nodes.set(node.path, node);
  }

  has(path: string): boolean {
    return this.#nodes.has(path.slice(1));
  }

  /** Takes one file, link or directory of a package, under its merged path. */
  async #take(owner: UnpackedPackage, path: string): Promise<void> {
    const host = join(owner.directory, path);
    const stat = await lstat(host);
    const at = { path: mergedPath(path).slice(1), uid: 0, gid: 0 };
    if (stat.isSymbolicLink()) this.#put({ ...at, type: 'link', mode: 0o777, target: await readlink(host) });
    else if (stat.isDirectory()) {
      if (getOwn(MERGED, path) === undefined) this.#put({ ...at, type: 'directory', mode: stat.mode & 0o7777 });
    } else if (stat.isFile()) {
      const data = await readFile(host);
      this.#put({ ...at, type: 'file', mode: stat.mode & 0o7777, data });
      this.#unresolved.push({ data, path, owner });
    } else throw new UserError(`${owner.name} holds ${path}, which is neither file, link nor directory`);
  }

  async addPackage(spec: PackageSpec): Promise<void> {
    const owner = await this.#source.get(spec.name);
    const paths = await listPaths(owner.directory);
    const taken = paths.filter((path) => isTaken(path, spec));
    for (const prefix of spec.take ?? []) {
      if (!taken.some((path) => path === prefix || path.startsWith(`${prefix}/`))) {
        throw new UserError(`the package ${spec.name} has no ${prefix}`);
      }
    }
    for (const path of taken) await this.#take(owner, path);
  }

  /** Adds every library that a taken program or library names, from the packages its own package depends on. */
  async resolveLibraries(): Promise<void> {
    for (let file = this.#unresolved.pop(); file !== undefined; file = this.#unresolved.pop()) {
      const needs = readElfNeeds(file.data);
      if (needs === undefined) continue;
      const names = [...(needs.interpreter === undefined ? [] : [posix.basename(needs.interpreter)]), ...needs.needed];
      for (const name of names) {
        if (!this.#hasLibrary(name)) await this.#addLibrary(name, file.owner, file.path);
      }
      if (needs.interpreter !== undefined) this.#linkInterpreter(needs.interpreter);
    }
  }

  /** The kernel loads the interpreter from one fixed path, which packages provide as a link. */
  #linkInterpreter(interpreter: string): void {
    const path = mergedPath(interpreter).slice(1);
    if (this.#nodes.has(path)) return;
    const name = posix.basename(path);
    const target = [...this.#nodes.keys()].find((each) => each.startsWith('usr/lib') && posix.basename(each) === name);
    if (target === undefined) throw new Error(`${interpreter} was added, but is in no library directory`);
    this.#put({ type: 'link', path, mode: 0o777, uid: 0, gid: 0, target: `/${target}` });
  }

  #hasLibrary(name: string): boolean {
    for (const path of this.#nodes.keys()) {
      if (path.endsWith(`/${name}`) && path.startsWith('usr/lib')) return true;
    }
    return false;
  }

  async #addLibrary(name: string, owner: UnpackedPackage, neededBy: string): Promise<void> {
    // Debian names every library a package links with in its Depends; libraries' own packages first.
    const libraryFirst = owner.depends.toSorted((a, b) => Number(isLibrary(b)) - Number(isLibrary(a)));
    for (const candidate of [owner.name, ...libraryFirst]) {
      const holder = await this.#source.get(candidate);
      const path = (await listPaths(holder.directory)).find(
        (each) => posix.basename(each) === name && /^\/(usr\/)?lib/.test(each),
      );
      if (path === undefined) continue;
      await this.#takeLinked(holder, path);
      const licence = `/usr/share/doc/${holder.name}/copyright`;
      if ((await listPaths(holder.directory)).includes(licence)) await this.#take(holder, licence);
      return;
    }
    throw new UserError(`${neededBy} of ${owner.name} needs ${name}, which none of the packages it depends on has`);
  }

  /** A library's name is often a link to the file with the full version. */
  async #takeLinked(owner: UnpackedPackage, path: string): Promise<void> {
    await this.#take(owner, path);
    const node = this.#nodes.get(mergedPath(path).slice(1));
    if (node?.type !== 'link') return;
    const target = posix.resolve(posix.dirname(path), node.target);
    await this.#takeLinked(owner, target);
  }

  /** The definition's own files; they override those of packages. */
  async addDefinition(definition: ImageDefinition): Promise<void> {
    for (const [path, target] of Object.entries(MERGED)) {
      if (this.has(`/${target}`) || BASE_DIRECTORIES.includes(`/${target}`)) {
        this.#put({ type: 'link', path: path.slice(1), mode: 0o777, uid: 0, gid: 0, target });
      }
    }
    for (const path of BASE_DIRECTORIES) this.#directory(path, 0o755, 0);
    for (const path of ['/tmp', '/var/tmp']) this.#directory(path, 0o1777, 0);
    const users = [
      { name: 'root', id: 0, home: '/root' },
      { name: 'nobody', id: 65534, home: '/nonexistent' },
      ...definition.users,
    ];
    const idOf = (name: string): number => {
      const user = users.find((each) => each.name === name);
      if (user === undefined) throw new UserError(`${definition.names[0]}: there is no user "${name}" in users`);
      return user.id;
    };
    const shell = (id: number): string => (id === 0 ? '/bin/sh' : '/usr/sbin/nologin');
    this.#file(
      '/etc/passwd',
      users.map((u) => `${u.name}:x:${u.id}:${u.id}:${u.name}:${u.home}:${shell(u.id)}\n`).join(''),
    );
    this.#file('/etc/group', users.map((user) => `${user.name}:x:${user.id}:\n`).join(''));
    for (const each of definition.directories) this.#directory(each.path, each.mode, idOf(each.user));
    for (const each of definition.files) this.#file(each.path, each.content, each.mode, idOf(each.user));
    for (const [path, target] of Object.entries(definition.links)) {
      this.#put({ type: 'link', path: mergedPath(path).slice(1), mode: 0o777, uid: 0, gid: 0, target });
    }
    if (definition.applets !== undefined) await this.#addApplets(definition.applets);
  }

  #directory(path: string, mode: number, id: number): void {
    this.#put({ type: 'directory', path: mergedPath(path).slice(1), mode, uid: id, gid: id });
  }

  #file(path: string, content: string, mode = 0o644, id = 0): void {
    this.#put({ type: 'file', path: mergedPath(path).slice(1), mode, uid: id, gid: id, data: Buffer.from(content) });
  }

  /** Reads the applets with the binary's `--list`, which runs without installation. */
  async #addApplets(binary: string): Promise<void> {
    const path = mergedPath(binary).slice(1);
    for (const name of ['busybox-static', 'busybox']) {
      const owner = await this.#source.get(name);
      const file = (await listPaths(owner.directory)).find((each) => mergedPath(each).slice(1) === path);
      if (file === undefined) continue;
      const list = await execOk(join(owner.directory, file), ['--list']);
      for (const applet of list.split('\n').filter((each) => each !== '' && each !== posix.basename(binary))) {
        const at = `usr/bin/${applet}`;
        const taken = ['bin', 'sbin'].some((dir) => this.#nodes.has(`usr/${dir}/${applet}`));
        if (!taken) this.#put({ type: 'link', path: at, mode: 0o777, uid: 0, gid: 0, target: posix.basename(binary) });
      }
      return;
    }
    throw new UserError(`${binary} is in no package that is known to have applets`);
  }

  /** Sorted by path, parents before children. */
  entries(): readonly TarEntry[] {
    return [...this.#nodes.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }
}

function isLibrary(name: string): boolean {
  return name.startsWith('lib') || name.startsWith('zlib');
}

const listings = new Map<string, Promise<readonly string[]>>();

/** Every path below a directory, as absolute paths from it. Packages do not change once unpacked. */
function listPaths(directory: string): Promise<readonly string[]> {
  let listing = listings.get(directory);
  if (listing === undefined) {
    listing = readdir(directory, { recursive: true }).then((paths) => paths.map((path) => `/${path}`).toSorted());
    listings.set(directory, listing);
  }
  return listing;
}
