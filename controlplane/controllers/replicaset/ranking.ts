// Which pods of a replica set go first when there are too many: those that serve least and have served least long, in the
// order of upstream's controller utilities. Pure.

import type { Pod } from '../../../client/types.ts';
import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { isActive, isReady, readySince } from '../shared/pods.ts';

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const PHASES: ReadonlyMap<string, number> = new Map([
  ['Pending', 0],
  ['Unknown', 1],
  ['Running', 2],
]);

const scheduled = ({ spec }: Pod): boolean => (spec.nodeName ?? '') !== '';
/** Pending before unknown before running. */
export const phaseRank = ({ status }: Pod): number => PHASES.get(status?.phase ?? '') ?? 0;

/** The annotation's value; 0 where it is absent or no 32-bit integer. */
function deletionCost({ metadata }: Pod): number {
  const text = metadata.annotations?.[DELETION_COST];
  // A leading plus sign or zero is not accepted either.
  if (text === undefined || !/^(0|-?[1-9]\d*)$/.test(text)) return 0;
  const value = Number(text);
  return value >= -(2 ** 31) && value < 2 ** 31 ? value : 0;
}

/** The most restarts of any container, and of any sidecar. */
export function restartCounts({ spec, status }: Pod): readonly [number, number] {
  const sidecars = new Set(
    (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  );
  const most = (counts: readonly number[]): number => Math.max(0, ...counts);
  return [
    most((status?.containerStatuses ?? []).map(({ restartCount }) => restartCount)),
    most(
      (status?.initContainerStatuses ?? [])
        .filter(({ name }) => sidecars.has(name))
        .map(({ restartCount }) => restartCount),
    ),
  ];
}

/** Go's durations are nanoseconds; -1 for a moment that is not in the past. */
function magnitude(at: EpochMs, now: EpochMs): number {
  const ms = elapsedMs(at, now);
  return ms > 0 ? Math.trunc(Math.log2(ms * 1e6)) : -1;
}

/** The younger first, by orders of magnitude, so that not the newest alone are hit; undefined comes before everything. */
function compareAge(a: Pod, b: Pod, timeOf: (pod: Pod) => EpochMs | undefined, now: EpochMs): number {
  const [first, second] = [timeOf(a), timeOf(b)];
  if (first === second) return 0;
  if (first === undefined) return -1;
  if (second === undefined) return 1;
  const difference = magnitude(first, now) - magnitude(second, now);
  if (difference !== 0) return difference;
  return a.metadata.uid < b.metadata.uid ? -1 : 1;
}

const createdAt = ({ metadata }: Pod): EpochMs | undefined => parseRfc3339(metadata.creationTimestamp);

/** Negative when `a` goes before `b`. `neighbours`: how many related active pods are on the node of a pod. */
function compare(a: Pod, b: Pod, neighbours: (pod: Pod) => number, now: EpochMs): number {
  const [restartsA, sidecarsA] = restartCounts(a);
  const [restartsB, sidecarsB] = restartCounts(b);
  return (
    Number(scheduled(a)) - Number(scheduled(b)) ||
    phaseRank(a) - phaseRank(b) ||
    Number(isReady(a)) - Number(isReady(b)) ||
    deletionCost(a) - deletionCost(b) ||
    neighbours(b) - neighbours(a) ||
    (isReady(a) && isReady(b) ? compareAge(a, b, readySince, now) : 0) ||
    restartsB - restartsA ||
    sidecarsB - sidecarsA ||
    compareAge(a, b, createdAt, now)
  );
}

/**
 * The `count` pods to delete of `active`. `related` are the pods of all replica sets with the same controller: of two pods
 * the one goes first that has more of them on its node.
 */
export function choosePodsToDelete(
  active: readonly Pod[],
  related: readonly Pod[],
  count: number,
  now: EpochMs,
): readonly Pod[] {
  if (count >= active.length) return active;
  const onNode = new Map<string, number>();
  for (const pod of related) {
    const node = pod.spec.nodeName ?? '';
    if (isActive(pod)) onNode.set(node, (onNode.get(node) ?? 0) + 1);
  }
  const neighbours = (pod: Pod): number => onNode.get(pod.spec.nodeName ?? '') ?? 0;
  return active.toSorted((a, b) => compare(a, b, neighbours, now)).slice(0, count);
}
