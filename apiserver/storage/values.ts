// The JSON of an object as it is stored: as text, or encrypted where the configuration says so.

import { errorMessage } from '../../lib/errors.ts';
import type { Encryption } from './encryption/load.ts';
import { identity, isEncrypted } from './encryption/transformers.ts';
import { storageKey } from './keys.ts';
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

  constructor(encryption: Encryption | undefined) {
    this.#encryption = encryption;
  }

  /** Whether values of the resource may be other than their text. */
  transforms(resource: string): boolean {
    return this.#encryption?.transformer(resource) !== undefined;
  }

  /** Text where it is not encrypted. */
  encode(key: ObjectKey, text: string): Value {
    const transformer = this.#encryption?.transformer(key.resource);
    if (transformer === undefined) return text;
    const bytes = transformer.toStorage(Buffer.from(text), storageKey(key));
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
    const transformer = this.#encryption?.transformer(key.resource);
    if (typeof value === 'string' && transformer === undefined) return { text: value };
    const stored =
      value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(typeof value === 'string' ? value : '');
    try {
      const { data, stale } = (transformer ?? identity).fromStorage(stored, storageKey(key));
      return stale ? { text: data.toString(), stale } : { text: data.toString() };
    } catch (error) {
      const path = JSON.stringify(storageKey(key));
      throw new UnreadableValueError(`unable to transform key ${path}: ${errorMessage(error)}`);
    }
  }
}
