// A container is killed again and again because its liveness or startup probe fails.

import { explainsEnd, logDetails, restartingContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing } from '../pod-view.ts';
import { probeAnswer, probeText, probeTiming } from '../probe-view.ts';
import { plural } from '../words.ts';

export const probeKills: Rule<PodFacts> = {
  name: 'probe-kills',
  find: (facts) => {
    const end = isDeleted(facts) ? undefined : restartingContainer(facts);
    if (end === undefined) return undefined;
    const { name, view, finishedAt, restarts, next } = end;
    const killing = lastEvent(facts, ['Killing'], `Container ${name} failed `);
    const type = /failed (liveness|startup) probe/.exec(killing?.message ?? '')?.[1];
    // An earlier instance may have been killed so, and this one may have ended by itself.
    if (killing === undefined || !explainsEnd(killing, end)) return undefined;
    const kind = type === 'startup' ? 'startup' : 'liveness';
    const probe = kind === 'startup' ? view.spec.startupProbe : view.spec.livenessProbe;
    const answer = probeAnswer(facts, kind, name);
    return {
      state: 'broken',
      verdict: `container ${name} is killed again and again because its ${kind} probe fails: ${answer.text}`,
      chain: [
        {
          text: `container ${name} ${restarts > 0 ? `was started again ${plural(restarts, 'time')}` : 'is started again'}, after growing pauses; its last instance ended`,
          ...(finishedAt === undefined ? {} : { at: finishedAt }),
          ...(next === undefined ? {} : { next }),
        },
        { text: `the agent killed it because of its ${kind} probe`, ...timing(killing) },
        {
          text: probeTiming(probe),
          call: { name: `${kind} probe`, to: `container ${name}`, with: probeText(probe), answer: answer.text },
          ...answer.timing,
        },
      ],
      details: logDetails(facts, name),
      commands: [
        {
          command: `kubectl logs ${podArgument(facts)} -c ${name} --previous`,
          why: 'what the container did before it was killed',
        },
        {
          command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.containers[*].${kind}Probe}'`,
          why: 'a container that starts slowly needs a startupProbe, or a larger failureThreshold or timeoutSeconds',
        },
      ],
    };
  },
};
