// One credential provider plugin: asked by running its program, its answers kept for as long as they hold, one run at a
// time for all who ask the same. It chooses nothing among credentials.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Exec } from '../../lib/exec.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { RegistryCredential } from '../ports/pull-credentials.ts';
import { type ProviderAnswer, type ProviderRequest, parseAnswer, printRequest } from './exec-protocol.ts';
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

interface Kept {
  readonly credentials: readonly RegistryCredential[];
  /** Monotonic ms. */
  readonly until: number;
}

/** How long a program may take. ms. */
const EXEC_MS = 60_000;
const KEPT_AT_MOST = 1_000;

/** What the plugin is told of the pod's account, and what answers for it are kept under. */
interface Identity {
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly key: string;
}

export class CredentialPlugin {
  readonly #config: CredentialProviderConfig;
  readonly #parts: PluginParts;
  readonly #kept = new Map<string, Kept>();
  readonly #running = new Map<string, Promise<ProviderAnswer>>();

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
    let identity: Identity | undefined;
    if (tokenAttributes !== undefined) {
      identity = await this.#identify(pod, tokenAttributes);
      if (identity === undefined && tokenAttributes.requireServiceAccount) return [];
    }
    const scope = identity?.key ?? '';
    const kept = this.#lookUp(image, scope);
    if (kept !== undefined) return kept;
    const { cacheKeyType, cacheMs, credentials } = await this.#ask(image, identity);
    const lasts = cacheMs ?? this.#config.defaultCacheMs;
    if (lasts > 0) this.#keep(keyOf(cacheKeyType, image, scope), credentials, lasts);
    return credentials;
  }

  #lookUp(image: string, scope: string): readonly RegistryCredential[] | undefined {
    const now = this.#parts.clock.monotonic();
    for (const type of ['Image', 'Registry', 'Global'] as const) {
      const kept = this.#kept.get(keyOf(type, image, scope));
      if (kept !== undefined && now < kept.until) return kept.credentials;
    }
    return undefined;
  }

  #keep(key: string, credentials: readonly RegistryCredential[], lastsMs: number): void {
    const now = this.#parts.clock.monotonic();
    for (const [other, { until }] of this.#kept) if (until <= now) this.#kept.delete(other);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= KEPT_AT_MOST && oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(key, { credentials, until: now + lastsMs });
  }

  /** Undefined for a pod without an account, or one whose account lacks a required annotation. */
  async #identify(pod: Pod, attributes: TokenAttributes): Promise<Identity | undefined> {
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

  #ask(image: string, identity: Identity | undefined): Promise<ProviderAnswer> {
    const key = JSON.stringify([image, identity?.key]);
    let running = this.#running.get(key);
    if (running === undefined) {
      running = this.#run(image, identity).finally(() => this.#running.delete(key));
      this.#running.set(key, running);
    }
    return running;
  }

  #run(image: string, identity: Identity | undefined): Promise<ProviderAnswer> {
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
      // What it prints on stdout holds secrets and is never told.
      if (result.timedOut) throw new Error(`error execing credential provider plugin ${name}: it took over a minute`);
      if (result.code !== 0) {
        const end = result.code === null ? `signal: ${result.signal}` : `exit status ${result.code}`;
        throw new Error(`error execing credential provider plugin ${name}: ${end}${firstLine(result.stderr)}`);
      }
      return parseAnswer(result.stdout, apiVersion);
    });
  }
}

function firstLine(stderr: string): string {
  const line = stderr.trim().split('\n')[0] ?? '';
  return line === '' ? '' : `: ${line.slice(0, 200)}`;
}

function keyOf(type: ProviderAnswer['cacheKeyType'], image: string, scope: string): string {
  const subject = type === 'Image' ? image : type === 'Registry' ? (image.split('/')[0] ?? '') : '';
  return JSON.stringify([type, subject, scope]);
}
