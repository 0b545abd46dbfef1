// Parses request bodies to a JSON value, by their content type, within the limits of limits.ts. The caller interprets
// the value.

import { errorMessage } from '../../lib/errors.ts';
import { nextTurn } from '../../lib/turns.ts';
import { badRequest, StatusError, unsupportedMediaType } from '../errors.ts';
import { checkJsonLimits, LARGE_BYTES, PATCH_LIMITS } from '../limits.ts';
import type { Converter } from './convert-aside.ts';
import { decodeProtobuf } from './protobuf.ts';
import { PROTOBUF_TYPE } from './protobuf-messages.ts';

const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF_TYPE] as const;

export interface ParsedBody {
  readonly value: unknown;
  /** The JSON it came from; absent where no key can be there twice. */
  readonly text?: string;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Throws 400 and 413. */
function parseJson(bytes: Uint8Array): ParsedBody {
  checkJsonLimits(bytes, "couldn't get version/kind; json parse error: the body");
  const text = textOf(bytes);
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${errorMessage(error)}`);
  }
}

async function parseYaml(bytes: Uint8Array, converter: Converter): Promise<ParsedBody> {
  // Through JSON, so that nothing is left that JSON does not have (dates, undefined, shared references).
  const json = await converter.convert('yaml-to-json', Buffer.from(bytes).toString('utf8'));
  return { value: JSON.parse(json) };
}

async function parse(type: string, bytes: Uint8Array, converter: Converter): Promise<ParsedBody> {
  if (type === 'application/yaml') return parseYaml(bytes, converter);
  if (type === PROTOBUF_TYPE) return { value: decodeProtobuf(bytes) };
  if (type !== '' && type !== 'application/json' && type !== '*/*') throw unsupportedMediaType(ACCEPTED);
  return parseJson(bytes);
}

/**
 * Any JSON, YAML or protobuf body. Rejects with 400 for one that does not parse, 413 for one with too much in it, and
 * 415 for other content types. A large body is parsed without blocking the event loop.
 */
export async function parseBody(
  contentType: string | undefined,
  bytes: Uint8Array,
  converter: Converter,
): Promise<ParsedBody> {
  const bare = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const parsed = await parse(bare, bytes, converter);
  if (bytes.length >= LARGE_BYTES) await nextTurn();
  return parsed;
}

/** The same for patches, whose content type is the type of the patch. Throws 400 and 413. */
export function parsePatchBody(bytes: Uint8Array): unknown {
  checkJsonLimits(bytes, 'error decoding patch: the body', PATCH_LIMITS);
  try {
    return JSON.parse(textOf(bytes));
  } catch (error) {
    throw badRequest(`error decoding patch: ${errorMessage(error)}`);
  }
}

/** A configuration to apply: YAML, or JSON, which is YAML too. Rejects with 400 and 413. */
export async function parseApplyBody(bytes: Uint8Array, converter: Converter): Promise<unknown> {
  try {
    return await parseJsonOrYaml(bytes, converter);
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 400)
      throw badRequest(`error decoding YAML: ${error.message}`);
    throw error;
  }
}

async function parseJsonOrYaml(bytes: Uint8Array, converter: Converter): Promise<unknown> {
  // What begins like JSON can still be YAML alone: with a comma after the last element, or a comment.
  if (/^\s*\{\s*"/.test(textOf(bytes.subarray(0, 256)))) {
    checkJsonLimits(bytes, 'error converting YAML to JSON: the body');
    const value = jsonValue(textOf(bytes));
    if (value !== undefined) return value;
  }
  return (await parseYaml(bytes, converter)).value;
}

/** Undefined for what is no JSON. */
function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
