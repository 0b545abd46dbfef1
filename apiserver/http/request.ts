// Parses method, path and query by the rules of the API server's RequestInfo. Pure.

import { getOwn } from '../../lib/own-property.ts';
import { badRequest } from '../errors.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export interface ResourceRequest {
  readonly kind: 'resource';
  readonly verb: Verb;
  readonly group: string;
  readonly version: string;
  /** Plural. */
  readonly resource: string;
  /** '' when the request is about the object itself. */
  readonly subresource: string;
  /** What follows the subresource, as after nodes/<name>/proxy/; '' or starting with "/". */
  readonly tail: string;
  readonly namespace: string;
  readonly name: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface PathRequest {
  readonly kind: 'path';
  /** The method in lower case. */
  readonly verb: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

export type ApiRequest = ResourceRequest | PathRequest;

const VERBS: Readonly<Record<string, Verb>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
/** Second-level names that are a subresource of the namespace itself. */
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

/** "1", "t", "true" in the ways Go reads booleans; '' is true for a key without a value. */
export function flag(query: URLSearchParams, key: string): boolean {
  const value = query.get(key);
  return value !== null && !['0', 'f', 'F', 'false', 'False', 'FALSE'].includes(value);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    if (error instanceof URIError) throw badRequest(`the path cannot be decoded at "${segment}"`);
    throw error;
  }
}

/** Reads a request target ("/api/v1/pods?watch=1"). Throws 400 for one that cannot be decoded. */
export function parseRequest(method: string, target: string): ApiRequest {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
  const parts = path.split('/').slice(1);
  const root = parts[0];
  const prefix = root === 'api' ? 2 : root === 'apis' ? 3 : 0;
  if (prefix === 0 || parts.length <= prefix || parts[prefix] === '') {
    return { kind: 'path', verb: method.toLowerCase(), path, query };
  }
  const group = root === 'api' ? '' : decode(parts[1] ?? '');
  const version = decode(parts[prefix - 1] ?? '');
  let rest = parts.slice(prefix);
  const oldWatch = rest[0] === 'watch' && rest.length > 1;
  if (oldWatch) rest = rest.slice(1);
  let namespace = '';
  if (rest[0] === 'namespaces' && (rest[1] ?? '') !== '') {
    namespace = decode(rest[1] ?? '');
    if (rest.length > 2 && !NAMESPACE_SUBRESOURCES.has(rest[2] ?? '') && rest[2] !== '') rest = rest.slice(2);
  }
  const [resource = '', name = '', subresource = ''] = rest.slice(0, 3).map(decode);
  const tail = rest.slice(3).join('/');
  let verb = getOwn(VERBS, method) ?? 'get';
  if (verb === 'get' && (name === '' || oldWatch)) verb = oldWatch || flag(query, 'watch') ? 'watch' : 'list';
  if (verb === 'delete' && name === '') verb = 'deletecollection';
  if (oldWatch && name !== '') query.set('fieldSelector', `metadata.name=${name}`);
  return {
    kind: 'resource',
    verb,
    group,
    version,
    resource,
    subresource,
    tail: rest.length > 3 ? `/${tail}` : '',
    namespace,
    name: oldWatch ? '' : name,
    path,
    query,
  };
}

/** A whole number parameter; undefined when it is not there. Throws 400. */
export function integer(query: URLSearchParams, key: string): number | undefined {
  const text = query.get(key);
  if (text === null || text === '') return undefined;
  const value = Number(text);
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`${key}: Invalid value: "${text}": must be an integer`);
  }
  return value;
}
