// CRI's ImageService on Docker's images: names as containerd has them, pulls with the kubelet's credentials. Keeps only
// the users of images, which never change, and the last reading of the disk's use.

import { once } from 'node:events';
import { type Clock, elapsedMs, type MonotonicMs } from '../lib/clock.ts';
import { getOwn } from '../lib/own-property.ts';
import { singleFlight } from '../lib/single-flight.ts';
import type { AuthConfig__Output } from '../proto/gen/runtime/v1/AuthConfig.ts';
import type { Image } from '../proto/gen/runtime/v1/Image.ts';
import type { Handlers, Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, dockerStatus, invalid, isNotFound, unsupported } from './errors.ts';
import { dockerReference, isImageId, normalizedName, wholeNames } from './image-names.ts';
import { nanosAt } from './time.ts';

/** Docker walks every container's layer for it. ms. */
const DISK_USE_FOR_MS = 30_000;

/** "1000:1000", "nginx", "": the number or the name of an image's user. Pure. */
export function imageUser(user: string): Pick<Image, 'uid' | 'username'> {
  const [name = ''] = user.split(':');
  if (name === '') return {};
  return /^\d+$/.test(name) ? { uid: { value: name } } : { username: name };
}

/** CRI's credentials as Docker's `X-Registry-Auth`. Pure. */
export function dockerAuth(auth: AuthConfig__Output | null): Record<string, string> | undefined {
  if (auth === null) return undefined;
  const whole: Record<string, string> = {};
  if (auth.auth !== '' && auth.username === '') {
    const text = Buffer.from(auth.auth, 'base64').toString('utf8').replace(/\0+$/, '');
    const colon = text.indexOf(':');
    if (colon === -1) throw invalid('auth.auth', 'not "user:password" in base64');
    whole['username'] = text.slice(0, colon);
    whole['password'] = text.slice(colon + 1);
  } else if (auth.username !== '') {
    whole['username'] = auth.username;
    whole['password'] = auth.password;
  }
  if (auth.identity_token !== '') whole['identitytoken'] = auth.identity_token;
  if (auth.registry_token !== '') whole['registrytoken'] = auth.registry_token;
  if (Object.keys(whole).length === 0) return undefined;
  return { ...whole, ...(auth.server_address === '' ? {} : { serveraddress: auth.server_address }) };
}

/** What a registry, or Docker for it, answers where it has no such repository or tag. */
const MISSING = /manifest unknown|name unknown|manifest for \S+ not found|repository \S+ not found|does not exist$/i;

/**
 * The failure of a pull as containerd has it: NOT_FOUND for what the registry has not, INVALID_ARGUMENT for a name that is none,
 * UNKNOWN for all else. Docker answers 500 for most of them, and passes the registry's 401, 403 and 503 on: these are not about
 * the runtime, of which UNAVAILABLE would say that it is away. Pure.
 */
export function pullError(error: CriError): CriError {
  const status = dockerStatus(error.cause);
  if (status === undefined && error.code !== 'UNKNOWN') return error;
  const code = MISSING.test(error.message) ? 'NOT_FOUND' : status === 400 ? 'INVALID_ARGUMENT' : 'UNKNOWN';
  return new CriError(code, error.message, { cause: error.cause });
}

/** What a pull ended with, from the lines of its progress. Pure. */
export function pullFailure(progress: string): CriError | undefined {
  for (const line of progress.split('\n')) {
    if (!line.includes('"error"')) continue;
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed !== 'object' || parsed === null || !('error' in parsed)) continue;
    return new CriError('UNKNOWN', String(parsed.error));
  }
  return undefined;
}

interface ImageFacts {
  readonly Id: string;
  readonly RepoTags?: readonly string[] | null | undefined;
  readonly RepoDigests?: readonly string[] | null | undefined;
  readonly Size: number;
}

export class Images {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #sandboxImage: string;
  /** By image id. */
  readonly #users = new Map<string, string>();
  #diskUse: { readonly at: MonotonicMs; readonly bytes: number } | undefined;

  constructor(engine: Engine, clock: Clock, sandboxImage: string) {
    this.#engine = engine;
    this.#clock = clock;
    this.#sandboxImage = normalizedName(sandboxImage);
  }

  get handlers(): Handlers {
    return {
      ListImages: (request) => this.#list(request),
      ImageStatus: (request) => this.#status(request),
      PullImage: (request, signal) => this.#pull(request, signal),
      RemoveImage: (request) => this.#remove(request),
      ImageFsInfo: () => this.#fsInfo(),
    };
  }

  /** The image's id and the reference that containers show for it. Rejects with NOT_FOUND. */
  async find(reference: string): Promise<{ readonly id: string; readonly ref: string }> {
    const found = await this.#inspect(reference);
    if (found === undefined) throw new CriError('NOT_FOUND', `failed to resolve image "${reference}": not found`);
    return { id: found.Id, ref: wholeNames(found.RepoDigests)[0] ?? found.Id };
  }

  /** The id of the sandbox image, which is pulled when it is not there. */
  async sandboxImage(signal: AbortSignal): Promise<string> {
    const found = await this.#inspect(this.#sandboxImage);
    if (found !== undefined) return found.Id;
    return this.#pullByName(this.#sandboxImage, undefined, signal);
  }

