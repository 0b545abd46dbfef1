// What the query and the body of a request say about how it is to be carried out. Pure.

import { getOwn } from '../../lib/own-property.ts';
import { badRequest, invalid } from '../errors.ts';
import type { FieldError, ResourceKind } from '../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../patch/json-value.ts';
import type { DeleteOptions, Propagation } from '../registry/delete.ts';
import type { ListOptions } from '../registry/list.ts';
import type { FieldValidation } from '../registry/registry.ts';
import { parseSelection } from '../registry/selectors.ts';
import type { WatchOptions } from '../registry/watch.ts';
import type { Form } from './negotiate.ts';
import type { IncludeObject } from './render.ts';
import { flag, integer, type ResourceRequest, type Verb } from './request.ts';

const PROPAGATION = ['Foreground', 'Background', 'Orphan'] as const;

function text(query: URLSearchParams, key: string): string {
  return query.get(key) ?? '';
}

const DRY_RUN = ['All'];
const FIELD_VALIDATION = ['', 'Ignore', 'Strict', 'Warn'];
const MAX_MANAGER_BYTES = 128;
const OPTIONS: Partial<Record<Verb, string>> = {
  create: 'CreateOptions',
  update: 'UpdateOptions',
  patch: 'PatchOptions',
  delete: 'DeleteOptions',
  deletecollection: 'DeleteOptions',
};

function unsupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const detail = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map((each) => `"${each}"`).join(', ')}`;
  return { type: 'FieldValueNotSupported', field, detail };
}

/** Throws 422 in the name of the verb's options. */
function reject(verb: Verb, errors: readonly FieldError[]): void {
  if (errors.length > 0)
    throw invalid({ group: 'meta.k8s.io', kind: getOwn(OPTIONS, verb) ?? 'ListOptions' }, '', errors);
}

/** "All" is the only value there is. */
function dryRunErrors(values: readonly unknown[]): FieldError[] {
  return values.some((value) => value !== 'All') ? [unsupported('dryRun', values, DRY_RUN)] : [];
}

function fieldManagerErrors(manager: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > MAX_MANAGER_BYTES) {
    const detail = `Too long: may not be more than ${MAX_MANAGER_BYTES} bytes`;
    errors.push({ type: 'FieldValueTooLong', field: 'fieldManager', detail });
  }
  for (const [index, character] of Array.from(manager).entries()) {
    if (isPrintable(character)) continue;
    const point = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const detail = `Invalid value: ${JSON.stringify(manager)}: invalid character U+${point} (at position ${index})`;
    errors.push({ type: 'FieldValueInvalid', field: 'fieldManager', detail });
  }
  return errors;
}

/** As Go's unicode.IsPrint: no control characters, and of spaces only the plain one. */
function isPrintable(character: string): boolean {
  return character === ' ' || /^[^\p{C}\p{Z}]$/u.test(character);
}

/** The options of a create, an update or a patch. Throws 422. */
export function writeOptions(
  verb: Verb,
  query: URLSearchParams,
  isApply: boolean,
): { dryRun: boolean; fieldValidation: FieldValidation; fieldManager: string } {
  const errors: FieldError[] = [];
  const fieldManager = text(query, 'fieldManager');
  if (isApply && fieldManager === '') {
    errors.push({
      type: 'FieldValueRequired',
      field: 'fieldManager',
      detail: 'Required value: is required for apply patch',
    });
  }
  if (verb === 'patch' && !isApply && text(query, 'force') !== '') {
    errors.push({
      type: 'FieldValueForbidden',
      field: 'force',
      detail: 'Forbidden: may not be specified for non-apply patch',
    });
  }
  errors.push(...fieldManagerErrors(fieldManager));
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  errors.push(...dryRunErrors(dryRun));
  const value = text(query, 'fieldValidation');
  const fieldValidation = value === 'Strict' || value === 'Ignore' ? value : 'Warn';
  if (!FIELD_VALIDATION.includes(value)) {
    errors.push(unsupported('fieldValidation', value, FIELD_VALIDATION));
  }
  reject(verb, errors);
  return { dryRun: dryRun.length > 0, fieldValidation, fieldManager };
}

/** The manager of a client that names none: its User-Agent up to the first "/". */
export function managerOf(userAgent = ''): string {
  let manager = '';
  for (const character of userAgent.split('/')[0] ?? '') {
    if (!isPrintable(character)) continue;
    if (Buffer.byteLength(manager + character) > MAX_MANAGER_BYTES) break;
    manager += character;
  }
  return manager;
}

/** Of a table; other forms do not look at it. Throws 400. */
export function includeObject(query: URLSearchParams, { as }: Pick<Form, 'as'>): IncludeObject {
  const value = text(query, 'includeObject');
  if (as !== 'table' || value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'None' || value === 'Object') return value;
  const why = "must be 'Metadata', 'Object', 'None', or empty";
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: ${why}`,
  );
}

/** A whole number among a list's options; undefined when it is not there. Throws 400 with Go's words. */
function number(query: URLSearchParams, key: string): number | undefined {
  const value = text(query, key);
  if (value !== '' && !/^[+-]?\d+$/.test(value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
  }
  return integer(query, key);
}

export function listOptions(row: ResourceKind, request: ResourceRequest): ListOptions {
  const { query, namespace } = request;
  number(query, 'timeoutSeconds');
  return {
    ...(namespace === '' ? {} : { namespace }),
    selection: parseSelection(row, text(query, 'labelSelector'), text(query, 'fieldSelector')),
    // As upstream: a negative one is none.
    limit: Math.max(0, number(query, 'limit') ?? 0),
    ...(query.has('sendInitialEvents') ? { sendInitialEvents: flag(query, 'sendInitialEvents') } : {}),
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

/** The policy for dependents; `orphanDependents` is its predecessor. */
function propagationOf(options: JsonObject, query: URLSearchParams, errors: FieldError[]): Propagation | undefined {
  const policy = options['propagationPolicy'] ?? query.get('propagationPolicy') ?? undefined;
  const orphan =
    options['orphanDependents'] ?? (query.has('orphanDependents') ? flag(query, 'orphanDependents') : undefined);
  const known = PROPAGATION.find((each) => each === policy);
  if (policy !== undefined && typeof orphan === 'boolean') {
    const why = 'orphanDependents and deletionPropagation cannot be both set';
    const detail = `Invalid value: ${JSON.stringify(policy)}: ${why}`;
    errors.push({ type: 'FieldValueInvalid', field: 'propagationPolicy', detail });
  }
  if (policy !== undefined && known === undefined) {
    errors.push(unsupported('propagationPolicy', policy, [...PROPAGATION, 'nil']));
  }
  if (typeof orphan === 'boolean') return orphan ? 'Orphan' : 'Background';
  return known;
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
  const errors: FieldError[] = [];
  const propagation = propagationOf(options, query, errors);
  const preconditions = isObject(options['preconditions']) ? options['preconditions'] : {};
  const { uid, resourceVersion } = preconditions;
  const inBody = Array.isArray(options['dryRun']) ? options['dryRun'] : [];
  const dryRun = [...inBody, ...query.getAll('dryRun').filter((value) => value !== '')];
  reject('delete', [...errors, ...dryRunErrors(dryRun)]);
  return {
    ...(propagation === undefined ? {} : { propagation }),
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
    dryRun: dryRun.length > 0,
  };
}
