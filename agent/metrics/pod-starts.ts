// How long pods take to start, as the kubelet measures it: from the moment the agent sees a pod, and from the pod's creation.
// Pods that ran before the agent started do not count.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type EpochMs, elapsedMs, epochMs, later } from '../../lib/clock.ts';
import { Histogram, type Metric } from '../../lib/metrics.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { Span } from '../../lib/trace.ts';

/** The kubelet's, in seconds. */
const BUCKETS = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];

interface Start {
  readonly seenAt: EpochMs;
  /** From the first pull's beginning to the last one's end. */
  pullFrom: EpochMs | undefined;
  pullTo: EpochMs | undefined;
  runs: boolean;
}

export class PodStarts {
  readonly #starting = new Map<string, Start>();
  readonly #seconds = new Histogram(
    'kubelet_pod_start_duration_seconds',
    '[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run',
    BUCKETS,
  );
  readonly #withoutPulls = new Histogram(
    'kubelet_pod_start_sli_duration_seconds',
    '[ALPHA] Duration in seconds to start a pod, excluding time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch',
    BUCKETS,
  );
  readonly #total = new Histogram(
    'kubelet_pod_start_total_duration_seconds',
    '[ALPHA] Duration in seconds to start a pod since creation, including time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch',
    BUCKETS,
  );

  get metrics(): readonly Metric[] {
    return [this.#seconds, this.#withoutPulls, this.#total];
  }

  /** Spans show when a pod came and when its images were pulled. */
  readonly take = ({ kind, name, pod, start, durationMs }: Span): void => {
    if (pod === undefined) return;
    if (kind === 'api' && name === 'SyncLoop ADD') {
      const fresh: Start = { seenAt: start, pullFrom: undefined, pullTo: undefined, runs: false };
      if (!this.#starting.has(pod.uid)) this.#starting.set(pod.uid, fresh);
    } else if (kind === 'cri' && name === 'PullImage') {
      const known = this.#starting.get(pod.uid);
      if (known === undefined) return;
      known.pullFrom ??= start;
      known.pullTo = later(known.pullTo ?? start, epochMs(start + durationMs));
    }
  };

  /** A status was computed. */
  reported(pod: Pod, status: PodStatus, now: EpochMs): void {
    const { uid, creationTimestamp } = pod.metadata;
    const known = this.#starting.get(uid);
    if (known === undefined) return;
    // The server had a start time before this agent saw the pod: it is an old one.
    const old = parseRfc3339(status.startTime);
    if (status.phase === 'Failed' || status.phase === 'Succeeded' || (old !== undefined && old < known.seenAt - 1000)) {
      this.#starting.delete(uid);
      return;
    }
    if (status.phase === 'Running' && !known.runs) {
      known.runs = true;
      this.#seconds.observe(elapsedMs(known.seenAt, now) / 1000);
    }
    const statuses = status.containerStatuses ?? [];
    if (!known.runs || !statuses.every(({ state }) => state?.running?.startedAt !== undefined)) return;
    this.#starting.delete(uid);
    const created = parseRfc3339(creationTimestamp);
    if (created === undefined) return;
    const total = elapsedMs(created, now);
    const { pullFrom, pullTo } = known;
    const pulling = pullFrom === undefined || pullTo === undefined ? 0 : elapsedMs(pullFrom, pullTo);
    this.#total.observe(total / 1000);
    this.#withoutPulls.observe((total - pulling) / 1000);
  }

  podGone(uid: string): void {
    this.#starting.delete(uid);
  }
}
