// Builds the images that labs/images/*.yaml define: OCI archives in a cache directory, made once per definition and
// builder. Needs root only as far as apt does; never installs or starts what it packs.

import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { getOwn } from '../../lib/own-property.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { type ImageDefinition, parseImageDefinition } from './definition.ts';
import { ARCHITECTURES, buildOciImage } from './oci.ts';
import { DebianPackages } from './packages.ts';
import { writeTar } from './tar.ts';
import { ImageTree, type PackageSource } from './tree.ts';

/** The files whose change changes what is built. */
const BUILDER = ['build.ts', 'definition.ts', 'elf.ts', 'oci.ts', 'packages.ts', 'tar.ts', 'tree.ts'];
const HERE = fileURLToPath(new URL('.', import.meta.url));

export interface LabImage {
  readonly definition: ImageDefinition;
  /** The definition's own text: what the cache key is made of. */
  readonly source: string;
  readonly file: string;
}

export interface BuiltImage {
  readonly names: readonly string[];
  /** The OCI archive. */
  readonly archive: string;
  readonly fromCache: boolean;
}

/** Every definition in a directory, by file name. Rejects with UserError on the first that is wrong. */
export async function loadDefinitions(directory: string = HERE): Promise<readonly LabImage[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.yaml')).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const source = await readFile(join(directory, file), 'utf8');
      return { definition: parseImageDefinition(source, `labs/images/${file}`), source, file };
    }),
  );
}

/** The repository's own .cache/images when it can be written, else the user's cache directory. */
export const imageCacheDirectory = (): Promise<string> => cacheDirectoryFor('images');

/** What apt keeps between downloads: `DebianPackages`. */
export const aptCacheDirectory = (): Promise<string> => cacheDirectoryFor('apt');

async function cacheDirectoryFor(name: string): Promise<string> {
  const own = join(HERE, '..', '..', '.cache', name);
  try {
    await mkdir(own, { recursive: true });
    return own;
  } catch (error) {
    if (!isErrno(error, 'EACCES', 'EROFS', 'EPERM')) throw error;
    const user = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'nodelet', name);
    await mkdir(user, { recursive: true });
    return user;
  }
}

/** Same key, same image: the definition, the builder's code and the architecture. */
async function cacheKey(image: LabImage, architecture: string): Promise<string> {
  const hash = createHash('sha256').update(architecture).update('\0').update(image.source);
  for (const file of BUILDER) hash.update('\0').update(await readFile(join(HERE, file)));
  return hash.digest('hex').slice(0, 32);
}

/** Puts an image together from packages; the returned bytes are a function of the packages and the definition. */
export async function assemble(
  definition: ImageDefinition,
  packages: PackageSource,
  architecture: string,
): Promise<Buffer> {
  const tree = new ImageTree(packages);
  for (const spec of definition.packages) await tree.addPackage(spec);
  await tree.resolveLibraries();
  await tree.addDefinition(definition);
  return buildOciImage(definition, writeTar(tree.entries()), architecture).archive;
}

async function machineArchitecture(): Promise<string> {
  const debian = (await execOk('dpkg', ['--print-architecture'])).trim();
  const architecture = getOwn(ARCHITECTURES, debian);
  if (architecture === undefined) throw new UserError(`images cannot be built for Debian's architecture ${debian}`);
  return architecture;
}

/**
 * The archives of `images`, from the cache or built now; `say` gets one line per image that is built. Rejects with
 * UserError when something must be built and its packages cannot be had.
 */
export async function buildImages(
  images: readonly LabImage[],
  say: (line: string) => void,
  cacheDirectory?: string,
): Promise<readonly BuiltImage[]> {
  const cache = cacheDirectory ?? (await imageCacheDirectory());
  const architecture = await machineArchitecture();
  const plans = await Promise.all(
    images.map(async (image) => {
      const archive = join(cache, `${image.file.replace(/\.yaml$/, '')}-${await cacheKey(image, architecture)}.tar`);
      // The digest file detects a truncated archive.
      const sum = await readFileIfExists(`${archive}.sha256`);
      const cached = sum !== undefined && sum.trim() === (await digestIfExists(archive));
      return { image, archive, cached };
    }),
  );
  const missing = plans.filter((plan) => !plan.cached);
  if (missing.length > 0) {
    const work = await mkdtemp(join(tmpdir(), 'nodelet-images-'));
    try {
      const packages = new DebianPackages(work, await aptCacheDirectory());
      await packages.prefetch([
        ...new Set(missing.flatMap((plan) => plan.image.definition.packages.map((p) => p.name))),
      ]);
      for (const plan of missing) {
        say(`building ${plan.image.definition.names[0]} from Debian packages`);
        const data = await assemble(plan.image.definition, packages, architecture);
        await writeFileAtomic(plan.archive, data);
        await writeFileAtomic(`${plan.archive}.sha256`, `${createHash('sha256').update(data).digest('hex')}\n`);
      }
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      const names = missing.map((plan) => plan.image.definition.names[0]).join(', ');
      throw new UserError(`no registry, no cached archive, and ${names} cannot be built: ${errorMessage(error)}`);
    } finally {
      await removeTree(work);
    }
  }
  return plans.map((plan) => ({
    names: plan.image.definition.names,
    archive: plan.archive,
    fromCache: plan.cached,
  }));
}

async function digestIfExists(path: string): Promise<string | undefined> {
  try {
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
