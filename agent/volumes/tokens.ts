// Service account tokens of pods, requested when needed and renewed before they expire: at 80 % of their life or after
// 24 h, whichever is first, as the kubelet does. A renewal that fails leaves the old token in use while it lasts.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ObjectReader } from '../ports/api.ts';

interface Token {
  readonly token: string;
  /** Epoch ms. */
  readonly expiresAt: number;
  readonly renewAt: number;
}

const MAX_AGE_MS = 24 * 3_600_000;
const LIFE_USED = 0.8;

/** When a token got at `now` is to be renewed, epoch ms. */
export function renewalTime(now: number, expiresAt: number): number {
  return now + Math.min((expiresAt - now) * LIFE_USED, MAX_AGE_MS);
}

export class TokenCache {
  readonly #objects: ObjectReader;
  readonly #clock: Clock;
  /** By pod uid, then by what was asked for. */
  readonly #tokens = new Map<string, Map<string, Token>>();

  constructor(objects: ObjectReader, clock: Clock) {
    this.#objects = objects;
    this.#clock = clock;
  }

  async token(pod: Pod, request: { readonly audience?: string; readonly expirationSeconds: number }): Promise<string> {
    const key = `${request.audience ?? ''} ${request.expirationSeconds}`;
    const held = this.#tokens.get(pod.metadata.uid)?.get(key);
    const now = this.#clock.now();
    if (held !== undefined && now < held.renewAt) return held.token;
    try {
      const { token, expiresAt } = await this.#objects.serviceAccountToken(pod, request);
      const ofPod = this.#tokens.get(pod.metadata.uid) ?? new Map<string, Token>();
      this.#tokens.set(pod.metadata.uid, ofPod.set(key, { token, expiresAt, renewAt: renewalTime(now, expiresAt) }));
      return token;
    } catch (error) {
      if (held !== undefined && this.#clock.now() < held.expiresAt) return held.token;
      throw error;
    }
  }

  forget(uid: string): void {
    this.#tokens.delete(uid);
  }
}
