// Which attachments no sandbox uses any more: a runtime that lost a sandbox, or from which it was removed by other means
// than CRI, sends no DEL for it. Pure.

import { elapsedMs, type MonotonicMs } from '../../lib/clock.ts';

/**
 * A sandbox that is being made is in no list yet, but has its network. The kubelet's own limit for RunPodSandbox, in ms:
 * an attachment without a listed sandbox is left alone this long while its network namespace exists.
 */
export const SANDBOX_CREATION_MS = 240_000;

/** Every sandbox that the runtime had at one moment. */
export interface SandboxList {
  readonly ids: ReadonlySet<string>;
  /** When the list was requested: it proves nothing about what was made later. */
  readonly requestedAt: MonotonicMs;
}

export interface AttachmentFacts {
  readonly sandboxId: string;
  /** When its ADD began. Of an attachment that was there when the agent started, and of one whose DEL failed, that start. */
  readonly since: MonotonicMs;
  /** Whether its network namespace exists. A runtime makes it before the ADD, and removes it after the DEL. */
  readonly hasNamespace: boolean;
}

/**
 * Whether the runtime has no sandbox for the attachment and will have none. Moments are monotonic: a clock that is set
 * forward must not take the network from a sandbox that is being made.
 */
export function isForgotten({ sandboxId, since, hasNamespace }: AttachmentFacts, list: SandboxList): boolean {
  if (list.ids.has(sandboxId)) return false;
  return !hasNamespace || elapsedMs(since, list.requestedAt) > SANDBOX_CREATION_MS;
}
