// One issuer of ID tokens, as it is checked: from the flags (options.ts) or from a configuration (validate.ts). Types only.

import type { CelProgram } from '../../cel/cel.ts';
import type { SigningAlgorithm } from './signature.ts';

export type ClaimMapping = { readonly claim: string; readonly prefix: string } | { readonly program: CelProgram };

/** An expression that must be true. */
export interface Rule {
  readonly program: CelProgram;
  /** The error where it is false. */
  readonly message: string;
}

export interface OidcSettings {
  readonly issuer: string;
  /** Absent: where the issuer says what it is, by its own URL. */
  readonly discoveryUrl?: string;
  /** A token is for one of these. */
  readonly audiences: readonly string[];
  readonly username: ClaimMapping;
  readonly groups: ClaimMapping | undefined;
  readonly uid: { readonly claim: string } | { readonly program: CelProgram } | undefined;
  readonly extra: readonly { readonly key: string; readonly program: CelProgram }[];
  readonly requiredClaims: ReadonlyMap<string, string>;
  readonly claimRules: readonly Rule[];
  readonly userRules: readonly Rule[];
  readonly algorithms: readonly SigningAlgorithm[];
  /** PEM; undefined: the machine's. */
  readonly ca: string | undefined;
}
