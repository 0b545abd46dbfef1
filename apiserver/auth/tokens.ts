// Service account tokens: JWTs with the claims of the real ones, signed with the lab's key. Signing and checking are
// pure but for the key; a lookup returns whether the bound objects still exist.

import { createPrivateKey, createPublicKey, type KeyObject, randomUUID, verify } from 'node:crypto';
import { type EpochMs, elapsedMs, epochMs } from '../../lib/clock.ts';
import { algorithmOf, keyIdOf, signToken } from '../../lib/jwt.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import type { Caller } from '../registry/registry.ts';

/** Of a server without --service-account-issuer. */
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** Of tokens that kube-controller-manager puts into Secrets: they have no end, and are good as long as their Secret has them. */
const SECRET_ISSUER = 'kubernetes/serviceaccount';

export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node';
  readonly name: string;
  readonly uid: string;
}

export interface TokenRequest {
  readonly namespace: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
  readonly audiences: readonly string[];
  /** Seconds from now. */
  readonly expirationSeconds: number;
  readonly bound?: BoundObject;
  /** The node of the pod it is bound to. */
  readonly node?: { readonly name: string; readonly uid: string };
}

/** Why a token is no good; never shown to its bearer. */
export class TokenError extends Error {
  override name = 'TokenError';
}

function decodePart(part: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new TokenError('not a JSON Web Token');
}

export interface TokenSettings {
  /** The first issues, all are accepted. Default: ISSUER. */
  readonly issuers?: readonly string[] | undefined;
  /** Default: the issuers. */
  readonly audiences?: readonly string[] | undefined;
  /** PEMs of more keys whose tokens are accepted. */
  readonly publicKeys?: readonly string[] | undefined;
}

export class ServiceAccountTokens {
  readonly #private: KeyObject;
  readonly #public: KeyObject;
  readonly #keyId: string;
  /** Key id → key, the signing one first. */
  readonly #accepted: ReadonlyMap<string, KeyObject>;
  readonly #issuers: readonly [string, ...string[]];
  /** Those of the API server itself: what a token is for that names none. */
  readonly audiences: readonly string[];

  /** `privateKey` is a PEM of an EC P-256 or RSA key. Throws for a key that does not parse. */
  constructor(privateKey: string, settings: TokenSettings = {}) {
    this.#private = createPrivateKey(privateKey);
    this.#public = createPublicKey(this.#private);
    this.#keyId = keyIdOf(this.#public);
    const more = (settings.publicKeys ?? []).map((pem) => createPublicKey(pem));
    this.#accepted = new Map([this.#public, ...more].map((key) => [keyIdOf(key), key]));
    const [issuer = ISSUER, ...others] = settings.issuers ?? [];
    this.#issuers = [issuer, ...others];
    this.audiences = settings.audiences ?? this.#issuers;
  }

