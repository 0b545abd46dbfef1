// Paths of the REST API: building them from names, and reading them back for the trace. Pure.

export interface ResourceLocation {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

/** The collection of a kind, its one object, or a subresource: resourcePath('v1', 'pods', { namespace: 'a' }). */
export function resourcePath(apiVersion: string, plural: string, at: ResourceLocation = {}): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const parts = [root];
  if (at.namespace !== undefined && at.namespace !== '') parts.push('namespaces', encodeURIComponent(at.namespace));
  parts.push(plural);
  if (at.name !== undefined) parts.push(encodeURIComponent(at.name));
  if (at.subresource !== undefined) parts.push(at.subresource);
  return parts.join('/');
}

export interface RequestInfo {
  /** "pods", "pods/status", or the path itself when it is not a resource's. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  /** The path is a collection's. */
  readonly collection: boolean;
}

/** Paths that were read, with what they name: a client asks for the same few again and again. */
const READ = new Map<string, RequestInfo>();
const READ_LIMIT = 500;

/** What a path names, by the rules of the API server's own RequestInfo. */
export function requestInfo(path: string): RequestInfo {
  const known = READ.get(path);
  if (known !== undefined) return known;
  const info = readPath(path);
  if (READ.size >= READ_LIMIT) READ.clear();
  READ.set(path, info);
  return info;
}

function readPath(path: string): RequestInfo {
  const segments = path.split('/').filter((segment) => segment !== '');
  const rest = segments[0] === 'api' ? segments.slice(2) : segments[0] === 'apis' ? segments.slice(3) : [];
  if (rest.length === 0) return { resource: path, collection: false };
  let parts = rest.map((part) => (part.includes('%') ? decodeURIComponent(part) : part));
  let namespace: string | undefined;
  if (parts[0] === 'namespaces' && parts.length > 1) {
    namespace = parts[1];
    if (parts.length > 2 && parts[2] !== 'status' && parts[2] !== 'finalize') parts = parts.slice(2);
  }
  const [plural = '', name, ...sub] = parts;
  return {
    resource: sub.length === 0 ? plural : `${plural}/${sub.join('/')}`,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    collection: name === undefined,
  };
}

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** "?a=1&b=2", or '' when there is nothing to say. Lists repeat their key. */
export function queryString(query: Query | undefined): string {
  if (query === undefined) return '';
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(key, String(one));
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}
