// Image names: whether a text is a reference at all, its default tag, and its registry and
// repository. Pure, by the grammar of the distribution project.

const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const DOMAIN_PART = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const TAG = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${COMPONENT}(?:/${COMPONENT})*)(?::(${TAG}))?(?:@(${DIGEST}))?$`);

export interface ImageName {
  /** "docker.io" where the name has none. */
  readonly registry: string;
  /** "library/nginx" */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

/** The name's parts, or the reason it is none, as the kubelet words it. */
export function parseImageName(image: string): ImageName | { readonly error: string } {
  const match = REFERENCE.exec(image);
  if (match === null || /^[a-f0-9]{64}$/.test(image)) {
    const lower = REFERENCE.test(image.toLowerCase());
    const detail = lower && image !== image.toLowerCase() ? `: repository name (${image}) must be lowercase` : '';
    return { error: `couldn't parse image name ${JSON.stringify(image)}: invalid reference format${detail}` };
  }
  const [, name = '', tag, digest] = match;
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const isRegistry = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  const path = isRegistry ? name.slice(slash + 1) : name;
  const registry = !isRegistry || first === 'index.docker.io' ? 'docker.io' : first;
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  return {
    registry,
    repository,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** The name with ":latest" where it has neither tag nor digest. Only for names that parse. */
export function withDefaultTag(image: string, { tag, digest }: ImageName): string {
  return tag === undefined && digest === undefined ? `${image}:latest` : image;
}

/** imagePullPolicy, with the API's default where nothing defaulted it. */
export function pullPolicyOf(
  policy: string | undefined,
  { tag, digest }: ImageName,
): 'Always' | 'IfNotPresent' | 'Never' {
  if (policy === 'Always' || policy === 'IfNotPresent' || policy === 'Never') return policy;
  return digest === undefined && (tag === undefined || tag === 'latest') ? 'Always' : 'IfNotPresent';
}
