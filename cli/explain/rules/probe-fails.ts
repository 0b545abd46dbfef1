// A container runs, and its readiness or startup probe does not succeed.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, containers, isDeleted, podArgument } from '../pod-view.ts';
import { probeAnswer, probeText, probeTiming } from '../probe-view.ts';
import { duration } from '../words.ts';

export const probeFails: Rule<PodFacts> = {
  name: 'probe-fails',
  find: (facts) => {
    if (isDeleted(facts)) return undefined;
    const view = containers(facts).find(({ status, spec }) => {
      if (status?.state?.running === undefined || status.ready) return false;
      return (status.started === false && spec.startupProbe !== undefined) || spec.readinessProbe !== undefined;
    });
    if (view === undefined) return undefined;
    const { name } = view.spec;
    const type = view.status?.started === false && view.spec.startupProbe !== undefined ? 'startup' : 'readiness';
    const probe = type === 'startup' ? view.spec.startupProbe : view.spec.readinessProbe;
    const answer = probeAnswer(facts, type, name);
    const started = parseRfc3339(view.status?.state?.running?.startedAt);
    const since = parseRfc3339(condition(facts, 'ContainersReady')?.lastTransitionTime) ?? started;
    const delay = (probe?.initialDelaySeconds ?? 0) * 1000;
    const early =
      answer.timing.count === undefined &&
      started !== undefined &&
      elapsedMs(started, facts.now) < delay + (probe?.periodSeconds ?? 10) * 1000;
    const age = started === undefined ? '' : `, ${duration(elapsedMs(started, facts.now))} after its start`;
    return {
      state: early ? 'waiting' : 'broken',
      verdict: early
        ? `container ${name} runs, and its ${type} probe has not been answered yet`
        : `container ${name} runs and is not ready: its ${type} probe fails: ${answer.text}`,
      chain: [
        { text: `container ${name} runs and is not ready`, ...(since === undefined ? {} : { since }) },
        {
          text: probeTiming(probe),
          call: {
            name: `${type} probe`,
            to: `container ${name}`,
            with: probeText(probe),
            ...(early ? {} : { answer: `${answer.text}${age}` }),
          },
          ...answer.timing,
        },
      ],
      commands: [
        { command: `kubectl logs ${podArgument(facts)} -c ${name} --tail=20`, why: 'what the container does instead' },
        ...(probe?.exec === undefined
          ? []
          : [
              {
                command: `kubectl exec ${podArgument(facts)} -c ${name} -- ${(probe.exec.command ?? []).map(quoted).join(' ')}`,
                why: 'the probe by hand',
              },
            ]),
      ],
    };
  },
};

/** A word for a shell. */
function quoted(word: string): string {
  return /^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
