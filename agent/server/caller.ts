// Authentication and authorization of callers of the kubelet API: client certificates, bearer tokens by TokenReview,
// anonymous callers; then SubjectAccessReview (client/reviews.ts). Results are cached for the configured times.

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  ANONYMOUS,
  accessSpec,
  bearerToken,
  certificateUser,
  type ReviewClient,
  reviewAccess,
  reviewToken,
  type User,
} from '../../client/reviews.ts';
import type { Clock } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { TtlCache } from '../../lib/ttl-cache.ts';
import type { KubeletConfiguration } from '../config/options.ts';

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
      () => reviewToken(token, reviews),
      () => cacheTTL,
    );
  }

  #reviewAccess(user: User, verb: string, subresource: string, reviews: ReviewClient): Promise<boolean> {
    const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: this.#nodeName };
    const spec = accessSpec(user, { resourceAttributes });
    const { cacheAuthorizedTTL, cacheUnauthorizedTTL } = this.#config.authorization.webhook;
    return this.#access.get(
      JSON.stringify(spec),
      () => reviewAccess(spec, reviews),
      (allowed) => (allowed ? cacheAuthorizedTTL : cacheUnauthorizedTTL),
    );
  }
}
