// The bearer tokens that a server accepts, from its flags and their files.

import { readFileSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Pki } from '../pki/types.ts';
import { BearerTokens } from './bearer-tokens.ts';
import { OidcIssuer } from './oidc/issuer.ts';
import { oidcSettings } from './oidc/options.ts';
import type { AuthOptions } from './options.ts';
import { StaticTokens } from './static-tokens.ts';
import { ISSUER, ServiceAccountTokens } from './tokens.ts';

export interface TokenParts {
  readonly pki: Pki;
  readonly lookup: ObjectLookup;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export interface OpenTokens {
  readonly tokens: ServiceAccountTokens;
  readonly bearers: BearerTokens;
  /** To be started. */
  readonly oidc: OidcIssuer | undefined;
}

function readOption(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(`${flag}: ${errorMessage(error)}`);
  }
}

/** Throws UserError for a flag or a file that cannot be used. */
export function openTokens(auth: AuthOptions, { pki, lookup, clock, log }: TokenParts): OpenTokens {
  const { serviceAccountIssuers, apiAudiences, serviceAccountKeyFiles = [], tokenAuthFile, bootstrapTokenAuth } = auth;
  const publicKeys = serviceAccountKeyFiles.map((path) => readOption('--service-account-key-file', path));
  const settings = { issuers: serviceAccountIssuers, audiences: apiAudiences, publicKeys };
  const tokens = new ServiceAccountTokens(pki.serviceAccount.key, settings);
  const statics =
    tokenAuthFile === undefined
      ? undefined
      : StaticTokens.parse(readOption('--token-auth-file', tokenAuthFile), tokenAuthFile);
  const readCa = (path: string): string => readOption('--oidc-ca-file', path);
  const oidc =
    auth.oidc === undefined
      ? undefined
      : new OidcIssuer(oidcSettings(auth.oidc, serviceAccountIssuers ?? [ISSUER], readCa), { clock, log });
  const bootstrap = bootstrapTokenAuth === true;
  return { tokens, bearers: new BearerTokens({ accounts: tokens, lookup, statics, bootstrap, oidc }), oidc };
}
