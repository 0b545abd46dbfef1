// The bearer tokens that a server accepts, from its flags and their files.

import { readFileSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import type { ObjectLookup } from '../kinds/resource.ts';
import type { Pki } from '../pki/types.ts';
import { BearerTokens } from './bearer-tokens.ts';
import type { AnonymousConfig } from './oidc/configuration.ts';
import { OidcIssuers } from './oidc/issuers.ts';
import { openAuthentication } from './oidc/load.ts';
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
  /** Whom --authentication-config lets in without a credential; undefined where it says nothing of them. */
  readonly anonymous: AnonymousConfig | undefined;
  /** Looks for issuers of ID tokens, and follows the file that names them; returns what ends it. */
  readonly start: () => () => void;
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
  const { oidc, anonymous, follow } = openIssuers(auth, { clock, log });
  const bootstrap = bootstrapTokenAuth === true;
  const start = (): (() => void) => {
    oidc?.start();
    const stopFollowing = follow();
    return () => {
      stopFollowing();
      oidc?.stop();
    };
  };
  return {
    tokens,
    bearers: new BearerTokens({ accounts: tokens, lookup, statics, bootstrap, oidc }),
    anonymous,
    start,
  };
}

interface OpenIssuers {
  readonly oidc: OidcIssuers | undefined;
  readonly anonymous: AnonymousConfig | undefined;
  readonly follow: () => () => void;
}

function openIssuers(auth: AuthOptions, parts: Pick<TokenParts, 'clock' | 'log'>): OpenIssuers {
  const { serviceAccountIssuers = [ISSUER], authenticationConfig: file } = auth;
  if (file === undefined) {
    const readCa = (path: string): string => readOption('--oidc-ca-file', path);
    const settings = auth.oidc === undefined ? undefined : oidcSettings(auth.oidc, serviceAccountIssuers, readCa);
    const oidc = settings === undefined ? undefined : new OidcIssuers([settings], parts);
    return { oidc, anonymous: undefined, follow: () => () => undefined };
  }
  if (auth.oidc !== undefined)
    throw new UserError('authentication-config file and oidc-* flags are mutually exclusive');
  const { issuers, anonymous, follow } = openAuthentication(file, serviceAccountIssuers, parts);
  if (anonymous !== undefined && auth.anonymousAuth !== undefined) {
    const why =
      '--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file';
    throw new UserError(`anonymous: Forbidden: ${why}`);
  }
  return { oidc: issuers, anonymous, follow };
}