  /** The OpenID provider configuration, for those who check tokens by themselves. */
  configuration(): JsonObject {
    return {
      issuer: this.#issuers[0],
      jwks_uri: `${this.#issuers[0].replace(/\/$/, '')}/openid/v1/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [...new Set([...this.#accepted.values()].map(algorithmOf))],
    };
  }

  /** The public keys as a JSON Web Key Set. */
  keySet(): JsonObject {
    const keys = [...this.#accepted].map(([kid, key]) => ({
      ...{ use: 'sig', kid, alg: algorithmOf(key) },
      ...key.export({ format: 'jwk' }),
    }));
    return { keys };
  }

  /** A signed token, and when it ends. */
  issue(request: TokenRequest, now: EpochMs): { readonly token: string; readonly expiresAt: EpochMs } {
    // A JSON Web Token counts in whole seconds.
    const issued = Math.floor(now / 1000);
    const expires = issued + request.expirationSeconds;
    const { bound, node, serviceAccount, namespace } = request;
    const claims = {
      aud: request.audiences,
      exp: expires,
      iat: issued,
      iss: this.#issuers[0],
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        ...(node === undefined ? {} : { node }),
        ...(bound === undefined ? {} : { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }),
        serviceaccount: serviceAccount,
      },
      nbf: issued,
      sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    };
    return { token: signToken(this.#private, this.#keyId, claims), expiresAt: epochMs(expires * 1000) };
  }

  /**
   * The identity of a token. `audiences` are the acceptable ones; the matching ones are returned. Throws TokenError for a
   * token that this server did not sign, that has expired, or whose account, pod, secret or node is gone. Nothing is
   * cached: after a deletion the next request is refused.
   */
  check(
    token: string,
    audiences: readonly string[],
    lookup: ObjectLookup,
    now: EpochMs,
  ): { readonly caller: Caller; readonly audiences: readonly string[] } {
    const [head = '', body = '', signature = '', ...more] = token.split('.');
    if (more.length > 0 || signature === '') throw new TokenError('not a JSON Web Token');
    const { alg, kid } = decodePart(head);
    const accepted = (typeof kid === 'string' ? this.#accepted.get(kid) : undefined) ?? this.#public;
    if (alg !== algorithmOf(accepted)) throw new TokenError('another algorithm');
    const key = { key: accepted, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))) {
      throw new TokenError('the signature does not hold');
    }
    const claims = decodePart(body);
    const seconds = now / 1000;
    const { iss } = claims;
    if (iss === SECRET_ISSUER) {
      // Such a token names no audience: it is for the API server.
      const own = audiences.filter((audience) => this.audiences.includes(audience));
      if (own.length === 0) throw new TokenError(`the token is for ${this.audiences.join(', ')}`);
      return { caller: secretCaller(claims, token, lookup, now), audiences: own };
    }
    if (typeof iss !== 'string' || !this.#issuers.includes(iss)) throw new TokenError('another issuer');
    if (typeof claims['exp'] !== 'number' || claims['exp'] <= seconds) throw new TokenError('the token has expired');
    if (typeof claims['nbf'] === 'number' && claims['nbf'] > seconds + 60) throw new TokenError('not valid yet');
    const meant = Array.isArray(claims['aud']) ? claims['aud'] : [claims['aud']];
    const matching = audiences.filter((audience) => meant.includes(audience));
    if (matching.length === 0) throw new TokenError(`the token is for ${meant.join(', ')}`);
    return { caller: callerOf(claims, lookup, now), audiences: matching };
  }
}

function named(value: unknown): { readonly name: string; readonly uid: string } | undefined {
  if (!isObject(value) || typeof value['name'] !== 'string' || typeof value['uid'] !== 'string') return undefined;
  return { name: value['name'], uid: value['uid'] };
}

/** Tokens bound to a deleted object that still exists (finalizers, a terminating pod) stay valid this long, as upstream. */
const DELETED_GRACE_MS = 60_000;

type AssertExists = (plural: string, namespace: string, ref: { readonly name: string; readonly uid: string }) => void;

/** Throws TokenError for an object that is gone, is another one of that name, or was to be gone by now (epoch ms). */
function requireAlive(lookup: ObjectLookup, now: EpochMs): AssertExists {
  return (plural, namespace, { name, uid }) => {
    const metadata = lookup.get('', plural, namespace, name)?.metadata;
    const what = namespace === '' ? `${plural} ${name}` : `${plural} ${namespace}/${name}`;
    if (metadata?.uid !== uid) throw new TokenError(`${what} is gone`);
    const { deletionTimestamp } = metadata;
    const deletedAt = parseRfc3339(deletionTimestamp);
    if (deletedAt !== undefined && elapsedMs(deletedAt, now) > DELETED_GRACE_MS) {
      throw new TokenError(`${what} has been deleted`);
    }
  };
}

/** The groups of every service account of a namespace. */
export function accountGroups(namespace: string): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

function callerOf(claims: JsonObject, lookup: ObjectLookup, now: EpochMs): Caller {
  const private_ = claims['kubernetes.io'];
  const account = isObject(private_) ? named(private_['serviceaccount']) : undefined;
  if (!isObject(private_) || account === undefined || typeof private_['namespace'] !== 'string') {
    throw new TokenError('no service account in the token');
  }
  const namespace = private_['namespace'];
  const alive = requireAlive(lookup, now);
  alive('serviceaccounts', namespace, account);
  const pod = named(private_['pod']);
  if (pod !== undefined) alive('pods', namespace, pod);
  const secret = named(private_['secret']);
  if (secret !== undefined) alive('secrets', namespace, secret);
  const node = named(private_['node']);
  // In a pod's token the node is informational: the token is valid as long as the pod exists (KEP-4193).
  if (node !== undefined && pod === undefined) alive('nodes', '', node);
  const extra: Record<string, readonly string[]> = {};
  const id = claims['jti'];
  if (typeof id === 'string') extra['authentication.kubernetes.io/credential-id'] = [`JTI=${id}`];
  if (node !== undefined) {
    extra['authentication.kubernetes.io/node-name'] = [node.name];
    extra['authentication.kubernetes.io/node-uid'] = [node.uid];
  }
  if (pod !== undefined) {
    extra['authentication.kubernetes.io/pod-name'] = [pod.name];
    extra['authentication.kubernetes.io/pod-uid'] = [pod.uid];
  }
  return accountCaller(namespace, account, extra);
}

function accountCaller(
  namespace: string,
  { name, uid }: { readonly name: string; readonly uid: string },
  extra: Readonly<Record<string, readonly string[]>>,
): Caller {
  const groups = [...accountGroups(namespace), 'system:authenticated'];
  return { name: `system:serviceaccount:${namespace}:${name}`, uid, groups, extra };
}

/** Of a token in a Secret, which has to be there, with this token in it. */
function secretCaller(claims: JsonObject, token: string, lookup: ObjectLookup, now: EpochMs): Caller {
  const claim = (name: string): string => {
    const value = getOwn(claims, `kubernetes.io/serviceaccount/${name}`);
    if (typeof value !== 'string' || value === '') throw new TokenError(`no ${name} in the token`);
    return value;
  };
  const namespace = claim('namespace');
  const account = { name: claim('service-account.name'), uid: claim('service-account.uid') };
  if (claims['sub'] !== `system:serviceaccount:${namespace}:${account.name}`) throw new TokenError('another subject');
  const secret = lookup.get('', 'secrets', namespace, claim('secret.name'));
  if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) {
    throw new TokenError(`secret ${namespace}/${claim('secret.name')} is gone`);
  }
  const kept = isObject(secret['data']) ? getOwn(secret['data'], 'token') : undefined;
  if (typeof kept !== 'string' || Buffer.from(kept, 'base64').toString() !== token) {
    throw new TokenError('the secret has another token');
  }
  requireAlive(lookup, now)('serviceaccounts', namespace, account);
  return accountCaller(namespace, account, {});
}
