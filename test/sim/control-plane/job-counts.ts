// What a job says of its pods, compared with what its pods did: none is counted twice, and none that never was.

import type { Pod } from '../../../client/types.ts';
import type { Job } from '../../../controlplane/controllers/shared/objects.ts';
import { controllerKind, controllerUid } from './facts.ts';

interface Seen {
  readonly succeeded: Set<string>;
  readonly failed: Set<string>;
  finished: boolean;
  /** Highest so far. */
  counted: number;
}

export class JobCounts {
  readonly #break: (what: string) => void;
  readonly #jobs = new Map<string, Seen>();

  constructor(breaks: (what: string) => void) {
    this.#break = breaks;
  }

  #of(uid: string): Seen {
    const seen = this.#jobs.get(uid) ?? { succeeded: new Set(), failed: new Set(), finished: false, counted: 0 };
    this.#jobs.set(uid, seen);
    return seen;
  }

  pod(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod): void {
    const owner = controllerUid(pod);
    if (owner === undefined || controllerKind(pod) !== 'Job') return;
    const seen = this.#of(owner);
    const { uid, deletionTimestamp, finalizers = [] } = pod.metadata;
    const phase = pod.status?.phase;
    if (phase === 'Succeeded') seen.succeeded.add(uid);
    // A pod that is on its way out counts as failed.
    else if (phase === 'Failed' || deletionTimestamp !== undefined || type === 'DELETED') seen.failed.add(uid);
    if (type === 'ADDED' && !finalizers.includes('batch.kubernetes.io/job-tracking')) {
      this.#break(`pod ${pod.metadata.namespace}/${pod.metadata.name} of a job has no finalizer`);
    }
  }

  written(type: 'ADDED' | 'MODIFIED' | 'DELETED', { metadata, spec, status = {} }: Job): void {
    if (type === 'DELETED') return;
    const seen = this.#of(metadata.uid);
    const name = `job ${metadata.namespace}/${metadata.name}`;
    const { succeeded = 0, failed = 0, conditions = [] } = status;
    if (succeeded > seen.succeeded.size)
      this.#break(`${name} counts ${succeeded} succeeded pods of ${seen.succeeded.size}`);
    if (failed > seen.failed.size) this.#break(`${name} counts ${failed} failed pods of ${seen.failed.size}`);
    if (succeeded + failed < seen.counted)
      this.#break(`${name} counts ${succeeded + failed} pods after ${seen.counted}`);
    seen.counted = succeeded + failed;
    const isComplete = conditions.some((each) => each.type === 'Complete' && each.status === 'True');
    const isFinished = isComplete || conditions.some((each) => each.type === 'Failed' && each.status === 'True');
    if (seen.finished && !isFinished) this.#break(`${name} was finished, and is not any more`);
    if (isComplete && succeeded < (spec.completions ?? 1)) {
      this.#break(`${name} is complete with ${succeeded} of ${spec.completions}`);
    }
    seen.finished = isFinished;
  }
}
