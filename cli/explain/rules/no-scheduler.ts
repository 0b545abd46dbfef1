// No scheduler has considered the pod: it names one that does not run, or the scheduler is away.

import { elapsedMs } from '../../../lib/clock.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { condition, created, isDeleted, isScheduled, lastEvent, podArgument } from '../pod-view.ts';
import { duration } from '../words.ts';

/** A scheduler that runs looks at a new pod within this time, unless there are very many. ms */
const PATIENCE_MS = 5_000;
const DEFAULT_SCHEDULER = 'default-scheduler';

export const noScheduler: Rule<PodFacts> = {
  name: 'no-scheduler',
  find: (facts) => {
    const since = created(facts);
    if (isScheduled(facts) || isDeleted(facts) || condition(facts, 'PodScheduled') !== undefined || since === undefined)
      return undefined;
    if (lastEvent(facts, ['FailedScheduling', 'Scheduled']) !== undefined) return undefined;
    const waited = elapsedMs(since, facts.now);
    const name = facts.pod.spec.schedulerName ?? DEFAULT_SCHEDULER;
    if (waited < PATIENCE_MS) {
      return {
        state: 'waiting',
        verdict: `it was made ${duration(waited)} ago and waits for scheduler ${name}`,
        chain: [],
        commands: [],
      };
    }
    const other = name !== DEFAULT_SCHEDULER;
    return {
      state: 'broken',
      verdict: other
        ? `no scheduler named ${name} has considered it: the pod’s schedulerName is not ${DEFAULT_SCHEDULER}`
        : 'no scheduler has considered it: the scheduler does not run, or cannot reach the API server',
      chain: [
        { text: 'the pod has no node, no PodScheduled condition and no event of a scheduler', since },
        {
          text: `only a scheduler named ${name} binds this pod to a node`,
          call: { name: 'POST pods/binding', to: 'the API server', answer: 'this call was never made' },
        },
      ],
      commands: other
        ? [
            {
              command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.schedulerName}'`,
              why: `the name that the pod gives; a pod with ${DEFAULT_SCHEDULER} is scheduled by the cluster’s own`,
            },
          ]
        : [
            {
              command: 'kubectl -n kube-system get pods -l component=kube-scheduler',
              why: 'whether the scheduler runs; in a lab it is part of the process "nodelet controlplane"',
            },
          ],
    };
  },
};
