// What the job controller asks of a pod: whether it failed, is counted, which index it works on, and how often that index
// has failed. Pure.

import type { Pod } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { Job } from '../shared/objects.ts';

/** As long as a pod has it, the job has not counted the pod. */
export const TRACKING_FINALIZER = 'batch.kubernetes.io/job-tracking';
export const INDEX_KEY = 'batch.kubernetes.io/job-completion-index';
export const INDEX_FAILURES = 'batch.kubernetes.io/job-index-failure-count';
export const INDEX_IGNORED_FAILURES = 'batch.kubernetes.io/job-index-ignored-failure-count';
const MAX_INT32 = 2 ** 31 - 1;

export const isIndexed = ({ spec }: Job): boolean => spec.completionMode === 'Indexed';
export const hasLimitPerIndex = ({ spec }: Job): boolean => spec.backoffLimitPerIndex !== undefined;
export const isSuspended = ({ spec }: Job): boolean => spec.suspend === true;

/** Whether a pod that is on its way out is replaced only once it has ended. */
export function replacesEndedOnly({ spec }: Job): boolean {
  return spec.podReplacementPolicy === 'Failed' || spec.podFailurePolicy !== undefined;
}

export function hasFinalizer({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(TRACKING_FINALIZER) === true;
}

export const hasSucceeded = ({ status }: Pod): boolean => status?.phase === 'Succeeded';

/** One that is deleted counts as failed, since it may go without ever reporting it; unless it is replaced only when it has. */
export function hasFailed(pod: Pod, job: Job): boolean {
  if (pod.status?.phase === 'Failed') return true;
  return !replacesEndedOnly(job) && pod.metadata.deletionTimestamp !== undefined && !hasSucceeded(pod);
}

/** On its way out, and not ended yet. */
export function isTerminating({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

/** The index that the pod works on; undefined where it has none, or nothing that is an index. */
export function completionIndex({ metadata }: Pod): number | undefined {
  const text = getOwn(metadata.annotations, INDEX_KEY);
  return text !== undefined && /^\+?\d+$/.test(text) ? Number(text) : undefined;
}

/** The index if the job has it. */
export function validIndex(pod: Pod, job: Job): number | undefined {
  const index = completionIndex(pod);
  return index !== undefined && index < (job.spec.completions ?? 0) ? index : undefined;
}

function countIn({ metadata }: Pod, annotation: string): number {
  const text = getOwn(metadata.annotations, annotation);
  const value = text !== undefined && /^\+?\d+$/.test(text) ? Number(text) : 0;
  return value <= MAX_INT32 ? value : 0;
}

/** How many pods of the index had failed before this one: those that count, and those that the failure policy ignores. */
export function indexFailures(pod: Pod): { readonly counted: number; readonly ignored: number } {
  return { counted: countIn(pod, INDEX_FAILURES), ignored: countIn(pod, INDEX_IGNORED_FAILURES) };
}
