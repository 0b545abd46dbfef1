// How a container's last instance ended, when the next one starts, and what it wrote last. Pure.

import { initRestartsAfterExit, restartsAfterExit } from '../../agent/model/restart-policy.ts';
import { type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { EventFact, PodFacts } from './facts.ts';
import type { Detail } from './finding.ts';
import type { ContainerView } from './pod-view.ts';
import { containers, isSidecar } from './pod-view.ts';

export interface ContainerEnd {
  readonly view: ContainerView;
  readonly name: string;
  readonly exitCode: number;
  readonly signal: number;
  readonly reason: string;
  readonly message: string;
  readonly startedAt: EpochMs | undefined;
  readonly finishedAt: EpochMs | undefined;
  /** Without "containerd://". */
  readonly id: string;
  readonly restarts: number;
  readonly next: EpochMs | undefined;
}

/** A view's last end; undefined where no instance has ended. */
export function endOfContainer(view: ContainerView): ContainerEnd | undefined {
  const { status } = view;
  const terminated = status?.state?.terminated ?? status?.lastState?.terminated;
  if (status === undefined || terminated === undefined) return undefined;
  const finishedAt = parseRfc3339(terminated.finishedAt);
  const pause = /^back-off (\S+) restarting/.exec(status.state?.waiting?.message ?? '')?.[1];
  return {
    view,
    name: status.name,
    exitCode: terminated.exitCode,
    signal: terminated.signal ?? 0,
    reason: terminated.reason ?? '',
    message: terminated.message ?? '',
    startedAt: parseRfc3339(terminated.startedAt),
    finishedAt,
    id: (terminated.containerID ?? '').replace(/^.*\/\//, ''),
    restarts: status.restartCount,
    next: pause === undefined || finishedAt === undefined ? undefined : plusMs(finishedAt, parseGoDuration(pause) ?? 0),
  };
}

/**
 * The container that ends again and again: it waits for its next start, or has ended and has not been started again yet, or
 * runs again and is not ready.
 */
export function restartingContainer(facts: PodFacts): ContainerEnd | undefined {
  const views = containers(facts);
  const waiting = views.find(({ status }) => status?.state?.waiting?.reason === 'CrashLoopBackOff');
  if (waiting !== undefined) return endOfContainer(waiting);
  const ended = views.find((view) => {
    const { status, init, spec } = view;
    const { state, restartCount = 0, ready } = status ?? {};
    if (state?.terminated !== undefined) {
      const restarts = init ? initRestartsAfterExit : restartsAfterExit;
      return restarts(facts.pod, spec, state.terminated.exitCode);
    }
    // An init container counts as started as soon as it runs: it has done its work when it has ended.
    const isThrough = status?.started === true && (!init || isSidecar(view));
    return state?.running !== undefined && restartCount > 0 && ready === false && !isThrough;
  });
  return ended === undefined ? undefined : endOfContainer(ended);
}

/** What a container that is requested to end exits with, when it does no more than that. */
const ENDED_BY_REQUEST = [0, 128 + 9, 128 + 15];
/** An event is of the last end when it is not older than this. ms */
const RECENT_MS = 60_000;

/**
 * Whether this event, which comes with each kill of a certain kind, explains the last end too. Events of a pod that has many are
 * dropped by their sender: then those before count, if they go with most restarts and the exit code goes with a kill.
 */
export function explainsEnd(event: EventFact, { finishedAt, exitCode, restarts }: ContainerEnd): boolean {
  if (finishedAt !== undefined && elapsedMs(event.last, finishedAt) <= RECENT_MS) return true;
  return event.count * 2 >= restarts && ENDED_BY_REQUEST.includes(exitCode);
}

/** The last lines of a container's log. */
export function logDetails(facts: PodFacts, container: string): readonly Detail[] {
  const log = facts.logs.find((each) => each.container === container);
  if (log === undefined) return [];
  return [{ title: `Last lines of the log of container ${container}`, lines: log.lines }];
}
