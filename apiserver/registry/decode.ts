// From parsed JSON to an object of a row: kind and apiVersion fit, metadata is there, fields are the schema's. What
// is wrong becomes 400, or warnings where the caller requested them.

import { badRequest } from '../errors.ts';
import type { KubeObject, KubeObjectMeta, ResourceKind } from '../kinds/resource.ts';
import { isObject, type JsonObject, shown } from '../patch/json-value.ts';
import type { CheckBody } from '../ports.ts';
import { apiVersionOf, type WriteOptions } from './registry.ts';

function cannotHandle(row: ResourceKind, why: string): Error {
  return badRequest(`${row.kind} in version "${row.version}" cannot be handled as a ${row.kind}: ${why}`);
}

/**
 * `body` as an object of the row, in place. `text` is what it was parsed from, for finding duplicate fields; a patched
 * object has none.
 */
export function decodeObject(
  checkBody: CheckBody,
  row: ResourceKind,
  body: unknown,
  text: string | undefined,
  options: Pick<WriteOptions, 'fieldValidation' | 'warn'>,
): KubeObject {
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  checkType(row, body);
  const shownText = options.fieldValidation === 'Ignore' ? undefined : text;
  const { strict, fatal } = row.custom?.checkBody(body, shownText) ?? checkBody(row, body, shownText);
  if (fatal !== undefined) throw cannotHandle(row, fatal);
  if (strict.length > 0) {
    if (options.fieldValidation === 'Strict') {
      throw cannotHandle(row, `strict decoding error: ${strict.join(', ')}`);
    }
    if (options.fieldValidation === 'Warn') for (const warning of strict) options.warn(warning);
  }
  const metadata = body['metadata'] ?? {};
  if (!isObject(metadata))
    throw cannotHandle(row, 'json: cannot unmarshal metadata into Go value of type v1.ObjectMeta');
  return asKubeObject(row, body, metadata);
}

function checkType(row: ResourceKind, body: JsonObject): void {
  const expected = apiVersionOf(row);
  const { apiVersion, kind } = body;
  if (apiVersion !== undefined && apiVersion !== '' && apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${shown(apiVersion)}) does not match the expected API version (${expected})`,
    );
  }
  if (kind !== undefined && kind !== '' && kind !== row.kind) {
    throw badRequest(
      `${shown(kind)} in version "${row.version}" cannot be handled as a ${row.kind}: the object provided is unrecognized (must be of type ${row.kind})`,
    );
  }
}

function asKubeObject(row: ResourceKind, body: JsonObject, metadata: KubeObjectMeta): KubeObject {
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = body;
  return { kind: row.kind, apiVersion: apiVersionOf(row), metadata, ...rest };
}
