// A container ends by itself again and again.

import { elapsedMs } from '../../../lib/clock.ts';
import { logDetails, restartingContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { type ContainerView, isDeleted, isSidecar, podArgument } from '../pod-view.ts';
import { duration, exitCode, plural } from '../words.ts';

function stateText({ status }: ContainerView): string {
  const { waiting, running } = status?.state ?? {};
  if (waiting !== undefined) return `waits for its next start (${waiting.reason})`;
  return running === undefined ? 'has ended' : 'runs again';
}

export const crashLoop: Rule<PodFacts> = {
  name: 'crash-loop',
  find: (facts) => {
    const end = isDeleted(facts) ? undefined : restartingContainer(facts);
    if (end === undefined) return undefined;
    const { name, view, exitCode: code, signal, reason, message, restarts, next, startedAt, finishedAt } = end;
    const ran =
      startedAt === undefined || finishedAt === undefined || startedAt > finishedAt
        ? undefined
        : elapsedMs(startedAt, finishedAt);
    const what = isSidecar(view) ? 'sidecar' : view.init ? 'init container' : 'container';
    const policy = facts.pod.spec.restartPolicy ?? 'Always';
    const done = code === 0;
    const previous = view.status?.state?.running !== undefined;
    return {
      state: 'broken',
      verdict: done
        ? `${what} ${name} ends by itself with exit code 0, and restartPolicy ${policy} starts it again and again`
        : `${what} ${name} ends again and again with ${exitCode(code, signal)}`,
      chain: [
        {
          text: `${what} ${name} ${stateText(view)}`,
          ...(next === undefined ? {} : { next }),
        },
        {
          text: `its last instance ended with ${exitCode(code, signal)}${reason === '' || reason === 'Error' ? '' : `, ${reason}`}${ran === undefined ? '' : `, after it had run for ${duration(ran)}`}${message === '' ? '' : `: ${message.trim()}`}`,
          ...(finishedAt === undefined ? {} : { at: finishedAt }),
        },
        ...(restarts > 0
          ? [
              {
                text: `it was started again ${plural(restarts, 'time')}; the pauses double up to 5 min, and begin anew after 10 min without an end`,
              },
            ]
          : []),
        ...(view.init && !isSidecar(view)
          ? [{ text: 'the pod’s containers start only when all init containers have succeeded' }]
          : []),
      ],
      details: logDetails(facts, name),
      commands: [
        {
          command: `kubectl logs ${podArgument(facts)} -c ${name}${previous ? ' --previous' : ''}`,
          why: 'all that its last instance wrote',
        },
        ...(done
          ? [
              {
                command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.restartPolicy}'`,
                why: 'a pod that is to finish needs restartPolicy OnFailure or Never (or a Job)',
              },
            ]
          : []),
      ],
    };
  },
};
