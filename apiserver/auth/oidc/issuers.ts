// Several issuers of ID tokens, which may become others while the server runs: new ones take over once all of them answer, as
// upstream's do.

import type { EpochMs } from '../../../lib/clock.ts';
import type { Caller } from '../attributes.ts';
import { OidcIssuer, type OidcParts } from './issuer.ts';
import type { OidcSettings } from './settings.ts';

export class OidcIssuers {
  readonly #parts: OidcParts;
  #issuers: readonly OidcIssuer[];
  /** Those that do not count yet. */
  #next: readonly OidcIssuer[] = [];

  constructor(settings: readonly OidcSettings[], parts: OidcParts) {
    this.#parts = parts;
    this.#issuers = settings.map((one) => new OidcIssuer(one, parts));
  }

  start(): void {
    for (const issuer of this.#issuers) issuer.start();
  }

  stop(): void {
    for (const issuer of [...this.#issuers, ...this.#next]) issuer.stop();
  }

  /** Until all of the new ones have answered, those from before count. */
  replace(settings: readonly OidcSettings[]): void {
    for (const issuer of this.#next) issuer.stop();
    const next = settings.map((one) => new OidcIssuer(one, this.#parts));
    this.#next = next;
    for (const issuer of next) issuer.start();
    void Promise.all(next.map(({ ready }) => ready)).then(() => {
      // Others may have come meanwhile.
      if (this.#next !== next) return;
      for (const issuer of this.#issuers) issuer.stop();
      this.#issuers = next;
      this.#next = [];
      this.#parts.log('oidc: the issuers of the authentication configuration count from now on');
    });
  }

  /** What is to be waited for before `check`; undefined where that is nothing. */
  prepare(token: string, now: EpochMs): Promise<void> | undefined {
    return this.#of(token)?.prepare(token, now);
  }

  /** Who bears the token; undefined where no issuer here has issued it. Throws TokenError. */
  check(token: string, now: EpochMs): Caller | undefined {
    return this.#of(token)?.check(token, now);
  }

  #of(token: string): OidcIssuer | undefined {
    return this.#issuers.find((issuer) => issuer.issued(token));
  }
}
