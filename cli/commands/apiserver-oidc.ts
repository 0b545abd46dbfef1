// The --oidc-… flags of `nodelet apiserver`, by kube-apiserver's names.

import type { Command } from 'commander';
import type { OidcOptions } from '../../apiserver/auth/oidc/options.ts';
import { UserError } from '../../lib/errors.ts';

export interface OidcFlags {
  readonly oidcIssuerUrl?: string;
  readonly oidcClientId?: string;
  readonly oidcUsernameClaim?: string;
  readonly oidcUsernamePrefix?: string;
  readonly oidcGroupsClaim?: string;
  readonly oidcGroupsPrefix?: string;
  readonly oidcRequiredClaim?: ReadonlyMap<string, string>;
  readonly oidcSigningAlgs?: readonly string[];
  readonly oidcCaFile?: string;
}

function pair(text: string, before: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const at = text.indexOf('=');
  if (at < 0) throw new UserError(`--oidc-required-claim: malformed pair, expect string=string: "${text}"`);
  return new Map([...before, [text.slice(0, at).trim(), text.slice(at + 1).trim()]]);
}

function listed(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(',')];
}

export function addOidcFlags(command: Command): void {
  command
    .option('--oidc-issuer-url <url>', 'accept the ID tokens of this OpenID Connect issuer (https)')
    .option('--oidc-client-id <id>', 'the audience that its tokens must be for')
    .option('--oidc-username-claim <claim>', 'the claim that is the user’s name (default: sub)')
    .option(
      '--oidc-username-prefix <prefix>',
      'put before names, "-" for none (default: "<issuer>#", but for email none)',
    )
    .option('--oidc-groups-claim <claim>', 'the claim that is the user’s groups, a string or a list')
    .option('--oidc-groups-prefix <prefix>', 'put before groups')
    .option('--oidc-required-claim <claim=value>', 'a claim that must have this value; may be repeated', pair)
    .option('--oidc-signing-algs <names>', 'algorithms that tokens may be signed with (default: RS256)', listed)
    .option('--oidc-ca-file <file>', 'the CAs of the issuer’s certificate (default: the machine’s)');
}

/** Nothing where none of the flags is given. */
export function oidcOptions(flags: OidcFlags): { readonly oidc?: OidcOptions } {
  const oidc: OidcOptions = {
    ...(flags.oidcIssuerUrl === undefined ? {} : { issuerUrl: flags.oidcIssuerUrl }),
    ...(flags.oidcClientId === undefined ? {} : { clientId: flags.oidcClientId }),
    ...(flags.oidcUsernameClaim === undefined ? {} : { usernameClaim: flags.oidcUsernameClaim }),
    ...(flags.oidcUsernamePrefix === undefined ? {} : { usernamePrefix: flags.oidcUsernamePrefix }),
    ...(flags.oidcGroupsClaim === undefined ? {} : { groupsClaim: flags.oidcGroupsClaim }),
    ...(flags.oidcGroupsPrefix === undefined ? {} : { groupsPrefix: flags.oidcGroupsPrefix }),
    ...(flags.oidcRequiredClaim === undefined ? {} : { requiredClaims: flags.oidcRequiredClaim }),
    ...(flags.oidcSigningAlgs === undefined ? {} : { signingAlgs: flags.oidcSigningAlgs }),
    ...(flags.oidcCaFile === undefined ? {} : { caFile: flags.oidcCaFile }),
  };
  return Object.keys(oidc).length === 0 ? {} : { oidc };
}
