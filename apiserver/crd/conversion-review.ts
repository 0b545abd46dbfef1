// The ConversionReview that a conversion webhook gets, and what of its answer is accepted: as many objects as were sent, each of
// the wanted version, and nothing of their metadata changed but labels and annotations
// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion). Pure.

import { aggregate } from '../../lib/aggregate.ts';
import { getOwn } from '../../lib/own-property.ts';
import { validateAnnotations, validateLabels } from '../kinds/metadata.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';

const GROUP = 'apiextensions.k8s.io';
/** Levels of an object: as many as a body may have. */
const MAX_DEPTH = 128;

/** What `failure_type` of the metrics calls it. */
export type FailureType =
  | 'conversion_webhook_call_failure'
  | 'conversion_webhook_malformed_response_failure'
  | 'conversion_webhook_partial_response_failure'
  | 'conversion_webhook_invalid_converted_object_failure';

/** The message is the client's. */
export class ConversionFailure extends Error {
  override name = 'ConversionFailure';
  readonly type: FailureType;
  constructor(type: FailureType, message: string) {
    super(message);
    this.type = type;
  }
}

/** The first version that both sides know. */
export function reviewVersion(versions: readonly string[]): string {
  return versions.find((version) => version === 'v1' || version === 'v1beta1') ?? 'v1';
}

export function conversionReview(
  version: string,
  uid: string,
  objects: readonly KubeObject[],
  desiredAPIVersion: string,
): JsonObject {
  return {
    kind: 'ConversionReview',
    apiVersion: `${GROUP}/${version}`,
    request: { uid, desiredAPIVersion, objects },
  };
}

