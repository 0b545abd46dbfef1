// What kube-apiserver's --oidc-… flags say, and what of it cannot be: with its messages and its defaults for prefixes
// (k8s.io/apiserver/pkg/apis/apiserver/validation). Pure.

import { UserError } from '../../../lib/errors.ts';
import { goQuote } from '../../../lib/go-words.ts';
import type { OidcSettings } from './settings.ts';
import { isAlgorithm, type SigningAlgorithm } from './signature.ts';
import { caErrors, urlErrors } from './validate.ts';

/** --oidc-issuer-url and so on, as they were given. */
export interface OidcOptions {
  readonly issuerUrl?: string;
  readonly clientId?: string;
  /** Default: sub. */
  readonly usernameClaim?: string;
  /** "-" is none. Default: none for the claim "email", else the issuer and "#". */
  readonly usernamePrefix?: string;
  readonly groupsClaim?: string;
  readonly groupsPrefix?: string;
  /** Claim → the value that it must have. */
  readonly requiredClaims?: ReadonlyMap<string, string>;
  /** Default: RS256. */
  readonly signingAlgs?: readonly string[];
  /** A PEM file. Default: the machine's CAs. */
  readonly caFile?: string;
}

/** As upstream: without a prefix of its own, a name is the issuer's, but for an address of mail. */
function usernamePrefix({ usernameClaim = 'sub', usernamePrefix: given = '' }: OidcOptions, issuer: string): string {
  if (given === '-') return '';
  return given === '' && usernameClaim !== 'email' ? `${issuer}#` : given;
}

/**
 * The settings, `readCa` reads the CA file. `accountIssuers` are those of service accounts, whose tokens are checked
 * elsewhere. Throws UserError.
 */
export function oidcSettings(
  options: OidcOptions,
  accountIssuers: readonly string[],
  readCa: (path: string) => string,
): OidcSettings {
  const { issuerUrl = '', clientId = '', usernameClaim = 'sub', groupsClaim = '', groupsPrefix = '' } = options;
  const { signingAlgs = [], requiredClaims = new Map(), caFile = '' } = options;
  if (issuerUrl === '' || clientId === '') {
    throw new UserError('oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set');
  }
  const ca = caFile === '' ? undefined : readCa(caFile);
  const problems = [
    ...urlErrors(issuerUrl, accountIssuers, 'issuer.url'),
    ...(ca === undefined ? [] : caErrors(ca, 'issuer.certificateAuthority')),
  ].map(({ field, detail }) => `${field}: ${detail}`);
  if (usernameClaim === '') problems.push('claimMappings.username: Required value: claim or expression is required');
  if (problems.length > 0) throw new UserError(`--oidc-issuer-url: ${problems.join('; ')}`);
  const algorithms: SigningAlgorithm[] = [];
  for (const name of signingAlgs.length === 0 ? ['RS256'] : signingAlgs) {
    if (!isAlgorithm(name)) throw new UserError(`oidc: unsupported signing alg: ${goQuote(name)}`);
    algorithms.push(name);
  }
  return {
    issuer: issuerUrl,
    audiences: [clientId],
    username: { claim: usernameClaim, prefix: usernamePrefix(options, issuerUrl) },
    groups: groupsClaim === '' ? undefined : { claim: groupsClaim, prefix: groupsPrefix },
    uid: undefined,
    extra: [],
    requiredClaims,
    claimRules: [],
    userRules: [],
    algorithms,
    ca,
  };
}
