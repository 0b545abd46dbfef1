// What kube-apiserver's --oidc-… flags say, and what of it cannot be: with its messages and its defaults for prefixes
// (k8s.io/apiserver/pkg/apis/apiserver/validation). Pure.

import { X509Certificate } from 'node:crypto';
import { UserError } from '../../../lib/errors.ts';
import { goQuote } from '../../../lib/go-words.ts';
import { isAlgorithm, type SigningAlgorithm } from './signature.ts';

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

/** One issuer, checked. */
export interface OidcSettings {
  readonly issuer: string;
  readonly audience: string;
  readonly username: { readonly claim: string; readonly prefix: string };
  readonly groups: { readonly claim: string; readonly prefix: string } | undefined;
  readonly requiredClaims: ReadonlyMap<string, string>;
  readonly algorithms: readonly SigningAlgorithm[];
  /** PEM; undefined: the machine's. */
  readonly ca: string | undefined;
}

function issuerProblems(issuer: string, accountIssuers: readonly string[]): string[] {
  const invalid = (why: string): string => `issuer.url: Invalid value: ${goQuote(issuer)}: ${why}`;
  const problems: string[] = [];
  if (accountIssuers.includes(issuer)) {
    problems.push(invalid(`URL must not overlap with disallowed issuers: [${[...accountIssuers].sort().join(' ')}]`));
  }
  if (!URL.canParse(issuer)) return [...problems, invalid('it is no URL')];
  const { protocol, username, password, search, hash } = new URL(issuer);
  if (protocol !== 'https:') problems.push(invalid('URL scheme must be https'));
  if (username !== '' || password !== '') problems.push(invalid('URL must not contain a username or password'));
  if (search !== '') problems.push(invalid('URL must not contain a query'));
  if (hash !== '') problems.push(invalid('URL must not contain a fragment'));
  return problems;
}

function hasCertificate(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.some((block) => {
    try {
      return new X509Certificate(block).subject !== undefined;
    } catch {
      // A block that does not parse is no certificate.
      return false;
    }
  });
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
  const problems = issuerProblems(issuerUrl, accountIssuers);
  const ca = caFile === '' ? undefined : readCa(caFile);
  if (ca !== undefined && !hasCertificate(ca)) {
    const why = 'data does not contain any valid RSA or ECDSA certificates';
    problems.push(`issuer.certificateAuthority: Invalid value: "<omitted>": ${why}`);
  }
  if (usernameClaim === '') problems.push('claimMappings.username: Required value: claim or expression is required');
  if (problems.length > 0) throw new UserError(`--oidc-issuer-url: ${problems.join('; ')}`);
  const algorithms: SigningAlgorithm[] = [];
  for (const name of signingAlgs.length === 0 ? ['RS256'] : signingAlgs) {
    if (!isAlgorithm(name)) throw new UserError(`oidc: unsupported signing alg: ${goQuote(name)}`);
    algorithms.push(name);
  }
  return {
    issuer: issuerUrl,
    audience: clientId,
    username: { claim: usernameClaim, prefix: usernamePrefix(options, issuerUrl) },
    groups: groupsClaim === '' ? undefined : { claim: groupsClaim, prefix: groupsPrefix },
    requiredClaims,
    algorithms,
    ca,
  };
}
