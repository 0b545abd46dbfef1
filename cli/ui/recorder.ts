// Fills the store: follows the agent's trace socket and watches pods at the API server, and goes on when either comes back.

import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { resourcePath } from '../../client/paths.ts';
import { Reflector } from '../../client/reflector.ts';
import type { Change } from '../../client/store.ts';
import type { Pod } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import { followSpans, noTrace } from '../demo/spans.ts';
import type { UiStore } from './store.ts';

/** Between two tries to reach an agent that is away, ms. */
const AGENT_RETRY_MS = 1_000;

export interface SpanSource {
  readonly socketPath: string;
  /** New spans come with what was sent and received. */
  readonly detail: boolean;
}

/** Until `signal` aborts. */
export async function recordSpans(
  store: UiStore,
  { socketPath, detail }: SpanSource,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const connect = async (): Promise<undefined> => {
    try {
      store.beginConnection();
      const stream = await followSpans(socketPath, (span) => store.addSpan(span), detail);
      store.setProblem('agent', undefined);
      try {
        await abortable(stream.ended, signal);
      } finally {
        stream.close();
      }
      store.setProblem('agent', 'the agent has ended its trace: what is shown is the last of it');
    } catch (error) {
      if (signal.aborted) return;
      store.setProblem('agent', noTrace(socketPath, error));
    }
  };
  await repeat(connect, { clock, everyMs: AGENT_RETRY_MS, signal });
}

/** Until `signal` aborts. Rejects with UserError for a kubeconfig that cannot be used. */
export async function recordPods(store: UiStore, kubeconfig: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const access = await loadKubeconfig(kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock, userAgent: 'nodelet-ui' });
  const reflector = new Reflector<Pod>({
    client,
    path: resourcePath('v1', 'pods', {}),
    clock,
    onFailure: (error) => store.setProblem('API server', `pods are not up to date: ${errorMessage(error)}`),
    onRecovery: () => store.setProblem('API server', undefined),
  });
  let first = true;
  reflector.store.onChange((changes) => {
    // The first list has pods that were there before: when these versions came is not known.
    for (const change of changes) apply(store, change, first ? undefined : clock);
    first = false;
  });
  try {
    await reflector.run(signal);
  } finally {
    client.close();
  }
}

function apply(store: UiStore, change: Change<Pod>, clock: Clock | undefined): void {
  if (change.type === 'removed') store.removePod(change.object);
  else store.addVersion(change.object, clock?.now());
}
