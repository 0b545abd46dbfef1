// Probes: a liveness probe that kills a program while it starts, and the startup probe that prevents it.

import type { Probe } from 'kubernetes-types/core/v1';
import type { Pod } from '../../../client/types.ts';
import { type Exercise, type Finding, finding } from '../model.ts';
import { findPod, listPods, mainContainer, mainStatus, podState, readyFinding } from '../pods.ts';

/** What the program needs for its start. */
const START_SECONDS = 15;

/** After how long without success a probe has its effect, s. Pure. */
function patience({ initialDelaySeconds = 0, periodSeconds = 10, failureThreshold = 3 }: Probe): number {
  return initialDelaySeconds + periodSeconds * failureThreshold;
}

function words(probe: Probe | undefined): string {
  return probe === undefined ? 'there is none' : `gives up after ${patience(probe)} s without success`;
}

/** Pure. */
export function evaluate(pods: readonly Pod[]): readonly Finding[] {
  const pod = findPod(pods, 'slow');
  const { livenessProbe, startupProbe } = mainContainer(pod) ?? {};
  const status = mainStatus(pod);
  return [
    finding(
      'liveness probe',
      words(livenessProbe),
      livenessProbe !== undefined && patience(livenessProbe) <= 2,
      'it is to stay as strict as it was: 2 s',
    ),
    finding(
      'startup probe',
      words(startupProbe),
      startupProbe !== undefined && patience(startupProbe) > START_SECONDS,
      `one that allows the ${START_SECONDS} s of the start`,
    ),
    finding(
      'restarts of the container',
      pod === undefined ? podState(pod) : `${status?.restartCount ?? 0}`,
      status?.started === true && status.restartCount === 0,
      'it is to start without being killed',
    ),
    readyFinding(pods, 'slow'),
  ];
}

export const slowStart: Exercise = {
  name: 'slow-start',
  title: 'Probes: a program that is killed while it starts',
  lesson:
    'A startup probe holds back the other probes until it has succeeded once: starting may take long, and failing be noticed soon.',
  minutes: 10,
  hints: [
    'The events say who kills the container. After how many seconds, and how long does it need to start?',
    'There is a probe whose only purpose is this. Until it succeeds, the liveness probe does not run.',
    'Add a `startupProbe` with the same command, `periodSeconds: 1` and `failureThreshold: 60`.',
  ],
  check: async (machine) => evaluate(await listPods(machine)),
};
