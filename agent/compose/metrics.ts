// What the agent counts about its own work, from its start. Showing it is stats.ts's part. Part of the composition: it decides
// nothing.

import { PodStarts } from '../metrics/pod-starts.ts';
import { Relists } from '../metrics/relists.ts';
import { SpanMetrics } from '../metrics/span-metrics.ts';
import type { AgentBase } from './base.ts';

export interface AgentMetrics {
  readonly spans: SpanMetrics;
  readonly starts: PodStarts;
  readonly relists: Relists;
}

/** `server`: the API server's URL; undefined in standalone mode. */
export function createMetrics({ tracer, clock, signals }: AgentBase, server: string | undefined): AgentMetrics {
  const spans = new SpanMetrics({ apiHost: server === undefined ? undefined : new URL(server).host });
  const starts = new PodStarts();
  tracer.subscribe(spans.take);
  tracer.subscribe(starts.take);
  signals.podGone.subscribe(({ metadata: { uid, namespace, name } }) => {
    spans.podGone({ uid, namespace, name });
    starts.podGone(uid);
  });
  return { spans, starts, relists: new Relists(clock) };
}
