// The JSON of an object as it is stored: as text, or encrypted where the configuration says so.

import { errorMessage } from '../../lib/errors.ts';
import type { Encryption } from './encryption/load.ts';
import { identity, isEncrypted } from './encryption/transformers.ts';
import { DEFAULT_PREFIX, storageKey } from './keys.ts';
import type { ObjectKey } from './object-store.ts';

/** A value cannot be read: its key is not in the configuration, or it was tampered with. */
export class UnreadableValueError extends Error {
  override name = 'UnreadableValueError';
}

export interface ReadValue {
  readonly text: string;
  /** Present where a new write would be stored otherwise. */
  readonly stale?: true;
}

/** As it is in a file: encrypted values are bytes. */
export type Value = string | Uint8Array;

export class Values {
  readonly #encryption: Encryption | undefined;

  readonly #prefix: string;

  constructor(encryption: Encryption | undefined, prefix = DEFAULT_PREFIX) {
    this.#encryption = encryption;
    this.#prefix = prefix;
  }

  /** Whether values of the resource may be other than their text. */
  transforms(resource: string): boolean {
    return this.#encryption?.transformer(resource) !== undefined;
  }

  /** Text where it is not encrypted. */
  encode(key: ObjectKey, text: string): Value {
    const transformer = this.#encryption?.transformer(key.resource);
    if (transformer === undefined) return text;
    const bytes = transformer.toStorage(Buffer.from(text), storageKey(key, this.#prefix));
    return isEncrypted(bytes) ? bytes : text;
  }

  /** A stored value in the form in which it would be written now; one that cannot be read as it is. */
  renew(key: ObjectKey, stored: unknown): Value {
    const value = stored instanceof Uint8Array ? stored : typeof stored === 'string' ? stored : '';
    if (!this.transforms(key.resource)) return value;
    try {
      const { text, stale } = this.decode(key, value);
      return stale === true ? this.encode(key, text) : value;
    } catch (error) {
      if (error instanceof UnreadableValueError) return value;
      throw error;
    }
  }

  /** Throws UnreadableValueError, which names the object. */
  decode(key: ObjectKey, value: unknown): ReadValue {
    if (typeof value === 'string' && !this.transforms(key.resource)) return { text: value };
    const stored =
      value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(typeof value === 'string' ? value : '');
    const { bytes, stale } = this.decodeBytes(key, stored);
    return stale === undefined ? { text: bytes.toString() } : { text: bytes.toString(), stale };
  }

  /** The same for bytes that need not be JSON. Throws UnreadableValueError. */
  decodeBytes(key: ObjectKey, stored: Buffer): { readonly bytes: Buffer; readonly stale?: true } {
    const path = storageKey(key, this.#prefix);
    try {
      const { data, stale } = (this.#encryption?.transformer(key.resource) ?? identity).fromStorage(stored, path);
      return stale ? { bytes: data, stale } : { bytes: data };
    } catch (error) {
      throw new UnreadableValueError(`unable to transform key ${JSON.stringify(path)}: ${errorMessage(error)}`);
    }
  }
}
