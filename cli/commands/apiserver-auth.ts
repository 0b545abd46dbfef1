// The flags of `nodelet apiserver` for authentication and authorization, by kube-apiserver's names.

import type { Command } from 'commander';
import type { AuthOptions } from '../../apiserver/auth/options.ts';
import { UserError } from '../../lib/errors.ts';
import { addOidcFlags, type OidcFlags, oidcOptions } from './apiserver-oidc.ts';
import { addRequestHeaderFlags, type RequestHeaderFlags, requestHeaderOptions } from './apiserver-request-header.ts';
import { repeatedOption } from './list-flag.ts';

type Mode = NonNullable<AuthOptions['authorizationMode']>[number];

const MODES: readonly Mode[] = ['Node', 'RBAC', 'AlwaysAllow', 'AlwaysDeny'];

export interface AuthFlags extends OidcFlags, RequestHeaderFlags {
  readonly authorizationMode: string;
  readonly anonymousAuth?: boolean;
  readonly authenticationConfig?: string;
  readonly clientCaFile?: string;
  readonly tokenAuthFile?: string;
  readonly enableBootstrapTokenAuth?: boolean;
  readonly serviceAccountIssuer: readonly string[];
  readonly serviceAccountKeyFile: readonly string[];
  readonly apiAudiences?: string;
}

/** "true" or "false" of a flag that may also stand alone. */
export function truth(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new UserError(`"${text}" is neither true nor false`);
}

export function addAuthFlags(command: Command): void {
  command
    .option('--authorization-mode <modes>', `ordered list of authorizers, of ${MODES.join(', ')}`, 'Node,RBAC')
    .option(
      '--anonymous-auth [boolean]',
      'allow requests without credentials, as system:anonymous, or refuse them (default: only health checks and /version are allowed)',
      truth,
    )
    .option(
      '--authentication-config <file>',
      'issuers of ID tokens, and who is anonymous (AuthenticationConfiguration), instead of --oidc-…; read again when it changes',
    )
    .option('--client-ca-file <file>', 'CA bundle for client certificates; read again when it changes')
    .option('--token-auth-file <file>', 'static tokens: lines of token, user, uid and optional quoted groups')
    .option('--enable-bootstrap-token-auth [boolean]', 'accept bootstrap tokens (Secrets in kube-system)', truth)
    .addOption(
      repeatedOption(
        '--service-account-issuer <url>',
        'issuer of tokens: the first one issues, all are accepted',
        'https://kubernetes.default.svc.cluster.local',
      ),
    )
    .addOption(repeatedOption('--service-account-key-file <file>', 'accept tokens signed with this key as well'))
    .option('--api-audiences <list>', 'audiences of tokens that name none (default: the issuers)');
  addOidcFlags(command);
  addRequestHeaderFlags(command);
}

function isMode(text: string): text is Mode {
  return MODES.some((mode) => mode === text);
}

/** Throws UserError for an authorizer that is not here. */
function modesOf(text: string): Mode[] {
  return text.split(',').map((mode) => {
    if (isMode(mode)) return mode;
    throw new UserError(`--authorization-mode: "${mode}" is not one of ${MODES.join(', ')}`);
  });
}

export function authOptions(flags: AuthFlags): AuthOptions {
  const { anonymousAuth, clientCaFile, tokenAuthFile, enableBootstrapTokenAuth, apiAudiences, authenticationConfig } =
    flags;
  return {
    authorizationMode: modesOf(flags.authorizationMode),
    ...(anonymousAuth === undefined ? {} : { anonymousAuth }),
    ...(authenticationConfig === undefined ? {} : { authenticationConfig }),
    ...(clientCaFile === undefined ? {} : { clientCaFile }),
    ...(tokenAuthFile === undefined ? {} : { tokenAuthFile }),
    ...(enableBootstrapTokenAuth === undefined ? {} : { bootstrapTokenAuth: enableBootstrapTokenAuth }),
    ...(apiAudiences === undefined ? {} : { apiAudiences: apiAudiences.split(',') }),
    ...(flags.serviceAccountIssuer.length === 0 ? {} : { serviceAccountIssuers: flags.serviceAccountIssuer }),
    serviceAccountKeyFiles: flags.serviceAccountKeyFile,
    ...oidcOptions(flags),
    ...requestHeaderOptions(flags),
  };
}
