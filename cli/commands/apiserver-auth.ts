// The flags of `nodelet apiserver` for authentication and authorization, by kube-apiserver's names.

import type { Command } from 'commander';
import type { AuthOptions } from '../../apiserver/auth/options.ts';
import { UserError } from '../../lib/errors.ts';

type Mode = NonNullable<AuthOptions['authorizationMode']>[number];

const MODES: readonly Mode[] = ['Node', 'RBAC', 'AlwaysAllow', 'AlwaysDeny'];

export interface AuthFlags {
  readonly authorizationMode: string;
  readonly anonymousAuth?: boolean;
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

function repeated(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

export function addAuthFlags(command: Command): void {
  command
    .option('--authorization-mode <modes>', `authorizers in their order: ${MODES.join(', ')}`, 'Node,RBAC')
    .option(
      '--anonymous-auth [boolean]',
      'requests without credentials: system:anonymous everywhere, or refused everywhere (default: health and version alone)',
      truth,
    )
    .option('--client-ca-file <file>', 'accept client certificates of these CAs, too; read again when it changes')
    .option('--token-auth-file <file>', 'static tokens: lines of token, user, uid and quoted groups')
    .option('--enable-bootstrap-token-auth [boolean]', 'accept bootstrap tokens (Secrets in kube-system)', truth)
    .option('--service-account-issuer <url>', 'the first issues tokens, all are accepted', repeated, [])
    .option('--service-account-key-file <file>', 'accept tokens signed with this key, too', repeated, [])
    .option('--api-audiences <list>', 'what tokens are for that name no audience (default: the issuers)');
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
  const { anonymousAuth, clientCaFile, tokenAuthFile, enableBootstrapTokenAuth, apiAudiences } = flags;
  return {
    authorizationMode: modesOf(flags.authorizationMode),
    ...(anonymousAuth === undefined ? {} : { anonymousAuth }),
    ...(clientCaFile === undefined ? {} : { clientCaFile }),
    ...(tokenAuthFile === undefined ? {} : { tokenAuthFile }),
    ...(enableBootstrapTokenAuth === undefined ? {} : { bootstrapTokenAuth: enableBootstrapTokenAuth }),
    ...(apiAudiences === undefined ? {} : { apiAudiences: apiAudiences.split(',') }),
    ...(flags.serviceAccountIssuer.length === 0 ? {} : { serviceAccountIssuers: flags.serviceAccountIssuer }),
    serviceAccountKeyFiles: flags.serviceAccountKeyFile,
  };
}
