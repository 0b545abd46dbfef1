// A file of rules of the tap: YAML with a mapping of some known keys. What the rules mean is their module's.

import { readFile } from 'node:fs/promises';
import { parse, YAMLParseError } from 'yaml';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { isJsonObject, type JsonObject } from './json.ts';

/** The mapping in `text`, which has no other keys than `keys`. `needed`: what it must have, for the message. Throws UserError. */
export function parseRulesFile(
  text: string,
  file: string,
  keys: readonly [string, string],
  needed: string,
): JsonObject {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    if (error instanceof YAMLParseError) throw new UserError(`${file}: ${error.message}`);
    throw error;
  }
  if (!isJsonObject(value)) throw new UserError(`${file}: must have ${needed}`);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new UserError(`${file}: "${unknown}" is neither ${keys.map((key) => `"${key}"`).join(' nor ')}`);
  }
  return value;
}

/** Rejects with UserError. */
export async function readRulesFile(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UserError(`cannot read the rules: ${errorMessage(error)}`);
  });
}
