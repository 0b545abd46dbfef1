// Masks registry credentials in what is recorded: PullImageRequest.auth, and the metadata "authorization". Pure.

import type { Metadata } from './calls.ts';
import { frameMessage, MessageReader } from './grpc-messages.ts';
import { lengthField, readFields, WireError } from './wire.ts';

export const REDACTED = '<redacted>';
/** PullImageRequest.auth, an AuthConfig. */
const AUTH_FIELD = 2;

export function redactMetadata(metadata: Metadata): Metadata {
  return metadata.map(([name, value]) => [name, name === 'authorization' ? REDACTED : value]);
}

/** Every text of AuthConfig (username, password, auth, server_address, identity_token, registry_token) becomes one word. */
export function redactPullImage(message: Buffer): Buffer {
  const parts = readFields(message).map(({ number, value, raw }) => {
    if (number !== AUTH_FIELD || typeof value === 'bigint') return raw;
    const fields = readFields(value).map((field) => lengthField(field.number, Buffer.from(REDACTED)));
    return lengthField(AUTH_FIELD, Buffer.concat(fields));
  });
  return Buffer.concat(parts);
}

/** The whole body of a PullImage request; undefined where it cannot be read. */
export function redactedRequest(body: Buffer): Buffer | undefined {
  try {
    const reader = new MessageReader();
    const messages = reader.push(body);
    return reader.rest > 0 ? undefined : Buffer.concat(messages.map((each) => frameMessage(redactPullImage(each))));
  } catch (error) {
    // zlib's errors for a message that is compressed in another way are plain errors with a code.
    if (error instanceof WireError || (error instanceof Error && 'code' in error)) return undefined;
    throw error;
  }
}
