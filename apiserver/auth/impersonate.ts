// Impersonation: what the Impersonate-* headers of a request ask for, whether the caller may, and the identity that the
// request then has. Only decides; the rules are kube-apiserver's (endpoints/filters/impersonation.go). The headers never
// leave this server: proxied requests are stripped of them (proxy/proxy.ts).

import { internalError } from '../errors.ts';
import type { Caller } from '../registry/registry.ts';
import type { Attributes } from './attributes.ts';
import { refusal } from './authorize.ts';
import type { Authorizer } from './authorizer.ts';
import { accountGroups } from './tokens.ts';

/** Of every header that is about impersonation, in lower case. */
export const HEADER_PREFIX = 'impersonate-';
const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATED = 'system:authenticated';
const UNAUTHENTICATED = 'system:unauthenticated';
const ANONYMOUS_NAME = 'system:anonymous';
const AUTHENTICATION = 'authentication.k8s.io';

interface Impersonation {
  /** '' when the headers name none. */
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** A key in the name of a header. */
export function decodeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch (error) {
    // As upstream: a key that is not percent-encoded means itself.
    if (error instanceof URIError) return key;
    throw error;
  }
}

/** The requested impersonation, or undefined without such headers. `raw` is IncomingMessage.rawHeaders. */
function parseImpersonation(raw: readonly string[]): Impersonation | undefined {
  const users: string[] = [];
  const uids: string[] = [];
  const groups: string[] = [];
  const extra = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    if (!name.startsWith(HEADER_PREFIX)) continue;
    // Node reads header bytes as Latin-1; clients send UTF-8.
    const value = Buffer.from(raw[i + 1] ?? '', 'latin1').toString('utf8');
    if (name === 'impersonate-user') users.push(value);
    else if (name === 'impersonate-uid') uids.push(value);
    else if (name === 'impersonate-group') groups.push(value);
    else if (name.startsWith(EXTRA_PREFIX)) {
      const key = decodeKey(name.slice(EXTRA_PREFIX.length));
      extra.set(key, [...(extra.get(key) ?? []), value]);
    }
  }
  const [user = ''] = users;
  const [uid = ''] = uids;
  const nothing = user === '' && uid === '' && groups.length === 0 && extra.size === 0;
  return nothing ? undefined : { user, uid, groups, extra };
}

/** Namespace and name of a service account, from its user name. */
function serviceAccountOf(user: string): { readonly namespace: string; readonly name: string } | undefined {
  const match = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user);
  const [, namespace, name] = match ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

function permission(resource: string, name: string, more: Partial<Attributes> = {}): Attributes {
  return { verb: 'impersonate', group: '', resource, subresource: '', namespace: '', name, ...more };
}

/** What a caller with these headers must be allowed, one by one. Pure. */
export function requiredPermissions(rawHeaders: readonly string[]): Attributes[] {
  const requested = parseImpersonation(rawHeaders);
  return requested === undefined ? [] : permissions(requested);
}

function permissions({ user, uid, groups, extra }: Impersonation): Attributes[] {
  const account = serviceAccountOf(user);
  return [
    account === undefined
      ? permission('users', user)
      : permission('serviceaccounts', account.name, { namespace: account.namespace }),
    ...groups.map((group) => permission('groups', group)),
    ...[...extra].flatMap(([key, values]) =>
      values.map((value) => permission('userextras', value, { group: AUTHENTICATION, subresource: key })),
    ),
    ...(uid === '' ? [] : [permission('uids', uid, { group: AUTHENTICATION })]),
  ];
}

/** Requested groups are taken as they are, with system:authenticated or system:unauthenticated added. */
function groupsOf({ user, groups }: Impersonation): string[] {
  const account = serviceAccountOf(user);
  const named = groups.length === 0 && account !== undefined ? accountGroups(account.namespace) : [...groups];
  if (user === ANONYMOUS_NAME) return named.includes(UNAUTHENTICATED) ? named : [...named, UNAUTHENTICATED];
  const settled = named.includes(AUTHENTICATED) || named.includes(UNAUTHENTICATED);
  return settled ? named : [...named, AUTHENTICATED];
}

/** The references of a request without a user, printed as upstream prints its list of ObjectReferences. */
function printed({ uid, groups, extra }: Impersonation): string {
  const api = `${AUTHENTICATION}/v1`;
  const references = [
    ...groups.map((group) => `{Group  ${group}    }`),
    ...[...extra].flatMap(([key, values]) => values.map((value) => `{UserExtra  ${value}  ${api}  ${key}}`)),
    ...(uid === '' ? [] : [`{UID  ${uid}  ${api}  }`]),
  ];
  return `[${references.join(' ')}]`;
}

/**
 * Who the request is to come from, or undefined when it comes from the caller. Throws 403 when the caller may not act as
 * that user, one of the groups, the uid or an extra value; 500, as upstream, for headers that name no user.
 */
export function impersonated(
  caller: Caller,
  rawHeaders: readonly string[],
  authorizer: Authorizer,
): Caller | undefined {
  const requested = parseImpersonation(rawHeaders);
  if (requested === undefined) return undefined;
  if (requested.user === '') throw internalError(`requested ${printed(requested)} without impersonating a user`);
  for (const attributes of permissions(requested)) {
    const decision = authorizer.authorize(caller, attributes);
    if (!decision.allowed) throw refusal(caller, attributes, decision);
  }
  return {
    name: requested.user,
    groups: groupsOf(requested),
    ...(requested.uid === '' ? {} : { uid: requested.uid }),
    ...(requested.extra.size === 0 ? {} : { extra: Object.fromEntries(requested.extra) }),
  };
}

/** A caller chooses most of the line. */
const MAX_LINE = 2048;

/** The log line of an impersonated request, with both identities or the reason of the refusal. Pure. */
export function auditLine(
  caller: Caller,
  as: Caller | string,
  request: { readonly method: string; readonly path: string },
): string {
  const shown = ({ name, groups, uid, extra }: Caller): string => JSON.stringify({ name, uid, groups, extra });
  const whom = typeof as === 'string' ? as : `as ${shown(as)}`;
  return `impersonation: ${request.method} by ${shown(caller)} ${whom}: ${request.path}`.slice(0, MAX_LINE);
}
