// A configuration file of one object, YAML or JSON: text in, its fields out. The caller validates them.
// Touches no files.

import { parseDocument } from 'yaml';
import { errorMessage, type UserError } from '../../lib/errors.ts';

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The fields of the one object in `source`. Throws what `fail` makes of the reason when the text is not YAML or not
 * an object; `kind` is what should have been there.
 */
export function readYamlObject(
  source: string,
  kind: string,
  fail: (why: string, cause?: unknown) => UserError,
): Record<string, unknown> {
  const document = parseDocument(source);
  const [first] = document.errors;
  if (first !== undefined) throw fail(`is not YAML or JSON: ${first.message.split('\n')[0]}`, first);
  let value: unknown;
  try {
    value = document.toJS();
  } catch (error) {
    throw fail(errorMessage(error), error);
  }
  if (!isRecord(value)) throw fail(`must be one object of kind ${kind}`);
  return value;
}
