// JSON Web Tokens of others: what one says before it is believed, and whether one of an issuer's keys has signed it
// (RFC 7515, 7517, 7518). Pure.

import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { getOwn } from '../../../lib/own-property.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import { TokenError } from '../tokens.ts';

export type SigningAlgorithm = `${'RS' | 'ES' | 'PS'}${256 | 384 | 512}`;

interface Algorithm {
  readonly hash: string;
  readonly keyType: 'rsa' | 'ec';
  /** Of `ec`, by OpenSSL's name. */
  readonly curve?: string;
  readonly isPss?: boolean;
}

const ALGORITHMS: Readonly<Record<SigningAlgorithm, Algorithm>> = {
  RS256: { hash: 'sha256', keyType: 'rsa' },
  RS384: { hash: 'sha384', keyType: 'rsa' },
  RS512: { hash: 'sha512', keyType: 'rsa' },
  ES256: { hash: 'sha256', keyType: 'ec', curve: 'prime256v1' },
  ES384: { hash: 'sha384', keyType: 'ec', curve: 'secp384r1' },
  ES512: { hash: 'sha512', keyType: 'ec', curve: 'secp521r1' },
  PS256: { hash: 'sha256', keyType: 'rsa', isPss: true },
  PS384: { hash: 'sha384', keyType: 'rsa', isPss: true },
  PS512: { hash: 'sha512', keyType: 'rsa', isPss: true },
};

/** All that --authentication-config accepts. */
export const ALL_ALGORITHMS: readonly SigningAlgorithm[] = Object.keys(ALGORITHMS).filter(isAlgorithm);

export function isAlgorithm(name: string): name is SigningAlgorithm {
  return Object.hasOwn(ALGORITHMS, name);
}

/** A token that has been read, and not been checked. */
export interface ReadToken {
  readonly algorithm: string;
  /** '' for none. */
  readonly keyId: string;
  readonly claims: JsonObject;
  readonly signed: string;
  readonly signature: Uint8Array;
}

const BASE64_URL = /^[A-Za-z0-9_-]+$/;

function jsonPart(part: string): JsonObject | undefined {
  if (!BASE64_URL.test(part)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The issuer that a token names, which is not to be believed yet; undefined for what is no JSON Web Token. */
export function untrustedIssuer(token: string): string | undefined {
  const [, body = '', , ...more] = token.split('.');
  if (more.length > 0) return undefined;
  const issuer = jsonPart(body)?.['iss'];
  if (typeof issuer !== 'string') return undefined;
  // Of old, Google's tokens name no scheme.
  return issuer === 'accounts.google.com' ? `https://${issuer}` : issuer;
}

/** Throws TokenError for what is no signed token. */
export function readToken(token: string): ReadToken {
  const [head = '', body = '', signature = '', ...more] = token.split('.');
  const header = jsonPart(head);
  const claims = jsonPart(body);
  if (more.length > 0 || header === undefined || claims === undefined || !BASE64_URL.test(signature)) {
    throw new TokenError('oidc: verify token: oidc: malformed jwt');
  }
  // What a token says must be understood is not.
  if (getOwn(header, 'crit') !== undefined)
    throw new TokenError('oidc: verify token: oidc: malformed jwt: crit header');
  const { alg, kid } = header;
  return {
    algorithm: typeof alg === 'string' ? alg : '',
    keyId: typeof kid === 'string' ? kid : '',
    claims,
    signed: `${head}.${body}`,
    signature: new Uint8Array(Buffer.from(signature, 'base64url')),
  };
}

export interface IssuerKey {
  /** '' for none. */
  readonly id: string;
  readonly key: KeyObject;
}

/** The keys of a JSON Web Key Set that tokens can be signed with; undefined for what is no such set. */
export function keysOf(document: unknown): IssuerKey[] | undefined {
  const keys = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(keys)) return undefined;
  return keys.flatMap((jwk: unknown): IssuerKey[] => {
    if (!isObject(jwk)) return [];
    const { kty, n, e, crv, x, y, kid } = jwk;
    const parts = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y };
    if (kty !== 'RSA' && kty !== 'EC') return [];
    const strings = Object.entries(parts).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    try {
      const key = createPublicKey({ key: Object.fromEntries(strings), format: 'jwk' });
      return [{ id: typeof kid === 'string' ? kid : '', key }];
    } catch {
      // A key that cannot be read signs nothing; the others still do.
      return [];
    }
  });
}

/** Whether one of the keys that the token may be signed with has signed it. */
export function isSignedBy(keys: readonly IssuerKey[], token: ReadToken): boolean {
  const { algorithm, keyId, signed, signature } = token;
  if (!isAlgorithm(algorithm)) return false;
  const { hash, keyType, curve, isPss = false } = ALGORITHMS[algorithm];
  const fits = ({ id, key }: IssuerKey): boolean =>
    (keyId === '' || id === keyId) &&
    key.asymmetricKeyType === keyType &&
    key.asymmetricKeyDetails?.namedCurve === curve;
  const data = Buffer.from(signed);
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO };
  return keys
    .filter(fits)
    .some(({ key }) => verify(hash, data, { key, dsaEncoding: 'ieee-p1363', ...(isPss ? pss : {}) }, signature));
}
