// What /metrics shows of scheduling, with kube-scheduler 1.34's names, labels and buckets. Figures only.

import { type Clock, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { Counter, exponentialBuckets, Histogram, labelText, type Metric, type MetricsText } from '../../lib/metrics.ts';

/** The queues that pods come to. */
export type QueueName = 'active' | 'backoff' | 'unschedulable';
export type AttemptResult = 'scheduled' | 'unschedulable' | 'error';

/** Read when a page is written. */
export interface SchedulerGauges {
  readonly pending: Readonly<Record<QueueName | 'gated', number>>;
  /** Of each pod that has been tried in vain: who rejected it. */
  readonly rejected: readonly { readonly plugins: ReadonlySet<string>; readonly profile: string }[];
  readonly cache: { readonly nodes: number; readonly pods: number; readonly assumed: number };
}

const ATTEMPT_BUCKETS = exponentialBuckets(0.001, 2, 15);
/** More attempts than this are one label. */
const MOST_ATTEMPTS = 15;

export class SchedulerMetrics implements Metric {
  readonly #clock: Clock;
  readonly #attempts = new Counter(
    'scheduler_schedule_attempts_total',
    "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.",
  );
  readonly #attemptSeconds = new Histogram(
    'scheduler_scheduling_attempt_duration_seconds',
    '[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)',
    ATTEMPT_BUCKETS,
  );
  readonly #algorithmSeconds = new Histogram(
    'scheduler_scheduling_algorithm_duration_seconds',
    '[ALPHA] Scheduling algorithm latency in seconds',
    ATTEMPT_BUCKETS,
  );
  readonly #podSeconds = new Histogram(
    'scheduler_pod_scheduling_sli_duration_seconds',
    '[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.',
    exponentialBuckets(0.01, 2, 20),
  );
  readonly #podAttempts = new Histogram(
    'scheduler_pod_scheduling_attempts',
    '[STABLE] Number of attempts to successfully schedule a pod.',
    exponentialBuckets(1, 2, 5),
  );
  readonly #preemptions = new Counter(
    'scheduler_preemption_attempts_total',
    '[STABLE] Total preemption attempts in the cluster till now',
  );
  readonly #victims = new Histogram(
    'scheduler_preemption_victims',
    '[STABLE] Number of selected preemption victims',
    exponentialBuckets(1, 2, 7),
  );
  readonly #incoming = new Counter(
    'scheduler_queue_incoming_pods_total',
    '[STABLE] Number of pods added to scheduling queues by event and queue type.',
  );
  readonly #pointSeconds = new Histogram(
    'scheduler_framework_extension_point_duration_seconds',
    '[STABLE] Latency for running all plugins of a specific extension point.',
    exponentialBuckets(0.0001, 2, 12),
  );
  readonly #gauges: () => SchedulerGauges;

  constructor(clock: Clock, gauges: () => SchedulerGauges) {
    this.#clock = clock;
    this.#gauges = gauges;
    this.#preemptions.inc({}, 0);
  }

  now(): MonotonicMs {
    return this.#clock.monotonic();
  }

  #since(at: MonotonicMs): number {
    return elapsedMs(at, this.#clock.monotonic()) / 1000;
  }

  /** An attempt that began at `startedAt` has ended. */
  attempted(result: AttemptResult, profile: string, startedAt: MonotonicMs): void {
    this.#attempts.inc({ profile, result });
    this.#attemptSeconds.observe(this.#since(startedAt), { profile, result });
  }

  /** A node was found for a pod. */
  nodeFound(startedAt: MonotonicMs): void {
    this.#algorithmSeconds.observe(this.#since(startedAt));
  }

  /** A pod is bound. `enteredAt`: when it could first be tried. */
  bound(attempts: number, enteredAt: MonotonicMs): void {
    this.#podAttempts.observe(attempts);
    this.#podSeconds.observe(this.#since(enteredAt), {
      attempts: attempts >= MOST_ATTEMPTS ? `${MOST_ATTEMPTS}+` : String(attempts),
    });
  }

  preemptionTried(): void {
    this.#preemptions.inc();
  }

  victimsChosen(count: number): void {
    this.#victims.observe(count);
  }

  incoming(queue: QueueName, event: string): void {
    this.#incoming.inc({ event, queue });
  }

  /** The plugins of an extension point have run. */
  ran(point: string, status: string, profile: string, startedAt: MonotonicMs): void {
    this.#pointSeconds.observe(this.#since(startedAt), { extension_point: point, profile, status });
  }

  show(page: MetricsText): void {
    const { pending, rejected, cache } = this.#gauges();
    page.family(
      'scheduler_pending_pods',
      'gauge',
      "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated.",
    );
    for (const [queue, count] of Object.entries(pending)) page.sample(count, labelText({ queue }));
    page.family(
      'scheduler_unschedulable_pods',
      'gauge',
      '[ALPHA] The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.',
    );
    const reasons = new Map<string, number>();
    for (const { plugins, profile } of rejected) {
      for (const plugin of plugins) {
        const labels = labelText({ plugin, profile });
        reasons.set(labels, (reasons.get(labels) ?? 0) + 1);
      }
    }
    for (const [labels, count] of reasons) page.sample(count, labels);
    page.family(
      'scheduler_cache_size',
      'gauge',
      '[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.',
    );
    const { nodes, pods, assumed } = cache;
    for (const [type, count] of Object.entries({ assumed_pods: assumed, nodes, pods })) {
      page.sample(count, labelText({ type }));
    }
    for (const metric of [
      ...[this.#attempts, this.#attemptSeconds, this.#algorithmSeconds, this.#podSeconds, this.#podAttempts],
      ...[this.#preemptions, this.#victims, this.#incoming, this.#pointSeconds],
    ]) {
      metric.show(page);
    }
  }
}
