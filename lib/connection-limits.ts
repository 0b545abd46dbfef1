// How many connections a server takes, and which one goes when there are too many. Pure: connection-guard.ts counts and
// acts.

/** How many connections may be open at a time. */
export interface ConnectionLimits {
  /** In all. */
  readonly total: number;
  /** From one address, authenticated or not. */
  readonly perAddress: number;
  /** Whose caller is not known yet, or is nobody. */
  readonly unauthenticated: number;
}

/** What is open when another connection comes; that one is not counted. */
export interface ConnectionCounts {
  readonly total: number;
  readonly unauthenticated: number;
  /** From the address of the new connection. */
  readonly ofAddress: number;
  readonly unauthenticatedOfAddress: number;
}

export type Admission =
  | { readonly action: 'accept' }
  /** The oldest unauthenticated connection goes: of the same address, or of the address that has most of them. */
  | { readonly action: 'replace'; readonly from: 'sameAddress' | 'busiestAddress' }
  | { readonly action: 'refuse'; readonly reason: string };

/**
 * What becomes of a new connection. Unauthenticated connections never keep a new one out, since its caller may be about
 * to authenticate: the oldest makes room, which has had the most time to do so. Authenticated ones are never closed for
 * another.
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
  /** Descriptors that connections leave alone: for mounts, programs, the runtime, the store. */
  readonly reserved: number;
  /** No more connections than this, however many descriptors there are: each costs memory, too. */
  readonly most: number;
  /** No more of them unauthenticated. */
  readonly mostUnauthenticated: number;
}

/** A server that can take fewer is of no use to anybody. */
const LEAST = 16;

/**
 * The limits of a process with so many descriptors. One connection may cost two descriptors: a request that is passed on
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
