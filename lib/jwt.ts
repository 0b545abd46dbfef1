// JSON Web Tokens as service accounts have them: signed with an EC P-256 or an RSA key. Pure but for the key.

import { createHash, type KeyObject, sign } from 'node:crypto';

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function algorithmOf(key: KeyObject): 'ES256' | 'RS256' {
  return key.asymmetricKeyType === 'ec' ? 'ES256' : 'RS256';
}

/** The id by which a key is named in a token's head, from the public key. */
export function keyIdOf(key: KeyObject): string {
  const der = key.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(new Uint8Array(der)).digest('base64url');
}

export function signToken(key: KeyObject, keyId: string, claims: object): string {
  const signed = `${encode({ alg: algorithmOf(key), kid: keyId })}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}
