// The pod is on its way: volumes, sandbox, image, init containers, containers. Nothing has failed.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { containers, isDeleted, isEnded, isScheduled, lastEvent } from '../pod-view.ts';
import { duration } from '../words.ts';

function stepOf(facts: PodFacts): Cause {
  const pulling = lastEvent(facts, ['Pulling']);
  const pulled = lastEvent(facts, ['Pulled', 'Failed']);
  const image = /"([^"]+)"/.exec(pulling?.message ?? '')?.[1];
  if (pulling !== undefined && (pulled === undefined || pulled.last < pulling.last)) {
    return {
      text: `image ${image ?? ''} is being pulled`,
      call: { name: 'PullImage', to: 'the container runtime', ...(image === undefined ? {} : { with: image }) },
      since: pulling.last,
    };
  }
  const init = containers(facts).find(
    ({ init: isInit, status }) => isInit && status?.state?.running !== undefined && !status.started,
  );
  const since = parseRfc3339(init?.status?.state?.running?.startedAt);
  if (init !== undefined)
    return {
      text: `init container ${init.spec.name} runs; the others wait for it to succeed`,
      ...(since === undefined ? {} : { since }),
    };
  if (facts.runtime?.sandboxes.some(({ ready }) => ready) === false)
    return { text: 'its volumes are mounted and its sandbox is made' };
  return { text: 'its containers are created and started' };
}

export const starting: Rule<PodFacts> = {
  name: 'starting',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts)) return undefined;
    const waiting = containers(facts).some(
      ({ status }) => status?.state?.running === undefined && status?.state?.terminated === undefined,
    );
    if (!waiting) return undefined;
    const step = stepOf(facts);
    const started = parseRfc3339(facts.pod.status?.startTime);
    const age = started === undefined ? '' : ` for ${duration(elapsedMs(started, facts.now))}`;
    return {
      state: 'waiting',
      verdict: `it has been starting${age}, and nothing has failed: ${step.text}`,
      chain: [step],
      commands: [],
    };
  },
};
