// How many images may be pulled in a time, as Docker Hub counts it: a GET of a manifest is a pull, a HEAD is none, and what is refused does not
// count. An account may pull twice as much as an address without one. Pure.

import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

export interface PullLimit {
  /** Of a client without an account. */
  readonly pulls: number;
  readonly windowMs: number;
}

export interface PullRequest {
  /** Undefined: without an account. */
  readonly user: string | undefined;
  readonly address: string;
  /** It is a pull, not only a look. */
  readonly counts: boolean;
  readonly now: MonotonicMs;
}

export interface PullDecision {
  readonly allowed: boolean;
  /** Of this client, the pulls in the window, oldest first. */
  readonly pulls: readonly MonotonicMs[];
  readonly headers: Readonly<Record<string, string>>;
  /** Where it is refused. */
  readonly message: string;
}

export function decidePull(earlier: readonly MonotonicMs[], request: PullRequest, limit: PullLimit): PullDecision {
  const { user, address, counts, now } = request;
  const most = user === undefined ? limit.pulls : limit.pulls * 2;
  const recent = earlier.filter((at) => elapsedMs(at, now) < limit.windowMs);
  const allowed = !counts || recent.length < most;
  const pulls = counts && allowed ? [...recent, now] : recent;
  const seconds = Math.round(limit.windowMs / 1000);
  return {
    allowed,
    pulls,
    headers: {
      'ratelimit-limit': `${most};w=${seconds}`,
      'ratelimit-remaining': `${Math.max(0, most - pulls.length)};w=${seconds}`,
      'docker-ratelimit-source': user ?? address,
    },
    message:
      user === undefined
        ? 'You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit'
        : `You have reached your pull rate limit as '${user}'. You may increase the limit by upgrading. https://www.docker.com/increase-rate-limit`,
  };
}
