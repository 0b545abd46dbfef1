// Which pods a job that goes on lacks, and which are too many. Either is done in one sync, never both. Pure.

import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { phaseRank, restartCounts } from '../replicaset/ranking.ts';
import type { Job } from '../shared/objects.ts';
import { isReady, readySince } from '../shared/pods.ts';
import { backoffLeftMs, type Failures, indexBackoffLeftMs } from './backoff.ts';
import { successes } from './end.ts';
import type { JobFacts } from './facts.ts';
import { indexesOf, lowestMissing, NO_INDEXES, union } from './indexes.ts';
import {
  completionIndex,
  hasLimitPerIndex,
  isIndexed,
  isSuspended,
  isTerminating,
  replacesEndedOnly,
} from './job-pods.ts';

/** Pods that one sync creates or deletes at most. */
export const BURST = 500;

export type PodPlan =
  | { readonly do: 'nothing' }
  | { readonly do: 'delete'; readonly pods: readonly Pod[] }
  /** One pod for each entry; undefined for a job that is not Indexed. */
  | { readonly do: 'create'; readonly indexes: readonly (number | undefined)[] }
  /** Until the back-off of failed pods has passed. */
  | { readonly do: 'wait'; readonly ms: number };

const NOTHING: PodPlan = { do: 'nothing' };

/** How many pods should run at a time. */
function wantedActive(facts: JobFacts): number {
  const { completions, parallelism = 1 } = facts.job.spec;
  const succeeded = successes(facts);
  // After the first success of a job without completions no further pod is started, and those that run go on.
  if (completions === undefined) return succeeded > 0 ? facts.active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

/** `failures`: with the pods that have just failed. */
export function planPods(facts: JobFacts, failures: Failures | undefined, now: EpochMs): PodPlan {
  const { job, active, terminating } = facts;
  if (isSuspended(job)) return { do: 'delete', pods: podsToRemove(job, active, active.length) };
  const wanted = wantedActive(facts);
  const remove = podsToRemove(job, active, Math.max(0, active.length - wanted)).slice(0, BURST);
  if (remove.length > 0) return { do: 'delete', pods: remove };
  const occupied = active.length + (replacesEndedOnly(job) ? terminating : 0);
  const missing = Math.min(wanted - occupied, BURST);
  if (missing <= 0) return NOTHING;
  if (!hasLimitPerIndex(job)) {
    const ms = backoffLeftMs(failures, now);
    if (ms > 0) return { do: 'wait', ms };
  }
  if (!isIndexed(job)) return { do: 'create', indexes: Array.from({ length: missing }, () => undefined) };
  return planIndexes(facts, missing, now);
}

function planIndexes(facts: JobFacts, missing: number, now: EpochMs): PodPlan {
  const { job, active, pods, indexes, lastFailed } = facts;
  const running = replacesEndedOnly(job) ? [...active, ...pods.filter(isTerminating)] : active;
  const taken = [indexes?.succeeded, indexes?.failed, indexesOf(running.flatMap((pod) => completionIndex(pod) ?? []))];
  const all = taken.reduce<typeof NO_INDEXES>((sum, each) => union(sum, each ?? NO_INDEXES), NO_INDEXES);
  const free = lowestMissing(all, missing, job.spec.completions ?? 0);
  const waits = free.map((index) => indexBackoffLeftMs(lastFailed.get(index), now));
  const due = free.filter((_, place) => waits[place] === 0);
  if (due.length > 0) return { do: 'create', indexes: due };
  return waits.length === 0 ? NOTHING : { do: 'wait', ms: Math.min(...waits) };
}

/** `count` pods or more: of an Indexed job also those without a valid index, and all but one of each index. */
function podsToRemove(job: Job, active: readonly Pod[], count: number): readonly Pod[] {
  if (!isIndexed(job)) return active.toSorted(compareActive).slice(0, count);
  const kept = new Map<number, Pod>();
  const remove: Pod[] = [];
  for (const pod of active.toSorted(compareActive)) {
    const index = completionIndex(pod);
    if (index === undefined || index >= (job.spec.completions ?? 0)) {
      remove.push(pod);
      continue;
    }
    // The later ones are further on.
    const before = kept.get(index);
    if (before !== undefined) remove.push(before);
    kept.set(index, pod);
  }
  const rest = [...kept.values()].sort(compareActive);
  return [...remove, ...rest.slice(0, Math.max(0, count - remove.length))];
}

/** The one that has come less far first: without a node, pending, not ready, ready for less time, restarted more often, younger. */
function compareActive(a: Pod, b: Pod): number {
  const [restartsA] = restartCounts(a);
  const [restartsB] = restartCounts(b);
  const scheduled = ({ spec }: Pod): number => ((spec.nodeName ?? '') === '' ? 0 : 1);
  return (
    scheduled(a) - scheduled(b) ||
    phaseRank(a) - phaseRank(b) ||
    Number(isReady(a)) - Number(isReady(b)) ||
    (isReady(a) ? laterFirst(readySince(a), readySince(b)) : 0) ||
    restartsB - restartsA ||
    laterFirst(parseRfc3339(a.metadata.creationTimestamp), parseRfc3339(b.metadata.creationTimestamp))
  );
}

/** Undefined comes before everything. */
function laterFirst(a: EpochMs | undefined, b: EpochMs | undefined): number {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return elapsedMs(a, b);
}
