// Service account tokens of pods, requested when needed and renewed before they expire: at 80 % of their life or after
// 24 h, whichever is first, as the kubelet does. A renewal that fails leaves the old token in use while it lasts.

import type { Pod } from '../../client/types.ts';
import { type Clock, type EpochMs, earlier, elapsedMs, plusMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { ObjectReader } from '../ports/api.ts';

interface Token {
  readonly token: string;
  /** Epoch ms. */
  readonly expiresAt: EpochMs;
  /** Moves on when a renewal has failed. */
  renewAt: EpochMs;
}

const MAX_AGE_MS = 24 * 3_600_000;
const REFRESH_AT_FRACTION = 0.8;
/** Up to this much earlier, at random, so that the tokens of pods that came together are not renewed together. */
const JITTER_MS = 10_000;
/** A renewal that failed is tried again after this long. */
const RETRY_MS = 60_000;

/** When a token issued at `now` is to be renewed, epoch ms; 0 ≤ random < 1. */
export function renewalTime(now: EpochMs, expiresAt: EpochMs, random = 0): EpochMs {
  const refreshAfterMs = Math.min(elapsedMs(now, expiresAt) * REFRESH_AT_FRACTION, MAX_AGE_MS);
  return plusMs(now, refreshAfterMs - Math.min(random * JITTER_MS, refreshAfterMs / 10));
}

/** The kubelet's cache key of a token: account, audiences, expiration and bound object. Nothing of it is secret. */
function tokenName(
  pod: Pod,
  { audience, expirationSeconds }: { readonly audience?: string; readonly expirationSeconds: number },
): string {
  const { namespace } = pod.metadata;
  const parts = [pod.spec.serviceAccountName ?? '', namespace, ...(audience === undefined ? [] : [audience])];
  return [...parts.map((part) => JSON.stringify(part)), expirationSeconds].join('/');
}

export class TokenCache {
  readonly #objects: ObjectReader;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** By pod uid, then by audience and lifetime. */
  readonly #tokens = new Map<string, Map<string, Token>>();

  constructor(objects: ObjectReader, clock: Clock, random: () => number = () => 0) {
    this.#objects = objects;
    this.#clock = clock;
    this.#random = random;
  }

  async token(pod: Pod, request: { readonly audience?: string; readonly expirationSeconds: number }): Promise<string> {
    const key = `${request.audience ?? ''} ${request.expirationSeconds}`;
    const cached = this.#tokens.get(pod.metadata.uid)?.get(key);
    const now = this.#clock.now();
    if (cached !== undefined && now < cached.renewAt) return cached.token;
    try {
      const { token, expiresAt } = await this.#objects.serviceAccountToken(pod, request);
      const renewAt = renewalTime(now, expiresAt, this.#random());
      const ofPod = this.#tokens.get(pod.metadata.uid) ?? new Map<string, Token>();
      this.#tokens.set(pod.metadata.uid, ofPod.set(key, { token, expiresAt, renewAt }));
      return token;
    } catch (error) {
      const why = errorMessage(error);
      if (cached === undefined) throw new Error(`failed to fetch token: ${why}`, { cause: error });
      if (this.#clock.now() >= cached.expiresAt) {
        throw new Error(`token ${tokenName(pod, request)} expired and refresh failed: ${why}`, { cause: error });
      }
      cached.renewAt = plusMs(this.#clock.now(), RETRY_MS);
      return cached.token;
    }
  }

  /** When the first of the pod's tokens is to be renewed; undefined when it has none. */
  nextRenewal(uid: string): EpochMs | undefined {
    let first: EpochMs | undefined;
    for (const { renewAt } of this.#tokens.get(uid)?.values() ?? []) first = earlier(first ?? renewAt, renewAt);
    return first;
  }

  forget(uid: string): void {
    this.#tokens.delete(uid);
  }
}
