// What a request of the OCI distribution API is for, from its path, and what kind of repository that is. Pure.

import type { RegistryError } from './errors.ts';

/** The host that unqualified image names belong to. */
export const DOCKER_HUB = 'docker.io';
/** Distribution's own limit for a repository's name. */
const MAX_NAME = 255;
const COMPONENT = '[a-z0-9]+(?:(?:\\.|__|_|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^${COMPONENT}(?:/${COMPONENT})*$`);
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

export type Target =
  | { readonly kind: 'base' }
  | { readonly kind: 'token' }
  | { readonly kind: 'catalog' }
  | { readonly kind: 'manifest'; readonly repository: string; readonly reference: string }
  | { readonly kind: 'blob'; readonly repository: string; readonly digest: string }
  | { readonly kind: 'tags'; readonly repository: string }
  | { readonly kind: 'refused'; readonly error: RegistryError };

const refused = (code: RegistryError['code'], detail?: string): Target => ({
  kind: 'refused',
  error: { code, ...(detail === undefined ? {} : { detail }) },
});

export const isDigest = (text: string): boolean => DIGEST.test(text);

/** `path`: that of the URL, as it was sent. */
export function parseTarget(path: string): Target {
  if (path === '/v2' || path === '/v2/') return { kind: 'base' };
  if (path === '/token') return { kind: 'token' };
  if (path === '/v2/_catalog') return { kind: 'catalog' };
  const [, repository = '', what, last = ''] = /^\/v2\/(.+)\/(manifests|blobs|tags)\/([^/]+)$/.exec(path) ?? [];
  if (what === undefined) return refused('UNSUPPORTED');
  if (repository.length > MAX_NAME || !REPOSITORY.test(repository)) return refused('NAME_INVALID', repository);
  if (what === 'tags') return last === 'list' ? { kind: 'tags', repository } : refused('UNSUPPORTED');
  if (what === 'blobs') {
    return isDigest(last) ? { kind: 'blob', repository, digest: last } : refused('DIGEST_INVALID', last);
  }
  if (!isDigest(last) && !TAG.test(last)) return refused('TAG_INVALID', last);
  return { kind: 'manifest', repository, reference: last };
}

/** How the images below the first part of a repository's name are given out; `public` is every other. */
export const SPECIAL = ['private', 'slow', 'limited'] as const;
export type RepositoryKind = (typeof SPECIAL)[number] | 'public';

export function repositoryKind(repository: string): RepositoryKind {
  const first = repository.slice(0, repository.indexOf('/'));
  return SPECIAL.find((kind) => kind === first) ?? 'public';
}

export interface ImageReference {
  readonly host: string;
  readonly repository: string;
  readonly tag: string;
}

/** Of a full name: "docker.io/library/nginx:stable". */
export function parseFullName(name: string): ImageReference {
  const slash = name.indexOf('/');
  const colon = name.lastIndexOf(':');
  return { host: name.slice(0, slash), repository: name.slice(slash + 1, colon), tag: name.slice(colon + 1) };
}
