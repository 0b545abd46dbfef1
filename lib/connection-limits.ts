// How many connections a server accepts, and which one it closes when there are too many. Pure: connection-guard.ts
// counts and acts.

/** How many connections may be open at a time. */
export interface ConnectionLimits {
  /** In all. */
  readonly total: number;
  /** From one address, authenticated or not. */
  readonly perAddress: number;
  /** Whose caller has not authenticated. */
  readonly unauthenticated: number;
}

/** The open connections when another one arrives, which is not counted. */
export interface ConnectionCounts {
  readonly total: number;
  readonly unauthenticated: number;
  /** From the address of the new connection. */
  readonly ofAddress: number;
  readonly unauthenticatedOfAddress: number;
}

export type Admission =
  | { readonly action: 'accept' }
  /** Close the oldest unauthenticated connection: of the same address, or of the address that has most of them. */
  | { readonly action: 'replace'; readonly from: 'sameAddress' | 'busiestAddress' }
  | { readonly action: 'refuse'; readonly reason: string };

/**
 * Decides about a new connection. Unauthenticated connections never keep a new one out, since its caller may be about to
 * authenticate: the oldest of them is closed, which has had the most time to do so. An authenticated connection is never
 * closed in favour of another.
 */
export function admitConnection(counts: ConnectionCounts, limits: ConnectionLimits): Admission {
  if (counts.ofAddress >= limits.perAddress) {
    return counts.unauthenticatedOfAddress > 0
      ? { action: 'replace', from: 'sameAddress' }
      : { action: 'refuse', reason: `${counts.ofAddress} connections of its address are open` };
  }
  if (counts.total >= limits.total && counts.unauthenticated === 0) {
    return { action: 'refuse', reason: `${counts.total} connections are open` };
  }
  if (counts.total >= limits.total || counts.unauthenticated >= limits.unauthenticated) {
    return { action: 'replace', from: 'busiestAddress' };
  }
  return { action: 'accept' };
}

export interface LimitsInput {
  /** RLIMIT_NOFILE, soft. */
  readonly openFiles: number;
  /** Descriptors that connections must leave free for mounts, programs, the runtime and the store. */
  readonly reserved: number;
  /** No more connections than this, however many descriptors there are: each costs memory, too. */
  readonly most: number;
  /** No more of them unauthenticated. */
  readonly mostUnauthenticated: number;
}

/** The smallest useful limit, whatever the descriptor limit is. */
const LEAST = 16;

/**
 * The limits of a process with so many descriptors. One connection may cost two descriptors: a request that is proxied
 * to a kubelet or a container has a second one.
 */
export function connectionLimits({ openFiles, reserved, most, mostUnauthenticated }: LimitsInput): ConnectionLimits {
  const total = Math.max(LEAST, Math.min(most, Math.floor((openFiles - reserved) / 2)));
  return {
    total,
    perAddress: Math.floor((total * 3) / 4),
    unauthenticated: Math.min(mostUnauthenticated, Math.floor(total / 4)),
  };
}
