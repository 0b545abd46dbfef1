// Counts and times one request, from its head to the end of its response. Labels are of what is served: what a client makes
// up in a path becomes no label.

import { type Clock, elapsedMs } from '../../lib/clock.ts';
import { isHealthPath } from '../../lib/health-checks.ts';
import type { HttpRequest, HttpResponse } from '../../lib/http-message.ts';
import { getOwn } from '../../lib/own-property.ts';
import { StatusError } from '../errors.ts';
import { type Metrics, type RequestLabels, type ServedRequest, verbLabel } from '../metrics.ts';
import type { Registry } from '../registry/registry.ts';
import { type ApiRequest, parseRequest } from './request.ts';

const PATHS = new Set(['/metrics', '/metrics/slis', '/version', '/api', '/apis', '/openapi/v2', '/openapi/v3']);

/** The labels of a request. Pure. */
export function labelsOf(
  request: ApiRequest,
  isServed: (group: string, version: string, plural: string) => boolean,
): RequestLabels {
  const none = { group: '', version: '', resource: '', subresource: '', scope: '', dry_run: '' } as const;
  if (request.kind === 'path') {
    const subresource = isHealthPath(request.path) ? (request.path.split('/')[1] ?? '') : request.path;
    const known = isHealthPath(request.path) || PATHS.has(request.path);
    return { ...none, verb: verbLabel(request.verb), subresource: known ? subresource : '' };
  }
  const { verb, group, version, resource, subresource, namespace, name, query } = request;
  if (!isServed(group, version, resource)) return { ...none, verb: verbLabel(verb) };
  return {
    verb: verbLabel(verb),
    group,
    version,
    resource,
    // One of a served resource may still be made up.
    subresource: KNOWN.has(subresource) ? subresource : '',
    scope: name !== '' ? 'resource' : namespace !== '' ? 'namespace' : 'cluster',
    dry_run: query.get('dryRun') === 'All' ? 'All' : '',
  };
}

const KNOWN = new Set([
  'approval',
  'attach',
  'binding',
  'ephemeralcontainers',
  'eviction',
  'exec',
  'finalize',
  'log',
  'portforward',
  'proxy',
  'resize',
  'scale',
  'status',
  'token',
]);

export interface MeasureParts {
  readonly metrics: Metrics;
  readonly registry: Registry;
  readonly clock: Clock;
}

/** Counts the request as being served now, and in the totals when its response is over. */
export function measure(
  { metrics, registry, clock }: MeasureParts,
  { method = 'GET', url = '/' }: HttpRequest,
  response: HttpResponse,
): void {
  const parsed = parsedOf(method, url);
  if (parsed === undefined) return;
  const labels = labelsOf(parsed, (group, version, plural) => registry.row(group, version, plural) !== undefined);
  const { group, version, resource } = labels;
  if (resource !== '' && registry.row(group, version, resource)?.warning !== undefined) {
    metrics.deprecated(group, version, resource);
  }
  const began = clock.monotonic();
  const over = metrics.begin(labels, labels.verb === 'WATCH' || LONG.has(labels.subresource));
  const notes: Notes = {};
  known.set(response, notes);
  response.once('close', () => {
    over({ code: response.statusCode, seconds: elapsedMs(began, clock.monotonic()) / 1000, ...notes });
  });
}

type Notes = { -readonly [Key in 'waited' | 'bytes' | 'terminated']?: ServedRequest[Key] };
const known = new WeakMap<HttpResponse, Notes>();

/** What those who serve a request know of it, for its figures. */
export function note(response: HttpResponse, notes: Notes): void {
  Object.assign(known.get(response) ?? {}, notes);
}

const LONG = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** Undefined for a head that is no request; its refusal is not counted. */
function parsedOf(method: string, url: string): ApiRequest | undefined {
  try {
    return parseRequest(method, url);
  } catch (error) {
    if (error instanceof StatusError) return undefined;
    throw error;
  }
}

const BODY_VERBS: Readonly<Record<string, string>> = {
  create: 'create',
  update: 'update',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'delete',
};

/** Counts the bytes of a request's body, where it is one of an object of this server. */
export function measureBody({ metrics, registry }: MeasureParts, request: ApiRequest, bytes: number): void {
  const verb = request.kind === 'resource' ? getOwn(BODY_VERBS, request.verb) : undefined;
  if (bytes === 0 || verb === undefined || request.kind !== 'resource') return;
  const { group, resource } = request;
  if (registry.hasRow(group, resource)) metrics.requestBody(group, resource, verb, bytes);
}
