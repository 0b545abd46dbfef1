// A container is killed because its postStart hook failed: it is being ended, or was and waits for its next start.

import { type ContainerEnd, explainsEnd, logDetails, restartingContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { type ContainerView, isDeleted, lastEvent, podArgument, timing, waitingFor } from '../pod-view.ts';
import { duration, plural } from '../words.ts';

/** The kubelet's reason while it ends such a container, which may take the whole grace period. */
const ENDING = 'PostStartHookError';

function ending(facts: PodFacts, { spec }: ContainerView): Cause {
  const stop = facts.open.findLast(({ kind, name }) => kind === 'cri' && name === 'StopContainer');
  const grace = duration((facts.pod.spec.terminationGracePeriodSeconds ?? 30) * 1000);
  return {
    text: `container ${spec.name} is being ended, with ${grace} of grace, and is then started again after growing pauses`,
    ...(stop === undefined ? {} : { since: stop.start }),
  };
}

function ended({ name, restarts, next, finishedAt }: ContainerEnd): Cause {
  return {
    text: `container ${name} ${restarts > 0 ? `was started again ${plural(restarts, 'time')}` : 'is started again'}, after growing pauses; its last instance ended`,
    ...(finishedAt === undefined ? {} : { at: finishedAt }),
    ...(next === undefined ? {} : { next }),
  };
}

function hookText({ spec }: ContainerView): string {
  const { exec, httpGet } = spec.lifecycle?.postStart ?? {};
  if (exec !== undefined) return `the command ${(exec.command ?? []).join(' ')}`;
  return `HTTP GET ${httpGet?.host ?? 'POD'}:${httpGet?.port}${httpGet?.path ?? '/'}`;
}

export const hookFailed: Rule<PodFacts> = {
  name: 'hook-failed',
  find: (facts) => {
    if (isDeleted(facts)) return undefined;
    const beingEnded = waitingFor(facts, ENDING);
    const end = beingEnded === undefined ? restartingContainer(facts) : undefined;
    const view = beingEnded ?? end?.view;
    if (view?.spec.lifecycle?.postStart === undefined) return undefined;
    const event = lastEvent(facts, ['FailedPostStartHook']);
    if (end !== undefined && (event === undefined || !explainsEnd(event, end))) return undefined;
    const { name } = view.spec;
    const span = facts.spans.findLast(
      ({ kind, name: hook, outcome }) => kind === 'hook' && hook === 'postStart' && outcome === 'error',
    );
    const failure = span?.error ?? beingEnded?.status?.state?.waiting?.message;
    const answer =
      failure?.replace(/^.*? failed - error: /s, '').replace(/:? *, message: ""$/, '') ?? event?.message ?? '';
    return {
      state: 'broken',
      verdict: `container ${name} is killed after each start because its postStart hook fails: ${answer}`,
      chain: [
        end === undefined ? ending(facts, view) : ended(end),
        {
          text: `the agent ${end === undefined ? 'kills' : 'killed'} it because its postStart hook failed`,
          call: { name: 'postStart', to: `container ${name}`, with: hookText(view), answer },
          ...timing(event),
        },
      ],
      details: logDetails(facts, name),
      commands: [
        {
          command: `kubectl logs ${podArgument(facts)} -c ${name}${end === undefined ? '' : ' --previous'}`,
          why: 'what the container did meanwhile',
        },
      ],
    };
  },
};