/** "stable.example.com/v1, Kind=CronTab" */
export function shownKind({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): string {
  return `${apiVersion}, Kind=${kind}`;
}

/** As Go calls it. */
function typeOf(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'object') return 'map[string]interface {}';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return 'string';
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The objects of the response, which are not checked yet. Throws ConversionFailure. */
function responseObjects(body: unknown, version: string, uid: string, of: string): readonly unknown[] {
  const malformed = (why: string): ConversionFailure =>
    new ConversionFailure(
      'conversion_webhook_malformed_response_failure',
      `conversion webhook for ${of} failed: ${why}`,
    );
  const review = isObject(body) ? body : {};
  const { response } = review;
  if (version === 'v1') {
    const expected = shownKind({ apiVersion: `${GROUP}/v1`, kind: 'ConversionReview' });
    const apiVersion = text(review['apiVersion']);
    const got = shownKind({
      apiVersion: apiVersion.includes('/') ? apiVersion : `/${apiVersion}`,
      kind: text(review['kind']),
    });
    if (got !== expected) throw malformed(`expected webhook response of ${expected}, got ${got}`);
  }
  if (!isObject(response)) throw malformed('no response provided');
  if (version === 'v1' && response['uid'] !== uid) {
    throw malformed(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(text(response['uid']))}`);
  }
  const result = isObject(response['result']) ? response['result'] : {};
  if (result['status'] !== 'Success') {
    const message = text(result['message']);
    throw malformed(message === '' ? `response.result.status was '${text(result['status'])}', not 'Success'` : message);
  }
  return Array.isArray(response['convertedObjects']) ? response['convertedObjects'] : [];
}

/** The converted objects in the order of `sent`, each with its own metadata. Throws ConversionFailure. */
export function convertedObjects(
  body: unknown,
  version: string,
  uid: string,
  sent: readonly KubeObject[],
  wanted: string,
): KubeObject[] {
  const [first] = sent;
  const of = first === undefined ? '' : shownKind(first);
  const objects = responseObjects(body, version, uid, of);
  if (objects.length !== sent.length) {
    throw new ConversionFailure(
      'conversion_webhook_partial_response_failure',
      `conversion webhook for ${of} returned ${objects.length} objects, expected ${sent.length}`,
    );
  }
  return sent.map((original, index) => checked(original, objects[index], wanted, sent.length > 1 ? index : undefined));
}

/** `index`: of several objects. */
function checked(original: KubeObject, converted: unknown, wanted: string, index: number | undefined): KubeObject {
  const fail = (what: string, why: string): ConversionFailure =>
    new ConversionFailure(
      'conversion_webhook_invalid_converted_object_failure',
      `conversion webhook for ${shownKind(original)} returned ${what}: ${why}`,
    );
  const object = index === undefined ? 'invalid object' : `invalid converted object at index ${index}`;
  const place = index === undefined ? 'invalid object at index 0' : object;
  if (!isObject(converted)) throw fail(place, `invalid type, expected=Unstructured, got=${typeOf(converted)}`);
  const { apiVersion, kind, metadata } = converted;
  if (apiVersion !== wanted) {
    throw fail(place, `invalid groupVersion (expected ${wanted}, received ${text(apiVersion)})`);
  }
  if (kind !== original.kind) throw fail(place, `invalid kind (expected ${original.kind}, received ${text(kind)})`);
  if (isTooDeep(converted)) throw fail(object, `exceeded max depth: more than ${MAX_DEPTH} levels`);
  const changed = changedIdentity(original, isObject(metadata) ? metadata : {});
  if (changed !== undefined) throw fail(object, changed);
  const what = index === undefined ? 'invalid metadata' : `invalid metadata in object at index ${index}`;
  if (!('metadata' in converted)) throw fail(what, 'missing metadata in converted object');
  if (!isObject(metadata)) throw fail(what, `invalid metadata of type ${typeOf(metadata)} in converted object`);
  for (const field of ['labels', 'annotations'] as const) {
    const why = invalidMap(field, metadata[field], original.metadata[field] ?? {});
    if (why !== undefined) throw fail(what, why);
  }
  return withMetadataOf(original, { ...converted, apiVersion: wanted, kind: original.kind, metadata });
}

function changedIdentity(original: KubeObject, metadata: JsonObject): string | undefined {
  for (const [field, shown] of [
    ['name', 'name'],
    ['namespace', 'namespace'],
    ['uid', 'UID'],
  ] as const) {
    const [before, after] = [original.metadata[field] ?? '', text(metadata[field])];
    if (before !== after) return `must have the same ${shown}: ${before} != ${after}`;
  }
  return undefined;
}

function invalidMap(field: 'labels' | 'annotations', value: unknown, before: JsonObject): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return `invalid metadata.${field} of type ${typeOf(value)} in converted object`;
  const map: Record<string, string> = {};
  let isChanged = Object.keys(value).length !== Object.keys(before).length;
  for (const [key, one] of Object.entries(value)) {
    if (typeof one !== 'string') {
      return `metadata.${field}[${key}] must be a string, but is ${typeOf(one)} in converted object`;
    }
    Object.defineProperty(map, key, { value: one, enumerable: true, writable: true, configurable: true });
    isChanged ||= getOwn(before, key) !== one;
  }
  if (!isChanged) return undefined;
  const errors =
    field === 'labels' ? validateLabels('metadata.labels', map) : validateAnnotations('metadata.annotation', map);
  const lines = errors.map((error) => `${error.field}: ${error.detail}`);
  return lines.length === 0 ? undefined : aggregate(lines);
}

/** `converted` with the metadata of `original`, but for its own labels and annotations. */
export function withMetadataOf(original: KubeObject, converted: KubeObject): KubeObject {
  const { labels: _labels, annotations: _annotations, ...metadata } = original.metadata;
  const { labels, annotations } = converted.metadata;
  return {
    ...converted,
    metadata: {
      ...metadata,
      ...(labels === undefined || labels === null ? {} : { labels }),
      ...(annotations === undefined || annotations === null ? {} : { annotations }),
    },
  };
}

/** Goes by a list, not by calls. */
function isTooDeep(value: unknown): boolean {
  const left: [unknown, number][] = [[value, 1]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [one, depth] = next;
    if (typeof one !== 'object' || one === null) continue;
    if (depth > MAX_DEPTH) return true;
    for (const child of Object.values(one)) left.push([child, depth + 1]);
  }
  return false;
}
