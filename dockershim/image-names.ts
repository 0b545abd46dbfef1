// Names of images: Docker shows the short ones that people type ("busybox"), CRI the whole ones that containerd keeps
// ("docker.io/library/busybox:latest"). Pure.

const DEFAULT_REGISTRY = 'docker.io';
const DEFAULT_TAG = 'latest';

/** "sha256:…" or 64 hexadecimal digits: an image's id, no name. */
export function isImageId(reference: string): boolean {
  return /^(sha256:)?[0-9a-f]{64}$/.test(reference);
}

/** A first part with a dot, a colon or the name localhost is a registry; else the name is Docker Hub's. */
function wholeRepository(repository: string): string {
  const slash = repository.indexOf('/');
  const first = slash === -1 ? '' : repository.slice(0, slash);
  const hasRegistry = first === 'localhost' || /[.:]/.test(first);
  if (!hasRegistry) return `${DEFAULT_REGISTRY}/${slash === -1 ? 'library/' : ''}${repository}`;
  const rest = repository.slice(slash + 1);
  if (first !== DEFAULT_REGISTRY && first !== 'index.docker.io') return repository;
  return `${DEFAULT_REGISTRY}/${rest.includes('/') ? '' : 'library/'}${rest}`;
}

interface Reference {
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
}

function parts(reference: string): Reference {
  const at = reference.indexOf('@');
  const named = at === -1 ? reference : reference.slice(0, at);
  const digest = at === -1 ? '' : reference.slice(at + 1);
  // A colon before the last slash belongs to the registry's port.
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  if (colon === -1) return { repository: named, tag: '', digest };
  return { repository: named.slice(0, colon), tag: named.slice(colon + 1), digest };
}

/** The whole name, with the tag "latest" where there is neither tag nor digest. An id stays what it is. */
export function normalizedName(reference: string): string {
  if (isImageId(reference)) return reference;
  const { repository, tag, digest } = parts(reference);
  const whole = wholeRepository(repository);
  if (digest !== '') return `${whole}${tag === '' ? '' : `:${tag}`}@${digest}`;
  return `${whole}:${tag === '' ? DEFAULT_TAG : tag}`;
}

/** As Docker looks an image up: with a digest the tag says nothing. */
export function dockerReference(reference: string): string {
  if (isImageId(reference)) return reference;
  const { repository, tag, digest } = parts(normalizedName(reference));
  return digest === '' ? `${repository}:${tag}` : `${repository}@${digest}`;
}

/** The tags or digests of Docker's lists as CRI has them, without "<none>". */
export function wholeNames(names: readonly string[] | null | undefined): string[] {
  return (names ?? []).filter((name) => !name.includes('<none>')).map(normalizedName);
}
