// Authentication and authorization of callers of the kubelet API: client certificates, bearer tokens by TokenReview,
// anonymous callers; then SubjectAccessReview. Results are cached for the configured times.

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { certificateTime } from '../../lib/certificate-time.ts';
import type { Clock, EpochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { KubeletConfiguration } from '../config/options.ts';
import type { ReviewClient } from './options.ts';
import { TtlCache } from './ttl-cache.ts';

export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What a request would do to the node; one of several ways it may be allowed. */
export interface AccessAttributes {
  readonly verb: string;
  /** Subresources of nodes, each of which is enough; most specific first. */
  readonly subresources: readonly string[];
}

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Paths with a subresource of their own; a caller with nodes/proxy may use the finer ones too (KEP-2862). */
const SUBRESOURCES: readonly (readonly [path: string, subresources: readonly string[]])[] = [
  ['/stats', ['stats']],
  ['/metrics', ['metrics']],
  ['/logs', ['log']],
  ['/healthz', ['healthz', 'proxy']],
  ['/pods', ['pods', 'proxy']],
  ['/runningpods', ['pods', 'proxy']],
  ['/configz', ['configz', 'proxy']],
];

/** The kubelet's access review attributes of a request. Pure. */
export function accessAttributes(method: string, path: string): AccessAttributes {
  const found = SUBRESOURCES.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  return { verb: getOwn(VERBS, method) ?? '', subresources: found?.[1] ?? ['proxy'] };
}

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

export class Callers {
  readonly #config: Pick<KubeletConfiguration, 'authentication' | 'authorization'>;
  readonly #nodeName: string;
  readonly #reviews: ReviewClient | undefined;
  readonly #clock: Clock;
  readonly #tokens: TtlCache<User | undefined>;
  readonly #access: TtlCache<boolean>;

  constructor(
    config: Pick<KubeletConfiguration, 'authentication' | 'authorization'>,
    nodeName: string,
    reviews: ReviewClient | undefined,
    clock: Clock,
  ) {
    this.#config = config;
    this.#nodeName = nodeName;
    this.#reviews = reviews;
    this.#clock = clock;
    this.#tokens = new TtlCache(clock);
    this.#access = new TtlCache(clock);
  }

  /** Undefined for a caller without valid credentials. Rejects when the TokenReview fails. */
  async authenticate(request: IncomingMessage): Promise<User | undefined> {
    const certified = certificateUser(request, this.#clock.now());
    if (certified !== undefined) return certified;
    const { webhook, anonymous } = this.#config.authentication;
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return anonymous.enabled ? ANONYMOUS : undefined;
    return webhook.enabled && this.#reviews !== undefined ? await this.#reviewToken(token, this.#reviews) : undefined;
  }

  async authorize(user: User, { verb, subresources }: AccessAttributes): Promise<boolean> {
    const { mode } = this.#config.authorization;
    if (mode === 'AlwaysAllow') return true;
    if (this.#reviews === undefined) return false;
    for (const subresource of subresources) {
      if (await this.#reviewAccess(user, verb, subresource, this.#reviews)) return true;
    }
    return false;
  }

  #reviewToken(token: string, reviews: ReviewClient): Promise<User | undefined> {
    // The token itself is not kept.
    const key = createHash('sha256').update(token).digest('base64');
    const { cacheTTL } = this.#config.authentication.webhook;
    return this.#tokens.get(
      key,
      async () => {
        const body = { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', spec: { token } };
        const { status } = await reviews.create<TokenReview>('/apis/authentication.k8s.io/v1/tokenreviews', body);
        const { username = '', uid, groups = [], extra } = status?.user ?? {};
        if (status?.authenticated !== true || username === '') return undefined;
        return {
          name: username,
          groups: [...new Set([...groups, AUTHENTICATED])],
          ...(uid === undefined ? {} : { uid }),
          ...(extra === undefined ? {} : { extra }),
        };
      },
      () => cacheTTL,
    );
  }

  #reviewAccess(user: User, verb: string, subresource: string, reviews: ReviewClient): Promise<boolean> {
    const spec = {
      user: user.name,
      groups: user.groups,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: this.#nodeName },
    };
    const { cacheAuthorizedTTL, cacheUnauthorizedTTL } = this.#config.authorization.webhook;
    return this.#access.get(
      JSON.stringify(spec),
      async () => {
        const body = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', spec };
        const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
        return (await reviews.create<SubjectAccessReview>(path, body)).status?.allowed === true;
      },
      (allowed) => (allowed ? cacheAuthorizedTTL : cacheUnauthorizedTTL),
    );
  }
}