  async #inspect(reference: string) {
    const name = dockerReference(reference);
    try {
      const found = await this.#engine.call('ImageInspect', { image: name }, (docker) =>
        docker.getImage(name).inspect(),
      );
      this.#users.set(found.Id, found.Config?.User ?? '');
      return found;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #message(image: ImageFacts): Promise<Image> {
    if (!this.#users.has(image.Id)) await this.#inspect(image.Id);
    const tags = wholeNames(image.RepoTags);
    return {
      id: image.Id,
      repo_tags: tags,
      repo_digests: wholeNames(image.RepoDigests),
      size: image.Size,
      ...imageUser(this.#users.get(image.Id) ?? ''),
      pinned: tags.includes(this.#sandboxImage),
    };
  }

  async #list({ filter }: Received<'ListImages'>): Promise<Reply<'ListImages'>> {
    const name = filter?.image?.image ?? '';
    if (name !== '') {
      const found = await this.#inspect(name);
      return { images: found === undefined ? [] : [await this.#message(found)] };
    }
    const all = await this.#engine.call('ImageList', {}, (docker) => docker.listImages());
    return { images: await Promise.all(all.map((image) => this.#message(image))) };
  }

  async #status({ image, verbose }: Received<'ImageStatus'>): Promise<Reply<'ImageStatus'>> {
    const name = image?.image ?? '';
    if (name === '') throw invalid('image.image', 'missing');
    const found = await this.#inspect(name);
    if (found === undefined) return { image: null, info: {} };
    const info: Record<string, string> = verbose
      ? { info: JSON.stringify({ imageSpec: { config: found.Config } }) }
      : {};
    return { image: await this.#message(found), info };
  }

  async #pull({ image, auth }: Received<'PullImage'>, signal: AbortSignal): Promise<Reply<'PullImage'>> {
    const name = image?.image ?? '';
    if (name === '' || isImageId(name)) throw invalid('image.image', `"${name}" is no name that a registry could have`);
    if ((image?.runtime_handler ?? '') !== '') {
      throw unsupported('image.runtime_handler', 'Docker keeps no images by runtime handler');
    }
    return { image_ref: await this.#pullByName(name, dockerAuth(auth), signal) };
  }

  async #pullByName(name: string, authconfig: object | undefined, signal: AbortSignal): Promise<string> {
    const reference = dockerReference(name);
    await this.#engine
      .call('ImageCreate', { image: reference }, async (docker) => {
        const options = { abortSignal: signal, ...(authconfig === undefined ? {} : { authconfig }) };
        const progress = await docker.pull(reference, options);
        let text = '';
        let failure: CriError | undefined;
        progress.on('data', (chunk: Buffer) => {
          const lines = `${text}${chunk.toString('utf8')}`;
          const end = lines.lastIndexOf('\n') + 1;
          failure ??= pullFailure(lines.slice(0, end));
          text = lines.slice(end);
        });
        await once(progress, 'end', { signal });
        failure ??= pullFailure(text);
        if (failure !== undefined) throw failure;
      })
      .catch((error: unknown) => {
        throw error instanceof CriError ? pullError(error) : error;
      });
    const found = await this.#inspect(reference);
    if (found === undefined) throw new CriError('NOT_FOUND', `${reference} was pulled and is gone again`);
    return found.Id;
  }

  /** The image with all its names, as with containerd. One that is not there is removed. */
  async #remove({ image }: Received<'RemoveImage'>): Promise<Reply<'RemoveImage'>> {
    const found = await this.#inspect(image?.image ?? '');
    if (found === undefined) return {};
    try {
      await this.#engine.call('ImageDelete', { image: found.Id }, (docker) =>
        docker.getImage(found.Id).remove({ force: true }),
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return {};
  }

  readonly #readDiskUse = singleFlight(async (): Promise<number> => {
    const use: unknown = await this.#engine.call('SystemDataUsage', {}, (docker) => docker.df());
    const size = typeof use === 'object' && use !== null ? getOwn({ ...use }, 'LayersSize') : undefined;
    const bytes = typeof size === 'number' ? size : 0;
    this.#diskUse = { at: this.#clock.monotonic(), bytes };
    return bytes;
  });

  /** Docker counts bytes and no inodes. */
  async #fsInfo(): Promise<Reply<'ImageFsInfo'>> {
    const info: unknown = await this.#engine.call('SystemInfo', {}, (docker) => docker.info());
    const root = typeof info === 'object' && info !== null ? getOwn({ ...info }, 'DockerRootDir') : undefined;
    const known = this.#diskUse;
    const fresh = known !== undefined && elapsedMs(known.at, this.#clock.monotonic()) < DISK_USE_FOR_MS;
    const usage = {
      timestamp: nanosAt(this.#clock),
      fs_id: { mountpoint: String(root) },
      used_bytes: { value: fresh ? known.bytes : await this.#readDiskUse() },
    };
    return { image_filesystems: [usage], container_filesystems: [usage] };
  }
}
