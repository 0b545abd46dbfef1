// Values as they are stored: encrypted or not, behind the prefix that says how, as kube-apiserver writes them
// (k8s.io/apiserver/pkg/storage/value). The first provider of a list writes, all of them read. Knows no configuration.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { aggregate } from '../../../lib/aggregate.ts';
import { errorMessage } from '../../../lib/errors.ts';

export interface FromStorage {
  readonly data: Buffer;
  /** It is not as a new write would store it. */
  readonly stale: boolean;
}

/** `key` is where the value is stored: authenticated with the value where the cipher can do that. */
export interface Transformer {
  /** Throws Error with kube-apiserver's message. */
  fromStorage(stored: Buffer, key: string): FromStorage;
  toStorage(data: Buffer, key: string): Buffer;
}

export interface PrefixTransformer {
  readonly prefix: string;
  readonly transformer: Transformer;
}

/** The prefix of every value that is encrypted. */
export const ENCRYPTED_PREFIX = Buffer.from('k8s:enc:');

export function isEncrypted(stored: Uint8Array): boolean {
  return ENCRYPTED_PREFIX.equals(stored.subarray(0, ENCRYPTED_PREFIX.length));
}

const AES_BLOCK = 16;
const GCM_NONCE = 12;
const GCM_TAG = 16;
const SECRETBOX_NONCE = 24;
const SECRETBOX_TAG = 16;
const TOO_SHORT = 'the stored data was shorter than the required size';

/** AES-CBC with a random vector in front and PKCS #7 padding; authenticates nothing. `secret` has 16, 24 or 32 bytes. */
export function aescbc(secret: Buffer): Transformer {
  const cipher = `aes-${secret.length * 8}-cbc`;
  return {
    toStorage: (data) => {
      const vector = randomBytes(AES_BLOCK);
      const encryption = createCipheriv(cipher, secret, vector);
      return Buffer.concat([vector, encryption.update(data), encryption.final()]);
    },
    fromStorage: (stored) => {
      if (stored.length < AES_BLOCK) throw new Error(TOO_SHORT);
      if (stored.length % AES_BLOCK !== 0) throw new Error('the stored data is not a multiple of the block size');
      const decryption = createDecipheriv(cipher, secret, stored.subarray(0, AES_BLOCK));
      const start = decryption.update(stored.subarray(AES_BLOCK));
      return {
        data: Buffer.concat([start, named('invalid padding on input', () => decryption.final())]),
        stale: false,
      };
    },
  };
}

/** AES-GCM with a random nonce in front and the tag at the end; the key is authenticated, too. */
export function aesgcm(secret: Buffer): Transformer {
  const cipher = secret.length === 16 ? 'aes-128-gcm' : secret.length === 24 ? 'aes-192-gcm' : 'aes-256-gcm';
  return {
    toStorage: (data, key) => {
      const nonce = randomBytes(GCM_NONCE);
      const encryption = createCipheriv(cipher, secret, nonce).setAAD(Buffer.from(key));
      const encrypted = Buffer.concat([encryption.update(data), encryption.final()]);
      return Buffer.concat([nonce, encrypted, encryption.getAuthTag()]);
    },
    fromStorage: (stored, key) => {
      if (stored.length < GCM_NONCE + GCM_TAG) throw new Error(TOO_SHORT);
      const end = stored.length - GCM_TAG;
      const decryption = createDecipheriv(cipher, secret, stored.subarray(0, GCM_NONCE), { authTagLength: GCM_TAG });
      decryption.setAAD(Buffer.from(key)).setAuthTag(stored.subarray(end));
      const start = decryption.update(stored.subarray(GCM_NONCE, end));
      const data = [start, named('cipher: message authentication failed', () => decryption.final())];
      return { data: Buffer.concat(data), stale: false };
    },
  };
}

/** NaCl's secretbox (XSalsa20 and Poly1305) with a random nonce in front. `secret` has 32 bytes. */
export function secretbox(secret: Buffer): Transformer {
  return {
    toStorage: (data) => {
      const nonce = randomBytes(SECRETBOX_NONCE);
      return Buffer.concat([nonce, xsalsa20poly1305(secret, nonce).encrypt(data)]);
    },
    fromStorage: (stored) => {
      if (stored.length < SECRETBOX_NONCE + SECRETBOX_TAG) throw new Error(TOO_SHORT);
      const box = xsalsa20poly1305(secret, stored.subarray(0, SECRETBOX_NONCE));
      const data = named('output array was not large enough for encryption', () =>
        box.decrypt(stored.subarray(SECRETBOX_NONCE)),
      );
      return { data: Buffer.from(data), stale: false };
    },
  };
}

/** Stores values as they are, and reads none that is encrypted. */
export const identity: Transformer = {
  toStorage: (data) => data,
  fromStorage: (stored) => {
    if (isEncrypted(stored)) throw new Error('identity transformer tried to read encrypted data');
    return { data: stored, stale: false };
  },
};

/** The library's own words name no cause that a person could act on. */
function named<T>(message: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(message, { cause: errorMessage(error) });
  }
}

/**
 * Writes with the first of the list; reads with the first whose prefix fits and that succeeds. `unknown` is the message
 * where none fits.
 */
export function prefixTransformers(
  unknown: string,
  list: readonly [PrefixTransformer, ...PrefixTransformer[]],
): Transformer {
  const prefixes = list.map(({ prefix }) => Buffer.from(prefix));
  const [writer] = list;
  return {
    toStorage: (data, key) => Buffer.concat([Buffer.from(writer.prefix), writer.transformer.toStorage(data, key)]),
    fromStorage: (stored, key) => {
      const failures = new Set<string>();
      for (const [index, { prefix, transformer }] of list.entries()) {
        const start = prefixes[index]?.length ?? 0;
        if (!prefixes[index]?.equals(stored.subarray(0, start))) continue;
        try {
          const { data, stale } = transformer.fromStorage(stored.subarray(start), key);
          return { data, stale: stale || index !== 0 };
        } catch (error) {
          // Identity before the providers that it replaces refuses what is still encrypted; so does an old key of that name.
          if (prefix !== '') failures.add(errorMessage(error));
        }
      }
      throw new Error(failures.size === 0 ? unknown : aggregate([...failures]));
    },
  };
}
