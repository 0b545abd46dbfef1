// Every kind of bearer token in the order in which kube-apiserver tries them: static ones, those of service accounts,
// bootstrap tokens, those of OpenID Connect issuers. The first that knows the token decides who its bearer is.

import type { EpochMs } from '../../lib/clock.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Caller } from './attributes.ts';
import { bootstrapCaller } from './bootstrap-tokens.ts';
import type { OidcIssuers } from './oidc/issuers.ts';
import type { StaticTokens } from './static-tokens.ts';
import { type ServiceAccountTokens, TokenError } from './tokens.ts';

export interface BearerTokenParts {
  readonly accounts: ServiceAccountTokens;
  readonly lookup: ObjectLookup;
  /** Absent without --token-auth-file. */
  readonly statics?: StaticTokens | undefined;
  /** --enable-bootstrap-token-auth */
  readonly bootstrap: boolean;
  /** Absent without --oidc-issuer-url and --authentication-config. */
  readonly oidc?: OidcIssuers | undefined;
}

export interface Bearer {
  readonly caller: Caller;
  /** Those of the requested audiences that the token is for. */
  readonly audiences: readonly string[];
}

export class BearerTokens {
  readonly #parts: BearerTokenParts;

  constructor(parts: BearerTokenParts) {
    this.#parts = parts;
  }

  /** What is to be waited for before the token is checked: an issuer's keys. Undefined where that is nothing. */
  prepare(token: string, now: EpochMs): Promise<void> | undefined {
    return this.#parts.oidc?.prepare(token, now);
  }

  /**
   * Who bears the token. `audiences` are the acceptable ones, none: the server's own. Throws TokenError, never shown to
   * the bearer, for a token that nothing here accepts.
   */
  check(token: string, requested: readonly string[], now: EpochMs): Bearer {
    const { accounts, lookup, statics, bootstrap, oidc } = this.#parts;
    const audiences = requested.length === 0 ? accounts.audiences : requested;
    const caller =
      statics?.find(token) ?? (bootstrap ? bootstrapCaller(token, lookup, now) : undefined) ?? oidc?.check(token, now);
    if (caller === undefined) return accounts.check(token, audiences, lookup, now);
    // Such a token names no audience: it is for the API server.
    const own = audiences.filter((audience) => accounts.audiences.includes(audience));
    if (own.length === 0) throw new TokenError(`the token is for ${accounts.audiences.join(', ')}`);
    return { caller, audiences: own };
  }
}
