// Who calls a component's HTTPS server, and whether the API server lets the caller do it: client certificates, bearer tokens by
// TokenReview, then SubjectAccessReview. Caches nothing.

import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { certificateTime } from '../lib/certificate-time.ts';
import type { EpochMs } from '../lib/clock.ts';

export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** The client of access reviews; ApiClient has this shape. */
export interface ReviewClient {
  create<T>(path: string, body: unknown): Promise<T>;
}

/** What is to be done, in SubjectAccessReview's form. */
export type ReviewedAccess =
  | { readonly resourceAttributes: Readonly<Record<string, string>> }
  | { readonly nonResourceAttributes: { readonly path: string; readonly verb: string } };

export const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
const AUTHENTICATED = 'system:authenticated';

const list = (value: string | string[] | undefined): string[] => (value === undefined ? [] : [value].flat());

/**
 * The caller's verified client certificate as a user: CN is the name, O the groups. `now` is epoch ms: a connection may
 * outlive the certificate that it was opened with.
 */
export function certificateUser(request: IncomingMessage, now: EpochMs): User | undefined {
  const { socket } = request;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const { subject, valid_to: validTo } = socket.getPeerCertificate();
  if (now > certificateTime(validTo)) return undefined;
  const [name = ''] = list(subject?.CN);
  return name === '' ? undefined : { name, groups: [...list(subject.O), AUTHENTICATED] };
}

export function bearerToken(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}

interface TokenReview {
  status?: {
    authenticated?: boolean;
    error?: string;
    user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
  };
}
interface SubjectAccessReview {
  status?: { allowed?: boolean; reason?: string };
}

/** Whose token it is; undefined for one that is not valid. Rejects when the API server does not answer. */
export async function reviewToken(token: string, client: ReviewClient): Promise<User | undefined> {
  const body = { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', spec: { token } };
  const { status } = await client.create<TokenReview>('/apis/authentication.k8s.io/v1/tokenreviews', body);
  const { username = '', uid, groups = [], extra } = status?.user ?? {};
  if (status?.authenticated !== true || username === '') return undefined;
  return {
    name: username,
    groups: [...new Set([...groups, AUTHENTICATED])],
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined ? {} : { extra }),
  };
}

/** The same for the same user and access, to be used as a key, too. */
export function accessSpec(user: User, access: ReviewedAccess) {
  return {
    user: user.name,
    groups: user.groups,
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    ...(user.extra === undefined ? {} : { extra: user.extra }),
    ...access,
  };
}

/** Rejects when the API server does not answer. */
export async function reviewAccess(spec: ReturnType<typeof accessSpec>, client: ReviewClient): Promise<boolean> {
  const body = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', spec };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  return (await client.create<SubjectAccessReview>(path, body)).status?.allowed === true;
}
