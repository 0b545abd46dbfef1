// One OpenID Connect issuer: finds out where its keys are, fetches them when a token is signed with one that is not known,
// and says who bears a token. A token is checked without waiting; what has to be fetched for it is fetched before, by
// `prepare` (the behaviour of go-oidc's provider and remote key set).

import { createHash } from 'node:crypto';
import { type Clock, type EpochMs, epochMs, plusMs, type Timer } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { goQuote } from '../../../lib/go-words.ts';
import { singleFlight } from '../../../lib/single-flight.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { Caller } from '../attributes.ts';
import { TokenError } from '../tokens.ts';
import { getJson } from './get-json.ts';
import { checkClaims, identityOf } from './identity.ts';
import type { OidcSettings } from './settings.ts';
import { type IssuerKey, isSignedBy, keysOf, readToken, untrustedIssuer } from './signature.ts';

/** How often an issuer that does not answer is tried again. */
const DISCOVERY_MS = 10_000;
/** Keys that are good for no longer than this are fetched anew for a token that they do not fit. */
const EXPIRY_DELTA_MS = 30_000;
/** Tokens whose signature need not be checked again. */
const MAX_VERIFIED = 1024;

class SignatureError extends TokenError {}

const digest = (token: string): string => createHash('sha256').update(token).digest('base64');

interface Verified {
  readonly claims: JsonObject;
  /** Undefined until it has been asked for, and where the claims name no user. */
  caller: Caller | undefined;
}

export interface OidcParts {
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class OidcIssuer {
  readonly #settings: OidcSettings;
  readonly #parts: OidcParts;
  readonly #fetchKeys = singleFlight(() => this.#fetch());
  /** Where the keys are; undefined until the discovery document was read. */
  #keysUri: string | undefined;
  #keys: readonly IssuerKey[] = [];
  #keysUntil: EpochMs = epochMs(0);
  /** Why the keys could not be fetched the last time. */
  #fetchProblem = '';
  /** By digest, of tokens that one of the keys has signed; the oldest first. */
  readonly #verified = new Map<string, Verified>();
  readonly #ready = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #stopped = false;

  constructor(settings: OidcSettings, parts: OidcParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /** Looks for the issuer until it answers: it may run on this cluster, and start after it. */
  start(): void {
    void this.#discover().then((problem) => {
      if (problem === undefined || this.#stopped) return;
      this.#parts.log(`oidc: ${problem}; tokens of ${this.#settings.issuer} are refused until it answers`);
      this.#timer = this.#parts.clock.after(DISCOVERY_MS, () => this.start());
    });
  }

  /** Settles when the issuer has answered; never, where it does not. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Whether the token says that it is of this issuer. */
  issued(token: string): boolean {
    return untrustedIssuer(token) === this.#settings.issuer;
  }

  /** What is to be waited for before `check`; undefined where that is nothing. Never rejects. */
  prepare(token: string, now: EpochMs): Promise<void> | undefined {
    if (this.#keysUri === undefined || !this.issued(token)) return undefined;
    try {
      this.#claimsOf(token, now);
      return undefined;
    } catch (error) {
      if (!(error instanceof TokenError)) throw error;
      const isFresh = now + EXPIRY_DELTA_MS <= this.#keysUntil;
      return error instanceof SignatureError && !isFresh ? this.#fetchKeys() : undefined;
    }
  }

  /** Who bears a token of this issuer. Throws TokenError. */
  check(token: string, now: EpochMs): Caller {
    if (this.#keysUri === undefined) throw new TokenError('oidc: authenticator not initialized');
    const verified = this.#claimsOf(token, now);
    // The same for the same claims: expressions see nothing else.
    verified.caller ??= identityOf(verified.claims, this.#settings);
    return verified.caller;
  }

  /** The claims of a token that is signed, for this cluster, and in its time. Throws TokenError. */
  #claimsOf(token: string, now: EpochMs): Verified {
    const key = digest(token);
    const known = this.#verified.get(key);
    if (known !== undefined) {
      checkClaims(known.claims, this.#settings, now);
      return known;
    }
    const read = readToken(token);
    // What costs nothing is checked first: keys may have to be fetched for the signature.
    checkClaims(read.claims, this.#settings, now);
    const { algorithms } = this.#settings;
    if (!algorithms.some((one) => one === read.algorithm)) {
      const expected = `[${algorithms.map(goQuote).join(' ')}]`;
      const why = `id token signed with unsupported algorithm, expected ${expected} got ${goQuote(read.algorithm)}`;
      throw new TokenError(`oidc: verify token: oidc: ${why}`);
    }
    if (!isSignedBy(this.#keys, read)) {
      const why = this.#fetchProblem === '' ? 'failed to verify id token signature' : this.#fetchProblem;
      throw new SignatureError(`oidc: verify token: failed to verify signature: ${why}`);
    }
    const verified: Verified = { claims: read.claims, caller: undefined };
    this.#verified.set(key, verified);
    for (const oldest of this.#verified.keys()) {
      if (this.#verified.size <= MAX_VERIFIED) break;
      this.#verified.delete(oldest);
    }
    return verified;
  }

  /** Why it failed. */
  async #discover(): Promise<string | undefined> {
    const { issuer, ca, audiences } = this.#settings;
    const { discoveryUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration` } = this.#settings;
    try {
      const { body } = await getJson(discoveryUrl, ca, this.#parts);
      const { issuer: named, jwks_uri: keysUri } = isObject(body) ? body : {};
      if (named !== issuer) {
        return `issuer did not match the issuer returned by provider, expected ${goQuote(issuer)} got ${goQuote(String(named))}`;
      }
      if (typeof keysUri !== 'string' || !URL.canParse(keysUri)) return 'the provider names no jwks_uri';
      this.#keysUri = keysUri;
      this.#ready.resolve();
      this.#parts.log(`oidc: tokens of ${issuer} for ${audiences.join(', ')} are accepted`);
      return undefined;
    } catch (error) {
      return errorMessage(error);
    }
  }

  async #fetch(): Promise<void> {
    const { clock, log } = this.#parts;
    try {
      const { body, maxAgeMs } = await getJson(this.#keysUri ?? '', this.#settings.ca, this.#parts);
      const keys = keysOf(body);
      if (keys === undefined) throw new Error('oidc: failed to decode keys');
      this.#keys = keys;
      this.#keysUntil = plusMs(clock.now(), maxAgeMs);
      this.#verified.clear();
      this.#fetchProblem = '';
    } catch (error) {
      this.#fetchProblem = `fetching keys oidc: get keys failed ${errorMessage(error)}`;
      log(`oidc: ${this.#fetchProblem}`);
    }
  }
}
