// Which pods, containers and images of an answer a command shows: expressions for names, states, the newest ones, images
// before and after another. Pure.

import { UserError } from '../../lib/errors.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Flags } from './arguments.ts';

type Labels = { readonly [key: string]: string };

export const POD_NAME_LABEL = 'io.kubernetes.pod.name';
export const POD_NAMESPACE_LABEL = 'io.kubernetes.pod.namespace';

/** The name in a label of the kubelet's; "unknown" where a container has none. */
export function fromLabel(labels: Labels, label: string): string {
  return getOwn(labels, label) ?? 'unknown';
}

/** A regular expression of a flag; "" matches everything. `(?i)` in front is Go's for case-insensitive. */
export function pattern(flag: string, source: string): RegExp {
  const [, insensitive, expression = ''] = /^(\(\?i\))?([\s\S]*)$/.exec(source) ?? [];
  try {
    return new RegExp(expression, insensitive === undefined ? 'u' : 'iu');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UserError(`--${flag} "${source}" is no regular expression: ${error.message}`);
  }
}

export interface Newest {
  readonly latest: boolean;
  /** 0: all. */
  readonly last: number;
}

/** The newest first, and only so many. */
export function newestFirst<T extends { readonly created_at: string }>(items: readonly T[], limit: Newest): T[] {
  const sorted = [...items].sort((a, b) => {
    const [x, y] = [BigInt(a.created_at), BigInt(b.created_at)];
    return x < y ? 1 : x > y ? -1 : 0;
  });
  const count = limit.last > 0 ? limit.last : limit.latest ? 1 : sorted.length;
  return sorted.slice(0, count);
}

export function newestOf(flags: Flags): Newest {
  return { latest: flags.bool('latest'), last: flags.number('last') };
}

const CONTAINER_STATES = new Map([
  ['created', 'CONTAINER_CREATED'],
  ['running', 'CONTAINER_RUNNING'],
  ['exited', 'CONTAINER_EXITED'],
  ['unknown', 'CONTAINER_UNKNOWN'],
] as const);
export type ContainerStateName = typeof CONTAINER_STATES extends Map<string, infer Name> ? Name : never;

/** The state that ListContainers is asked for; undefined is any. Throws UserError for a word that is none. */
export function containerState(state: string, all: boolean, limit: Newest): ContainerStateName | undefined {
  const word = [...CONTAINER_STATES].find(([name]) => name === state.toLowerCase());
  if (state !== '' && word === undefined) {
    throw new UserError('--state should be one of created, running, exited or unknown');
  }
  // The newest are wanted whatever became of them.
  if (limit.latest || limit.last > 0) return undefined;
  if (word !== undefined) return word[1];
  return all ? undefined : 'CONTAINER_RUNNING';
}

/** The same for ListPodSandbox. */
export function sandboxState(state: string): 'SANDBOX_READY' | 'SANDBOX_NOTREADY' | undefined {
  if (state === '') return undefined;
  const word = state.toLowerCase();
  if (word !== 'ready' && word !== 'notready') throw new UserError('--state should be ready or notready');
  return word === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY';
}

export interface ImageNames {
  readonly id: string;
  readonly repo_tags: readonly string[];
  readonly repo_digests: readonly string[];
}

const NONE = '<none>';

/** Repository and digest of an image's first digest. */
export function repoDigest({ repo_digests: [first] }: ImageNames): readonly [string, string] {
  if (first === undefined) return [NONE, NONE];
  const parts = first.split('@');
  const [repository = '', digest = ''] = parts;
  return parts.length === 2 ? [repository, digest] : ['errorName', 'errorRepoDigest'];
}

/** Repository and tag of each tag; an image without tags has one pair. */
export function repoTags(image: ImageNames): readonly (readonly [string, string])[] {
  const [repository] = repoDigest(image);
  if (image.repo_tags.length === 0) return [[repository, NONE]];
  return image.repo_tags.map((tag) => {
    const colon = tag.lastIndexOf(':');
    if (colon < 0) return ['errorRepoTag', 'errorRepoTag'];
    const name = tag.slice(0, colon);
    return [name === NONE ? repository : name, tag.slice(colon + 1)];
  });
}

const order = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** By first tag, else by first digest, else by id. */
export function byReference(a: ImageNames, b: ImageNames): number {
  const [x, y] = [a.repo_tags[0], b.repo_tags[0]];
  if (x !== undefined && y !== undefined) return order(x, y);
  const [d, e] = [a.repo_digests[0], b.repo_digests[0]];
  return d !== undefined && e !== undefined ? order(d, e) : order(a.id, b.id);
}

/** Images of a sorted list that come in front of the one that `name` means. */
function until<T extends ImageNames>(images: readonly T[], name: string): T[] {
  const digest = name.includes('@');
  const isIt = (image: T): boolean => {
    if (digest) return image.repo_digests[0]?.startsWith(name) === true;
    if (name.includes(':')) return repoTags(image)[0]?.join(':') === name;
    return image.id.replace(/^sha256:/, '').startsWith(name);
  };
  const found = images.findIndex(isIt);
  return found < 0 ? [...images] : images.slice(0, found);
}

/** Applies --filter conditions one after the other to a sorted list. Throws UserError for one that is not known. */
export function filterImages<T extends ImageNames>(images: readonly T[], conditions: readonly string[]): T[] {
  let left = [...images];
  for (const condition of conditions) {
    const [, name = '', value = ''] = /^(before|since|dangling|reference)=([\s\S]*)$/.exec(condition) ?? [];
    if (name === 'before') left = until(left.toReversed(), value).reverse();
    else if (name === 'since') left = until(left, value);
    else if (name === 'dangling' && (value === 'true' || value === 'false')) {
      left = left.filter((image) => (image.repo_tags.length === 0) === (value === 'true'));
    } else if (name === 'reference') {
      const expression = pattern('filter reference', value);
      left = left.filter((image) => expression.test(repoDigest(image)[0]));
    } else throw new UserError(`unknown filter flag: ${condition}`);
  }
  return left;
}

/** The first 13 characters, without `prefix`. */
export function shortId(id: string, prefix = ''): string {
  return (id.startsWith(prefix) ? id.slice(prefix.length) : id).slice(0, 13);
}
