// How long a job waits before it replaces a pod that failed: 10 s, doubled with each failure since the last success, ten
// minutes at most. Pure.

import type { ContainerStatus, Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs, later, plusMs, ZERO_TIME } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { indexFailures } from './job-pods.ts';

const FIRST_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 600_000;

/** Of one job, since its last success. In memory alone: a controller that starts anew begins at none. */
export interface Failures {
  readonly count: number;
  readonly last: EpochMs;
}

const isSidecar = ({ restartPolicy }: { readonly restartPolicy?: string }): boolean => restartPolicy === 'Always';

/** When the last of them ended; undefined while one has not. */
function lastEnd(statuses: readonly ContainerStatus[]): EpochMs | undefined {
  const ends = statuses.map(({ state }) => parseRfc3339(state?.terminated?.finishedAt));
  const [first, ...rest] = ends.filter((end) => end !== undefined);
  return first === undefined || rest.length + 1 < ends.length ? undefined : rest.reduce(later, first);
}

/** When the pod ended: by its containers, its readiness, its deletion, or its creation where nothing else says it. */
export function finishedAt({ metadata, spec, status }: Pod): EpochMs {
  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const ofContainers = lastEnd([
    ...(status?.containerStatuses ?? []),
    // A sidecar ends after the containers.
    ...(status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
  ]);
  const notReady = status?.conditions?.find(({ type, status: value }) => type === 'Ready' && value === 'False');
  const deletion = parseRfc3339(metadata.deletionTimestamp);
  return (
    ofContainers ??
    parseRfc3339(notReady?.lastTransitionTime) ??
    (deletion === undefined ? undefined : plusMs(deletion, -1000 * (metadata.deletionGracePeriodSeconds ?? 0))) ??
    parseRfc3339(metadata.creationTimestamp) ??
    ZERO_TIME
  );
}

/** The failures since the last success, with the pods that have ended since. */
export function addFailures(
  known: Failures | undefined,
  succeeded: readonly Pod[],
  failed: readonly Pod[],
): Failures | undefined {
  const successes = succeeded.map(finishedAt);
  const lastSuccess = successes.length === 0 ? undefined : successes.reduce(later);
  const since = failed.map(finishedAt).filter((at) => lastSuccess === undefined || at > lastSuccess);
  const before = lastSuccess === undefined ? known : undefined;
  const [first, ...rest] = since;
  if (first === undefined) return before;
  return { count: since.length + (before?.count ?? 0), last: rest.reduce(later, first) };
}

/** Ms until the next pod may be created; 0 when it may. */
export function backoffLeftMs(failures: Failures | undefined, now: EpochMs): number {
  if (failures === undefined || failures.count === 0) return 0;
  const wait = Math.min(FIRST_BACKOFF_MS * 2 ** (failures.count - 1), MAX_BACKOFF_MS);
  return Math.max(0, wait - elapsedMs(failures.last, now));
}

/** The same for one index with a limit of its own, by its last pod that failed. */
export function indexBackoffLeftMs(lastFailed: Pod | undefined, now: EpochMs): number {
  if (lastFailed === undefined) return 0;
  const { counted, ignored } = indexFailures(lastFailed);
  return backoffLeftMs({ count: counted + ignored + 1, last: finishedAt(lastFailed) }, now);
}
