// When attachments are collected that no sandbox uses any more: on the agent's start and periodically, as the kubelet
// collects containers. Which ones those are is decided in forgotten.ts.

import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { SandboxId } from '../ports/runtime.ts';
import type { Attachments } from './attachments.ts';

/** The kubelet's ContainerGCPeriod. ms. */
export const COLLECTION_PERIOD_MS = 60_000;

export interface CollectorOptions {
  readonly attachments: Pick<Attachments, 'collectGarbage' | 'isEmpty'>;
  /** Every sandbox that the runtime has, those of other CRI clients too. */
  readonly listSandboxes: () => Promise<readonly SandboxId[]>;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly onError: (what: string, error: unknown) => void;
}

/**
 * Collects until the signal aborts. Plugins collect for themselves (CNI GC) once, on the start: while they do, no sandbox
 * is attached. An error is reported once for as long as it stays the same.
 */
export async function collectPeriodically(options: CollectorOptions, signal: AbortSignal): Promise<void> {
  const { attachments, listSandboxes, clock, tracer, onError } = options;
  let scope: 'network' | 'attachments' = 'network';
  let reported: string | undefined;
  const collect = async (): Promise<void> => {
    if (scope === 'attachments' && attachments.isEmpty()) return;
    const requestedAt = clock.monotonic();
    const ids = new Set<string>(await listSandboxes());
    const plugins = scope === 'network';
    scope = 'attachments';
    await attachments.collectGarbage({ ids, requestedAt }, { plugins });
  };
  const round = async (): Promise<undefined> => {
    try {
      const cause = scope === 'network' ? 'agent start' : 'CNI garbage collection';
      await tracer.within({ cause }, collect);
      reported = undefined;
    } catch (error) {
      if (signal.aborted) return;
      const message = errorMessage(error);
      if (message !== reported) onError('CNI garbage collection', error);
      reported = message;
    }
  };
  await repeat(round, { clock, everyMs: COLLECTION_PERIOD_MS, signal });
}
