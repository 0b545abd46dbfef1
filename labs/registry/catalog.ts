// Which repositories there are, and what they have: the lab's images under their own names, and under private/…, slow/… and limited/… of every
// registry. An archive is looked for, or built, when it is first pulled from.

import { access, constants } from 'node:fs/promises';
import { isErrno } from '../../lib/errors.ts';
import { type ArchivedImage, readArchive } from './archive.ts';
import type { Content } from './content.ts';
import { type DerivedImage, deriveImage } from './derived.ts';
import { DOCKER_HUB, type ImageReference, isDigest, parseFullName, repositoryKind, SPECIAL } from './names.ts';
import { paddingLayer } from './padding.ts';
import { TIMED_TAGS, timedPullMs } from './timed.ts';

/** More images to be pulled, since a runtime fetches one only once. */
const LIMITED_TAGS = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];
const LIBRARY = 'library/';
/** What images that take a time to be pulled are made of, under a name that every registry has. */
const TIMED_BASE = 'slow/busybox';

/** An image that the lab can have. */
export interface LabImageSource {
  /** Full names. */
  readonly names: readonly string[];
  /** Resolves with the path of its OCI archive. Rejects with UserError when there is none and none can be made. */
  readonly archive: () => Promise<string>;
}

export interface CatalogOptions {
  readonly images: () => Promise<readonly LabImageSource[]>;
  /** Registries whose own images are left to them. */
  readonly reachable: ReadonlySet<string>;
  /** What slow/… images have on top, bytes. */
  readonly paddingBytes: number;
}

export interface Repository {
  readonly name: string;
  readonly tags: readonly string[];
  /** By tag or digest. Rejects as `LabImageSource.archive`. */
  manifest(reference: string): Promise<Content | undefined>;
  /** Rejects as `LabImageSource.archive`. */
  blob(digest: string): Promise<Content | undefined>;
}

/** The repositories of a host that the names make, with their tags. Pure. */
export function repositoriesOf(
  host: string,
  images: readonly LabImageSource[],
  reachable: ReadonlySet<string>,
): ReadonlyMap<string, { readonly image: LabImageSource; readonly tags: readonly string[] }> {
  const found = new Map<string, { readonly image: LabImageSource; readonly tags: string[] }>();
  const add = (name: string, image: LabImageSource, tags: readonly string[]): void => {
    const there = found.get(name) ?? { image, tags: [] };
    there.tags.push(...tags);
    found.set(name, there);
  };
  for (const image of images) {
    const references: readonly ImageReference[] = image.names.map(parseFullName);
    for (const { host: own, repository, tag } of references) {
      if (own === host && !reachable.has(host)) add(repository, image, [tag]);
      if (own !== DOCKER_HUB || !repository.startsWith(LIBRARY)) continue;
      for (const kind of SPECIAL) add(`${kind}/${repository.slice(LIBRARY.length)}`, image, [tag]);
    }
  }
  for (const [name, { tags }] of found) {
    if (repositoryKind(name) === 'limited') tags.push(...LIMITED_TAGS);
    tags.sort();
  }
  return found;
}

export class Catalog {
  readonly #options: CatalogOptions;
  readonly #archives = new Map<LabImageSource, { readonly path: string; readonly image: ArchivedImage }>();
  #images: Promise<readonly LabImageSource[]> | undefined;
  #padding: Promise<Content> | undefined;

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  async #repositories(host: string): Promise<ReturnType<typeof repositoriesOf>> {
    const { images, reachable } = this.#options;
    this.#images ??= images();
    return repositoriesOf(host, await this.#images, reachable);
  }

  /** In the order of their names. */
  async names(host: string): Promise<readonly string[]> {
    return [...(await this.#repositories(host)).keys()].toSorted();
  }

  /** Undefined where there is none of that name. */
  async find(host: string, name: string): Promise<Repository | undefined> {
    const isTimed = host === DOCKER_HUB && timedPullMs(name) !== undefined;
    const found = (await this.#repositories(host)).get(isTimed ? TIMED_BASE : name);
    if (found === undefined) return undefined;
    const { image } = found;
    const tags = isTimed ? TIMED_TAGS : found.tags;
    return {
      name,
      tags,
      manifest: (reference) => this.#manifest(image, name, tags, reference),
      blob: async (digest) => {
        const { config, layers } = await this.#tagged(image, name, tags[0] ?? '');
        return [config, ...layers].find((each) => each.digest === digest);
      },
    };
  }

  async #manifest(
    image: LabImageSource,
    name: string,
    tags: readonly string[],
    reference: string,
  ): Promise<Content | undefined> {
    if (!isDigest(reference)) {
      return tags.includes(reference) ? (await this.#tagged(image, name, reference)).manifest : undefined;
    }
    for (const tag of tags) {
      const { manifest } = await this.#tagged(image, name, tag);
      if (manifest.digest === reference) return manifest;
    }
    return undefined;
  }

  /** Config and layers of all tags of a repository are the same. */
  async #tagged(source: LabImageSource, name: string, tag: string): Promise<DerivedImage> {
    const image = await this.#archived(source);
    const takesMs = timedPullMs(name);
    // A layer of its own: a runtime fetches one that it has from another image no more.
    if (takesMs !== undefined)
      return deriveImage(image, `${name}:${tag}`, { ...(await paddingLayer(1, name)), takesMs });
    const kind = repositoryKind(name);
    if (kind === 'public') return image;
    return deriveImage(image, `${name}:${tag}`, kind === 'slow' ? await this.#paddingLayer() : undefined);
  }

  #paddingLayer(): Promise<Content> {
    this.#padding ??= paddingLayer(this.#options.paddingBytes);
    return this.#padding;
  }

  /** The cache of archives is the user's: one that was removed is made again. */
  async #archived(source: LabImageSource): Promise<ArchivedImage> {
    const known = this.#archives.get(source);
    if (known !== undefined && (await isThere(known.path))) return known.image;
    const path = await source.archive();
    const image = await readArchive(path);
    this.#archives.set(source, { path, image });
    return image;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}
