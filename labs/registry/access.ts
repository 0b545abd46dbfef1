// Who may pull what, by tokens of Distribution's token specification (JWTs with HS256). As with Docker Hub, a client without an account
// gets a token too, one without access to private repositories; so a refused pull is a token's lack of scope. Pure but for the key's signature.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { type RepositoryKind, repositoryKind } from './names.ts';

/** ms. Docker Hub's. */
export const TOKEN_MS = 300_000;
/** Who issues tokens, and who takes them. */
export const SERVICE = 'registry.nodelet';

export interface Account {
  readonly user: string;
  readonly password: string;
}

/** The account that may pull from private repositories. */
export const ACCOUNT: Account = { user: 'student', password: 'open-sesame' };

interface Access {
  readonly type: string;
  readonly name: string;
  readonly actions: readonly string[];
}

interface Claims {
  /** The user's name; empty for none. */
  readonly sub: string;
  /** Seconds since the epoch. */
  readonly exp: number;
  readonly access: readonly Access[];
}

const bytes = (text: string): Buffer => createHmac('sha256', 'compare').update(text).digest();
const same = (a: string, b: string): boolean => timingSafeEqual(bytes(a), bytes(b));

export function isAccount({ user, password }: Account): boolean {
  return same(user, ACCOUNT.user) && same(password, ACCOUNT.password);
}

/** Of a header "Basic …"; undefined for any other. */
export function basicCredentials(header: string | undefined): Account | undefined {
  const packed = /^basic ([\w+/=-]+)$/i.exec(header ?? '')?.[1];
  if (packed === undefined) return undefined;
  const text = Buffer.from(packed, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Whether a user, undefined for one without an account, may pull from a repository. `exists`: false hides that there is none. */
function mayPull(user: string | undefined, kind: RepositoryKind, exists: boolean): boolean {
  return exists && (kind !== 'private' || user !== undefined);
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signature = (text: string, key: Buffer): string => createHmac('sha256', key).update(text).digest('base64url');

/** Access that is asked for and not granted is left out, as the specification has it. `scopes`: "repository:NAME:pull". */
export function issueToken(user: string | undefined, scopes: readonly string[], key: Buffer, now: EpochMs): string {
  const access = scopes.flatMap((scope): Access[] => {
    const [, name = ''] = /^repository:([^:]+):[\w,*]*$/.exec(scope) ?? [];
    return name !== '' && mayPull(user, repositoryKind(name), true)
      ? [{ type: 'repository', name, actions: ['pull'] }]
      : [];
  });
  const seconds = (at: EpochMs): number => Math.floor(at / 1000);
  const claims = {
    iss: SERVICE,
    aud: SERVICE,
    sub: user ?? '',
    iat: seconds(now),
    exp: seconds(plusMs(now, TOKEN_MS)),
    access,
  };
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  return `${text}.${signature(text, key)}`;
}

/** Undefined for a token that is damaged, expired, or another registry's. */
function readToken(token: string, key: Buffer, now: EpochMs): Claims | undefined {
  const [head = '', body = '', sign = ''] = token.split('.');
  if (!same(sign, signature(`${head}.${body}`, key))) return undefined;
  const claims: Claims = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
  return claims.exp * 1000 > now ? claims : undefined;
}

const bearerToken = (header: string | undefined): string | undefined => /^bearer (\S+)$/i.exec(header ?? '')?.[1];
const userOf = ({ sub }: Claims): string | undefined => (sub === '' ? undefined : sub);

export interface AccessRequest {
  readonly authorization: string | undefined;
  readonly repository: string;
  /** Docker Hub does not show whether there is a repository that the client may not see; other registries do. */
  readonly exists: boolean;
  /** Clients get tokens there: an absolute URL. */
  readonly realm: string;
}

export type AccessDecision =
  | { readonly kind: 'granted'; readonly user: string | undefined }
  | { readonly kind: 'challenge'; readonly header: string };

const challengeOf = (realm: string, rest = ''): AccessDecision => ({
  kind: 'challenge',
  header: `Bearer realm="${realm}",service="${SERVICE}"${rest}`,
});

/** Of the API itself, where clients look first how they are to authenticate: Docker, which gets a token for every pull then. */
export function decideBaseAccess(
  { authorization, realm }: Pick<AccessRequest, 'authorization' | 'realm'>,
  key: Buffer,
  now: EpochMs,
): AccessDecision {
  const basic = basicCredentials(authorization);
  if (basic !== undefined) return isAccount(basic) ? { kind: 'granted', user: basic.user } : challengeOf(realm);
  const claims = readToken(bearerToken(authorization) ?? '', key, now);
  return claims === undefined ? challengeOf(realm) : { kind: 'granted', user: userOf(claims) };
}

/** What is neither private nor limited needs no token. */
export function decideAccess(request: AccessRequest, key: Buffer, now: EpochMs): AccessDecision {
  const { authorization, repository, exists, realm } = request;
  const kind = repositoryKind(repository);
  const challenge = (error?: string): AccessDecision =>
    challengeOf(realm, `,scope="repository:${repository}:pull"${error === undefined ? '' : `,error="${error}"`}`);
  const basic = basicCredentials(authorization);
  if (basic !== undefined) {
    const user = isAccount(basic) ? basic.user : undefined;
    return user !== undefined && mayPull(user, kind, exists) ? { kind: 'granted', user } : challenge();
  }
  const token = bearerToken(authorization);
  if (token === undefined) {
    return exists && (kind === 'public' || kind === 'slow') ? { kind: 'granted', user: undefined } : challenge();
  }
  const claims = readToken(token, key, now);
  if (claims === undefined) return challenge('invalid_token');
  const user = userOf(claims);
  const allowed = claims.access.some(({ name, actions }) => name === repository && actions.includes('pull'));
  return allowed && mayPull(user, kind, exists) ? { kind: 'granted', user } : challenge('insufficient_scope');
}
