// Who bears an ID token, by its claims: what of it has to hold, and which claims are name and groups
// (k8s.io/apiserver/plugin/pkg/authenticator/token/oidc). Messages are upstream's. Pure.

import { type EpochMs, epochMs } from '../../../lib/clock.ts';
import { goQuote } from '../../../lib/go-words.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Caller } from '../attributes.ts';
import { TokenError } from '../tokens.ts';
import type { OidcSettings } from './options.ts';

/** How far the clock of an issuer may be ahead. */
const LEEWAY_MS = 60_000;

const isText = (value: unknown): value is string => typeof value === 'string';
const quoted = (list: readonly string[]): string => `[${list.map(goQuote).join(' ')}]`;

function fail(why: string): never {
  throw new TokenError(`oidc: ${why}`);
}

/** A time claim as epoch ms; undefined for none. Throws TokenError for what is no number. */
function timeOf(claims: JsonObject, name: string): EpochMs | undefined {
  const value = getOwn(claims, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number') return fail(`verify token: oidc: failed to unmarshal claims: ${name} is no time`);
  return epochMs(value * 1000);
}

function audienceOf(claims: JsonObject): readonly string[] {
  const value = getOwn(claims, 'aud');
  if (isText(value)) return [value];
  return Array.isArray(value) && value.every(isText) ? value : [];
}

/** That the token is for this cluster, now. Throws TokenError. */
export function checkClaims(claims: JsonObject, { audience, issuer }: OidcSettings, now: EpochMs): void {
  const audiences = audienceOf(claims);
  if (!audiences.includes(audience)) {
    fail(`verify token: oidc: expected audience ${goQuote(audience)} got ${quoted(audiences)}`);
  }
  const expires = timeOf(claims, 'exp');
  if (expires === undefined || expires < now) {
    // In seconds since 1970: what a claim has need not be a date.
    fail(`verify token: oidc: token is expired (Token Expiry: ${(expires ?? 0) / 1000})`);
  }
  const notBefore = timeOf(claims, 'nbf');
  if (notBefore !== undefined && now + LEEWAY_MS < notBefore) {
    fail(`verify token: oidc: the token of ${issuer} is not valid before ${notBefore / 1000}`);
  }
}

function username(claims: JsonObject, { claim, prefix }: OidcSettings['username']): string {
  const name = getOwn(claims, claim);
  if (name === undefined) return fail(`parse username claims ${goQuote(claim)}: claim not present`);
  if (!isText(name)) return fail(`parse username claims ${goQuote(claim)}: it is no string`);
  const verified = getOwn(claims, 'email_verified');
  if (claim === 'email' && verified !== undefined) {
    if (typeof verified !== 'boolean') return fail("parse 'email_verified' claim: it is no boolean");
    if (!verified) return fail('email not verified');
  }
  return `${prefix}${name}`;
}

/** Whether the claim is to be fetched from elsewhere (OpenID Connect Core, section 5.6.2). */
function isDistributed(claims: JsonObject, claim: string): boolean {
  const names = getOwn(claims, '_claim_names');
  const sources = getOwn(claims, '_claim_sources');
  const source = isObject(names) ? getOwn(names, claim) : undefined;
  const endpoint = isObject(sources) && isText(source) ? getOwn(sources, source) : undefined;
  return isObject(endpoint) && isText(endpoint['endpoint']);
}

function groups(claims: JsonObject, settings: OidcSettings['groups']): string[] {
  if (settings === undefined) return [];
  const { claim, prefix } = settings;
  const value = getOwn(claims, claim);
  if (value === undefined) {
    // A bearer without the groups that they have could do what a refusal by group forbids.
    if (isDistributed(claims, claim)) return fail('could not expand distributed claims: they are not fetched here');
    return [];
  }
  if (value === null) return [];
  const named = isText(value) ? [value] : value;
  if (!Array.isArray(named) || !named.every(isText)) {
    return fail(`parse groups claim ${goQuote(claim)}: it is neither a string nor a list of strings`);
  }
  return named.map((group) => `${prefix}${group}`);
}

/** Name, groups and id of the credential. Throws TokenError where a claim is missing or has another value. */
export function identityOf(claims: JsonObject, settings: OidcSettings): Caller {
  const name = username(claims, settings.username);
  const named = groups(claims, settings.groups);
  for (const [claim, wanted] of settings.requiredClaims) {
    const value = getOwn(claims, claim);
    if (value === undefined) fail(`required claim ${claim} not present in ID token`);
    if (!isText(value)) return fail(`parse claim ${claim}: it is no string`);
    if (value !== wanted) fail(`required claim ${claim} value does not match. Got = ${value}, want = ${wanted}`);
  }
  const id = getOwn(claims, 'jti');
  const authenticated = named.includes('system:authenticated') ? named : [...named, 'system:authenticated'];
  return {
    name,
    groups: authenticated,
    ...(isText(id) && id !== '' ? { extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${id}`] } } : {}),
  };
}
