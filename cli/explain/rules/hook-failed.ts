// A container is killed because its postStart hook failed.

import { explainsEnd, logDetails, restartingContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing } from '../pod-view.ts';
import { plural } from '../words.ts';

export const hookFailed: Rule<PodFacts> = {
  name: 'hook-failed',
  find: (facts) => {
    const end = isDeleted(facts) ? undefined : restartingContainer(facts);
    const event = lastEvent(facts, ['FailedPostStartHook']);
    if (end === undefined || event === undefined || end.view.spec.lifecycle?.postStart === undefined) return undefined;
    const { name, view, restarts, next, finishedAt } = end;
    if (!explainsEnd(event, end)) return undefined;
    const span = facts.spans.findLast(
      ({ kind, name: hook, outcome }) => kind === 'hook' && hook === 'postStart' && outcome === 'error',
    );
    const { exec, httpGet } = view.spec.lifecycle?.postStart ?? {};
    const what =
      exec !== undefined
        ? `the command ${(exec.command ?? []).join(' ')}`
        : `HTTP GET ${httpGet?.host ?? 'POD'}:${httpGet?.port}${httpGet?.path ?? '/'}`;
    const answer =
      span?.error?.replace(/^.*? failed - error: /s, '').replace(/:? *, message: ""$/, '') ?? event.message;
    return {
      state: 'broken',
      verdict: `container ${name} is killed after each start because its postStart hook fails: ${answer}`,
      chain: [
        {
          text: `container ${name} ${restarts > 0 ? `was started again ${plural(restarts, 'time')}` : 'is started again'}, after growing pauses; its last instance ended`,
          ...(finishedAt === undefined ? {} : { at: finishedAt }),
          ...(next === undefined ? {} : { next }),
        },
        {
          text: 'the agent killed it because its postStart hook failed',
          call: { name: 'postStart', to: `container ${name}`, with: what, answer },
          ...timing(event),
        },
      ],
      details: logDetails(facts, name),
      commands: [
        {
          command: `kubectl logs ${podArgument(facts)} -c ${name} --previous`,
          why: 'what the container did meanwhile',
        },
      ],
    };
  },
};
