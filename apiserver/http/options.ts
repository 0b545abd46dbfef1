// What the query and the body of a request say about how it is to be carried out. Pure.

import { badRequest } from '../errors.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { isObject, shown } from '../patch/json-value.ts';
import type { DeleteOptions } from '../registry/delete.ts';
import type { ListOptions } from '../registry/list.ts';
import type { FieldValidation } from '../registry/registry.ts';
import { parseSelection } from '../registry/selectors.ts';
import type { WatchOptions } from '../registry/watch.ts';
import type { IncludeObject } from './render.ts';
import { flag, integer, type ResourceRequest } from './request.ts';

const PROPAGATION = ['Background', 'Foreground', 'Orphan'];

function text(query: URLSearchParams, key: string): string {
  return query.get(key) ?? '';
}

function readDryRun(values: readonly unknown[]): boolean {
  for (const value of values) {
    if (value !== 'All') {
      throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(value)}: supported values: "All"`);
    }
  }
  return values.length > 0;
}

/** Throws 400 for anything but "All". */
export function dryRun(query: URLSearchParams): boolean {
  return readDryRun(query.getAll('dryRun').filter((value) => value !== ''));
}

export function fieldValidation(query: URLSearchParams): FieldValidation {
  const value = text(query, 'fieldValidation');
  if (value === '') return 'Warn';
  if (value === 'Strict' || value === 'Warn' || value === 'Ignore') return value;
  throw badRequest(`fieldValidation: Unsupported value: "${value}": supported values: "Ignore", "Strict", "Warn"`);
}

export function includeObject(query: URLSearchParams): IncludeObject {
  const value = text(query, 'includeObject');
  if (value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'None' || value === 'Object') return value;
  throw badRequest(`includeObject: Unsupported value: "${value}": supported values: "Metadata", "None", "Object"`);
}

export function listOptions(row: ResourceKind, request: ResourceRequest): ListOptions {
  const { query, namespace } = request;
  const limit = integer(query, 'limit') ?? 0;
  if (limit < 0) throw badRequest('limit: Invalid value: must be greater than or equal to 0');
  return {
    ...(namespace === '' ? {} : { namespace }),
    selection: parseSelection(row, text(query, 'labelSelector'), text(query, 'fieldSelector')),
    limit,
    continueToken: text(query, 'continue'),
    resourceVersion: text(query, 'resourceVersion'),
    resourceVersionMatch: text(query, 'resourceVersionMatch'),
  };
}

export function watchOptions(row: ResourceKind, request: ResourceRequest): WatchOptions {
  const { query } = request;
  const { selection, resourceVersion, resourceVersionMatch, namespace } = listOptions(row, request);
  return {
    ...(namespace === undefined ? {} : { namespace }),
    selection,
    resourceVersion,
    resourceVersionMatch,
    allowBookmarks: flag(query, 'allowWatchBookmarks'),
    ...(query.has('sendInitialEvents') ? { sendInitialEvents: flag(query, 'sendInitialEvents') } : {}),
  };
}

/** DeleteOptions from a body (absent or empty: none) laid over the query. Throws 400. */
export function deleteOptions(query: URLSearchParams, body: unknown): DeleteOptions {
  const options = body === undefined || body === null ? {} : body;
  if (!isObject(options)) throw badRequest('the body of a deletion is a DeleteOptions object');
  const kind = options['kind'];
  if (kind !== undefined && kind !== '' && kind !== 'DeleteOptions') {
    throw badRequest(`${shown(kind)} cannot be handled as a DeleteOptions`);
  }
  const grace = options['gracePeriodSeconds'] ?? integer(query, 'gracePeriodSeconds');
  if (grace !== undefined && (typeof grace !== 'number' || !Number.isSafeInteger(grace))) {
    throw badRequest(`gracePeriodSeconds: Invalid value: ${JSON.stringify(grace)}: must be an integer`);
  }
  const policy = options['propagationPolicy'] ?? query.get('propagationPolicy') ?? undefined;
  if (policy !== undefined && (typeof policy !== 'string' || !PROPAGATION.includes(policy))) {
    const supported = PROPAGATION.map((p) => `"${p}"`).join(', ');
    throw badRequest(`propagationPolicy: Unsupported value: ${JSON.stringify(policy)}: supported values: ${supported}`);
  }
  const preconditions = isObject(options['preconditions']) ? options['preconditions'] : {};
  const { uid, resourceVersion } = preconditions;
  const inBody = Array.isArray(options['dryRun']) ? options['dryRun'] : [];
  return {
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    dryRun: readDryRun(inBody) || dryRun(query),
  };
}
