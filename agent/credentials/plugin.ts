// One credential provider plugin: its program run, its responses cached for their duration, one run at a time for equal
// requests. It chooses nothing among credentials.

import type { Pod } from '../../client/types.ts';
import { type Clock, type MonotonicMs, plusMs } from '../../lib/clock.ts';
import type { Exec } from '../../lib/exec.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { RegistryCredential } from '../ports/pull-credentials.ts';
import { type ProviderRequest, type ProviderResponse, parseResponse, printRequest } from './exec-protocol.ts';
import { imageMatches } from './image-match.ts';
import type { CredentialProviderConfig, TokenAttributes } from './provider-config.ts';

/** What is read of a ServiceAccount. */
export interface Account {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface PluginParts {
  /** The program's path. */
  readonly program: string;
  readonly exec: Exec;
  readonly clock: Clock;
  readonly tracer: Tracer;
  /** Both reject when the API server does not give them. Absent in standalone mode. */
  readonly accounts?: {
    account(namespace: string, name: string): Promise<Account | undefined>;
    token(pod: Pod, audience: string): Promise<string>;
  };
}

interface CachedCredentials {
  readonly credentials: readonly RegistryCredential[];
  /** Monotonic ms. */
  readonly expiresAt: MonotonicMs;
}

/** How long a program may take. ms. */
const EXEC_MS = 60_000;
const MAX_CACHED = 1_000;

/** What the plugin gets of the pod's service account, and the cache key of its responses. */
interface AccountIdentity {
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly key: string;
}

export class CredentialPlugin {
  readonly #config: CredentialProviderConfig;
  readonly #parts: PluginParts;
  readonly #cache = new Map<string, CachedCredentials>();
  readonly #running = new Map<string, Promise<ProviderResponse>>();

  constructor(config: CredentialProviderConfig, parts: PluginParts) {
    this.#config = config;
    this.#parts = parts;
  }

  get name(): string {
    return this.#config.name;
  }

  /** Rejects when the program fails or answers what it may not. */
  async provide(pod: Pod, image: string): Promise<readonly RegistryCredential[]> {
    const { matchImages, tokenAttributes } = this.#config;
    if (!matchImages.some((pattern) => imageMatches(pattern, image))) return [];
    let identity: AccountIdentity | undefined;
    if (tokenAttributes !== undefined) {
      identity = await this.#serviceAccountOf(pod, tokenAttributes);
      if (identity === undefined && tokenAttributes.requireServiceAccount) return [];
    }
    const scope = identity?.key ?? '';
    const cached = this.#getCached(image, scope);
    if (cached !== undefined) return cached;
    const { cacheKeyType, cacheMs, credentials } = await this.#execOnce(image, identity);
    const ttlMs = cacheMs ?? this.#config.defaultCacheMs;
    if (ttlMs > 0) this.#addToCache(keyOf(cacheKeyType, image, scope), credentials, ttlMs);
    return credentials;
  }

  #getCached(image: string, scope: string): readonly RegistryCredential[] | undefined {
    const now = this.#parts.clock.monotonic();
    for (const type of ['Image', 'Registry', 'Global'] as const) {
      const cached = this.#cache.get(keyOf(type, image, scope));
      if (cached !== undefined && now < cached.expiresAt) return cached.credentials;
    }
    return undefined;
  }

  #addToCache(key: string, credentials: readonly RegistryCredential[], ttlMs: number): void {
    const now = this.#parts.clock.monotonic();
    for (const [other, { expiresAt }] of this.#cache) if (expiresAt <= now) this.#cache.delete(other);
    const [oldest] = this.#cache.keys();
    if (this.#cache.size >= MAX_CACHED && oldest !== undefined) this.#cache.delete(oldest);
    this.#cache.set(key, { credentials, expiresAt: plusMs(now, ttlMs) });
  }

  /** Undefined for a pod without an account, or one whose account lacks a required annotation. */
  async #serviceAccountOf(pod: Pod, attributes: TokenAttributes): Promise<AccountIdentity | undefined> {
    const { accounts } = this.#parts;
    const name = pod.spec.serviceAccountName ?? '';
    const { namespace } = pod.metadata;
    if (name === '' || accounts === undefined) return undefined;
    const account = await accounts.account(namespace, name);
    if (account === undefined) throw new Error(`service account ${namespace}/${name} not found`);
    const { requiredServiceAccountAnnotationKeys: required, optionalServiceAccountAnnotationKeys: also } = attributes;
    if (required.some((key) => getOwn(account.annotations, key) === undefined)) return undefined;
    const annotations = Object.fromEntries(
      [...required, ...also].sort().flatMap((key) => {
        const value = getOwn(account.annotations, key);
        return value === undefined ? [] : [[key, value] as const];
      }),
    );
    const token = await accounts.token(pod, attributes.serviceAccountTokenAudience);
    const owner = attributes.cacheType === 'Token' ? token : `${namespace}/${name}/${account.uid}`;
    return { token, annotations, key: JSON.stringify([owner, annotations]) };
  }

  #execOnce(image: string, identity: AccountIdentity | undefined): Promise<ProviderResponse> {
    const key = JSON.stringify([image, identity?.key]);
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#run(image, identity).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    return running;
  }

  #run(image: string, identity: AccountIdentity | undefined): Promise<ProviderResponse> {
    const { program, exec, tracer } = this.#parts;
    const { name, args, env, apiVersion } = this.#config;
    const request: ProviderRequest = {
      apiVersion,
      image,
      ...(identity === undefined ? {} : { serviceAccountToken: identity.token }),
      ...(identity === undefined || Object.keys(identity.annotations).length === 0
        ? {}
        : { serviceAccountAnnotations: identity.annotations }),
    };
    return tracer.span('credentials', 'execPlugin', { provider: name, image }, async () => {
      const result = await exec(program, args, {
        stdin: printRequest(request),
        env: { ...process.env, ...Object.fromEntries(env.map((each) => [each.name, each.value])) },
        timeoutMs: EXEC_MS,
      });
      // Its stdout contains secrets and is never part of a message.
      if (result.timedOut) throw new Error(`error execing credential provider plugin ${name}: it took over a minute`);
      if (result.code !== 0) {
        const end = result.code === null ? `signal: ${result.signal}` : `exit status ${result.code}`;
        throw new Error(`error execing credential provider plugin ${name}: ${end}${firstLine(result.stderr)}`);
      }
      return parseResponse(result.stdout, apiVersion);
    });
  }
}

function firstLine(stderr: string): string {
  const line = stderr.trim().split('\n')[0] ?? '';
  return line === '' ? '' : `: ${line.slice(0, 200)}`;
}

function keyOf(type: ProviderResponse['cacheKeyType'], image: string, scope: string): string {
  const subject = type === 'Image' ? image : type === 'Registry' ? (image.split('/')[0] ?? '') : '';
  return JSON.stringify([type, subject, scope]);
}
