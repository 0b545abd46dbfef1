// Request bodies: bytes to a JSON value, by their content type. What the value means is for whoever asked.

import { errorMessage } from '../../lib/errors.ts';
import { badRequest, unsupportedMediaType } from './errors.ts';
import { decodeProtobuf, PROTOBUF_TYPE } from './protobuf.ts';

/** The largest body that is read, in bytes: etcd's limit with room to spare, as in the real server. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF_TYPE] as const;

export interface ParsedBody {
  readonly value: unknown;
  /** The JSON it came from; absent where no key can be there twice (YAML's parser complains). */
  readonly text?: string;
}

function parseJson(bytes: Uint8Array): ParsedBody {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${errorMessage(error)}`);
  }
}

async function parseYaml(bytes: Uint8Array): Promise<ParsedBody> {
  const { parse, YAMLError } = await import('yaml');
  try {
    // Through JSON, so that nothing is left that JSON does not have (dates, undefined, shared references).
    const value: unknown = parse(Buffer.from(bytes).toString('utf8'), { maxAliasCount: 100 });
    return { value: JSON.parse(JSON.stringify(value ?? null)) };
  } catch (error) {
    if (error instanceof YAMLError || error instanceof ReferenceError) {
      throw badRequest(`error converting YAML to JSON: ${error.message.split('\n')[0]}`);
    }
    throw error;
  }
}

/** Any JSON, YAML or protobuf body. Throws 400 for one that does not parse and 415 for other content types. */
export async function parseBody(contentType: string | undefined, bytes: Uint8Array): Promise<ParsedBody> {
  const bare = (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (bare === 'application/yaml') return parseYaml(bytes);
  if (bare === PROTOBUF_TYPE) return { value: decodeProtobuf(bytes) };
  if (bare !== '' && bare !== 'application/json' && bare !== '*/*') throw unsupportedMediaType(ACCEPTED);
  return parseJson(bytes);
}

/** The same for patches, whose content type says which patch it is. */
export function parsePatchBody(bytes: Uint8Array): unknown {
  return parseJson(bytes).value;
}
