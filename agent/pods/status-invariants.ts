// What must be true of every status that is reported, whatever led to it. States invariants and nothing else.

import type { PodStatus } from '../../client/types.ts';
import { invariant } from '../../lib/invariant.ts';
import type { PodRef, PodSnapshot } from '../ports/runtime.ts';
import { isTerminalPhase } from './phase.ts';
import { isAlive } from './termination.ts';

const RANK: ReadonlyMap<string, number> = new Map([
  ['Pending', 0],
  ['Running', 1],
  ['Succeeded', 2],
  ['Failed', 2],
]);

const rankOf = (phase: string | undefined): number => RANK.get(phase ?? 'Pending') ?? 0;

const STATUS_LISTS = ['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses'] as const;

export function checkStatus(
  pod: PodRef,
  previous: PodStatus | undefined,
  status: PodStatus,
  snapshot: PodSnapshot,
): void {
  const [before, after] = [previous?.phase, status.phase];
  invariant(rankOf(after) >= rankOf(before), 'the phase of a pod never goes back', () => ({ pod, before, after }));
  const final = !isTerminalPhase(before) || after === before;
  invariant(final, 'a terminal phase is final', () => ({ pod, before, after }));
  const ends = isTerminalPhase(after) && !isTerminalPhase(before);
  const alive = snapshot.containers.find(isAlive)?.id;
  invariant(!ends || alive === undefined, 'a pod is Succeeded or Failed when none of its containers runs', () => ({
    pod,
    after,
    alive,
  }));
  for (const list of STATUS_LISTS) {
    for (const { name, restartCount } of status[list] ?? []) {
      const known = previous?.[list]?.find((each) => each.name === name)?.restartCount ?? 0;
      invariant(restartCount >= known, 'a restart count never falls', () => ({ pod, name, known, restartCount }));
    }
  }
}
