// The safety net under every event stream: what changed between two complete lists. Pure.

import { goDuration } from '../../../lib/go-words.ts';
import type { PodLifecycleEvent, PodSnapshot, PodUID } from '../../ports/runtime.ts';
import { containerId } from '../convert.ts';

export interface ListedState {
  readonly podUID: PodUID;
  readonly kind: 'sandbox' | 'container';
  /** 'other' is created or unknown: nothing to tell a worker. */
  readonly state: 'running' | 'dead' | 'other';
}

/** Every sandbox and container, by id. */
export type Listed = ReadonlyMap<string, ListedState>;

const CONTAINER_STATES = { running: 'running', exited: 'dead', created: 'other', unknown: 'other' } as const;

export function listedStates(pods: readonly PodSnapshot[]): Map<string, ListedState> {
  const listed = new Map<string, ListedState>();
  for (const { pod, sandboxes, containers } of pods) {
    for (const { id, state } of sandboxes) {
      listed.set(id, { podUID: pod.uid, kind: 'sandbox', state: state === 'ready' ? 'running' : 'dead' });
    }
    for (const { id, state } of containers) {
      listed.set(id, { podUID: pod.uid, kind: 'container', state: CONTAINER_STATES[state] });
    }
  }
  return listed;
}

/**
 * What a list is to be compared with: what was told, but for a container that was told dead and that a look has shown
 * running since. That look came too early, or the end was told too early; either way its end is still news.
 */
export function notedBefore(told: Listed, lastSeen: (id: string) => string | undefined): Map<string, ListedState> {
  const noted = new Map(told);
  for (const [id, entry] of told) {
    if (entry.state === 'dead' && lastSeen(id) === 'running') noted.set(id, { ...entry, state: 'running' });
  }
  return noted;
}

/** Events that lead from one list to the next, dated `at`. */
export function diffRelist(before: Listed, after: Listed, at: number): PodLifecycleEvent[] {
  const events: PodLifecycleEvent[] = [];
  const emit = (id: string, { podUID, kind }: ListedState, type: PodLifecycleEvent['type']): void => {
    // The death of a sandbox is for the worker to find: no container of the pod is meant.
    if (kind === 'sandbox') events.push({ podUID, type: 'podSync', at });
    else events.push({ podUID, type, containerId: containerId(id), at });
  };
  for (const [id, now] of after) {
    const was = before.get(id);
    if (now.state === was?.state) continue;
    if (now.state === 'running') emit(id, now, 'containerStarted');
    // Found dead at first sight: it lived and died between two lists.
    else if (now.state === 'dead') emit(id, now, 'containerDied');
  }
  for (const [id, was] of before) {
    if (after.has(id)) continue;
    if (was.state === 'running') emit(id, was, 'containerDied');
    emit(id, was, 'containerRemoved');
  }
  return events;
}

/** A list of what runs may be this old, ms, before nobody can rely on it: the kubelet's relist threshold. */
const RELIST_THRESHOLD_MS = 180_000;

/**
 * Why the lists are not healthy, in the kubelet's words; undefined while they are. The kubelet also complains before its
 * first list; here that one has as long as any other. All in monotonic ms. Pure.
 */
export function plegProblem(
  startedAt: number | undefined,
  relistedAt: number | undefined,
  now: number,
): string | undefined {
  const since = relistedAt ?? startedAt;
  if (since === undefined || now - since <= RELIST_THRESHOLD_MS) return undefined;
  if (relistedAt === undefined) return 'PLEG is not healthy: pleg has yet to be successful';
  const [elapsed, threshold] = [goDuration(now - relistedAt), goDuration(RELIST_THRESHOLD_MS)];
  return `PLEG is not healthy: pleg was last seen active ${elapsed} ago; threshold is ${threshold}`;
}
