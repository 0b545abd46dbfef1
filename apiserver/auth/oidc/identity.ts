// Who bears an ID token, by its claims: what of it has to hold, and which claims are name and groups
// (k8s.io/apiserver/plugin/pkg/authenticator/token/oidc). Messages are upstream's. Pure.

import { type EpochMs, epochMs } from '../../../lib/clock.ts';
import { goQuote } from '../../../lib/go-words.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Caller } from '../attributes.ts';
import { TokenError } from '../tokens.ts';
import { checkRule, quotedList, stringOf, stringsOf, TokenEvaluation } from './expressions.ts';
import type { OidcSettings } from './settings.ts';

/** How far the clock of an issuer may be ahead. */
const LEEWAY_MS = 60_000;

const isText = (value: unknown): value is string => typeof value === 'string';

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
export function checkClaims(claims: JsonObject, { audiences, issuer }: OidcSettings, now: EpochMs): void {
  const [only = '', ...more] = audiences;
  const named = audienceOf(claims);
  if (!audiences.some((audience) => named.includes(audience))) {
    const expected = more.length === 0 ? goQuote(only) : `in ${quotedList([...audiences].sort())}`;
    fail(`verify token: oidc: expected audience ${expected} got ${quotedList(named)}`);
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

function username(claims: JsonObject, mapping: OidcSettings['username'], evaluation: TokenEvaluation): string {
  if ('program' in mapping) {
    const what = 'username claim expression';
    const mapped = stringOf(evaluation.ofClaims(mapping.program, what), 'username');
    return mapped === '' ? fail('empty username via CEL expression is not allowed') : mapped;
  }
  const { claim, prefix } = mapping;
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

function groups(claims: JsonObject, mapping: OidcSettings['groups'], evaluation: TokenEvaluation): string[] {
  if (mapping === undefined) return [];
  if ('program' in mapping) {
    const what = 'group claim expression';
    return stringsOf(evaluation.ofClaims(mapping.program, what), what);
  }
  const { claim, prefix } = mapping;
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

function uid(claims: JsonObject, mapping: OidcSettings['uid'], evaluation: TokenEvaluation): string {
  if (mapping === undefined) return '';
  if ('program' in mapping) return stringOf(evaluation.ofClaims(mapping.program, 'uid claim expression'), 'uid');
  const value = getOwn(claims, mapping.claim);
  if (value === undefined) return fail(`parse uid claim ${goQuote(mapping.claim)}: claim not present`);
  return isText(value) ? value : fail(`parse uid claim ${goQuote(mapping.claim)}: it is no string`);
}

function extra(claims: JsonObject, mappings: OidcSettings['extra'], evaluation: TokenEvaluation): Caller['extra'] {
  const id = getOwn(claims, 'jti');
  const found = new Map<string, readonly string[]>();
  if (isText(id) && id !== '') found.set('authentication.kubernetes.io/credential-id', [`JTI=${id}`]);
  for (const { key, program } of mappings) {
    const what = 'extra claim expression';
    const values = stringsOf(evaluation.ofClaims(program, what), what);
    if (values.length > 0) found.set(key, values);
  }
  return found.size === 0 ? undefined : Object.fromEntries(found);
}

function checkRequired(claims: JsonObject, required: OidcSettings['requiredClaims']): void {
  for (const [claim, wanted] of required) {
    const value = getOwn(claims, claim);
    if (value === undefined) fail(`required claim ${claim} not present in ID token`);
    if (!isText(value)) fail(`parse claim ${claim}: it is no string`);
    if (value !== wanted) fail(`required claim ${claim} value does not match. Got = ${value}, want = ${wanted}`);
  }
}

/** Whom the claims are of. Throws TokenError where a claim is missing, or a rule does not hold. */
export function identityOf(claims: JsonObject, settings: OidcSettings): Caller {
  const evaluation = new TokenEvaluation(claims);
  const name = username(claims, settings.username, evaluation);
  const named = groups(claims, settings.groups, evaluation);
  const id = uid(claims, settings.uid, evaluation);
  const more = extra(claims, settings.extra, evaluation);
  const caller = { name, ...(id === '' ? {} : { uid: id }), groups: named, ...(more && { extra: more }) };
  checkRequired(claims, settings.requiredClaims);
  const ofClaims = 'claim validation expression';
  for (const { program, message } of settings.claimRules) {
    checkRule(evaluation.ofClaims(program, ofClaims), program, message, ofClaims);
  }
  const ofUser = 'user info validation rule';
  for (const { program, message } of settings.userRules) {
    checkRule(evaluation.ofUser(program, caller, ofUser), program, message, ofUser);
  }
  const authenticated = named.includes('system:authenticated') ? named : [...named, 'system:authenticated'];
  return { ...caller, groups: authenticated };
}
