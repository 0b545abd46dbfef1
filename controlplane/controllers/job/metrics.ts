// What the Job controller does, with kube-controller-manager's names. Figures only.

import { Counter, exponentialBuckets, Histogram, type Metric, type MetricsText } from '../../../lib/metrics.ts';
import type { Job, JobCondition, JobStatus } from '../shared/objects.ts';

/** What a sync did to pods: nothing, since it waits for what the last one has done; nothing; or something. */
export type SyncAction = 'reconciling' | 'tracking' | 'pods_created' | 'pods_deleted';

const modeOf = ({ spec }: Job): { readonly completion_mode: string } => ({
  completion_mode: spec.completionMode ?? 'NonIndexed',
});

export class JobMetrics implements Metric {
  readonly #syncs = new Counter('job_controller_job_syncs_total', '[STABLE] The number of job syncs');
  readonly #seconds = new Histogram(
    'job_controller_job_sync_duration_seconds',
    '[STABLE] The time it took to sync a job',
    exponentialBuckets(0.004, 2, 15),
  );
  readonly #finished = new Counter('job_controller_jobs_finished_total', '[STABLE] The number of finished jobs');
  readonly #pods = new Counter(
    'job_controller_job_pods_finished_total',
    '[STABLE] The number of finished Pods that are fully tracked',
  );

  synced(job: Job, action: SyncAction, result: 'success' | 'error', ms: number): void {
    const labels = { ...modeOf(job), result, action };
    this.#syncs.inc(labels);
    this.#seconds.observe(ms / 1000, labels);
  }

  finished(job: Job, { type, reason = '' }: JobCondition): void {
    this.#finished.inc({ ...modeOf(job), result: type === 'Complete' ? 'succeeded' : 'failed', reason });
  }

  /** Pods were counted in the job's status. */
  counted(job: Job, before: JobStatus, after: JobStatus): void {
    for (const result of ['succeeded', 'failed'] as const) {
      const count = (after[result] ?? 0) - (before[result] ?? 0);
      if (count > 0) this.#pods.inc({ ...modeOf(job), result }, count);
    }
  }

  show(page: MetricsText): void {
    for (const metric of [this.#syncs, this.#seconds, this.#finished, this.#pods]) metric.show(page);
  }
}
