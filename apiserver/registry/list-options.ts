// Which combinations of a list's and a watch's options there are; all others are 422, with every reason, as upstream. Pure.

import { invalid } from '../errors.ts';
import type { FieldError } from '../kinds/resource.ts';

const FIELD = 'resourceVersionMatch';

function forbidden(why: string, field = FIELD): FieldError {
  return { type: 'FieldValueForbidden', field, detail: `Forbidden: ${why}` };
}

function unsupported(match: string, supported: readonly string[]): FieldError {
  const list = supported.map((each) => `"${each}"`).join(', ');
  const detail = `Unsupported value: ${JSON.stringify(match)}: supported values: ${list}`;
  return { type: 'FieldValueNotSupported', field: FIELD, detail };
}

function reject(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
}

interface Options {
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
}

/** Throws 422. */
export function checkListOptions(
  options: Options & { readonly continueToken: string; readonly sendInitialEvents?: boolean },
): void {
  const { resourceVersion, resourceVersionMatch: match, continueToken, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  if (match !== '') addMatchErrors(errors, resourceVersion, match, continueToken);
  if (sendInitialEvents !== undefined) {
    errors.push(forbidden('sendInitialEvents is forbidden for list', 'sendInitialEvents'));
  }
  reject(errors);
}

function addMatchErrors(errors: FieldError[], resourceVersion: string, match: string, continueToken: string): void {
  if (resourceVersion === '') errors.push(forbidden(`${FIELD} is forbidden unless resourceVersion is provided`));
  if (continueToken !== '') errors.push(forbidden(`${FIELD} is forbidden when continue is provided`));
  if (match !== 'Exact' && match !== 'NotOlderThan') errors.push(unsupported(match, ['Exact', 'NotOlderThan', '']));
  if (match === 'Exact' && resourceVersion === '0') {
    errors.push(forbidden(`${FIELD} "exact" is forbidden for resourceVersion "0"`));
  }
}

/** Throws 422. */
export function checkWatchOptions(options: Options & { readonly sendInitialEvents?: boolean }): void {
  const { resourceVersionMatch: match, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(forbidden(`sendInitialEvents requires setting ${FIELD} to NotOlderThan`));
  }
  if (match !== '' && sendInitialEvents === undefined) {
    errors.push(forbidden(`${FIELD} is forbidden for watch unless sendInitialEvents is provided`));
  }
  if (match !== '' && match !== 'NotOlderThan') errors.push(unsupported(match, ['NotOlderThan']));
  reject(errors);
}
