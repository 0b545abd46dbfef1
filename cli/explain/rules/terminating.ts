// The pod is being deleted and its containers have not ended: a preStop hook, a process that ignores SIGTERM, a runtime that
// does not answer, an agent that is away.

import { elapsedMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Detail, Rule } from '../finding.ts';
import { condition, containers, endOf, isDeleted, isScheduled, podArgument } from '../pod-view.ts';
import { processText } from '../process-text.ts';
import { duration, list, plural } from '../words.ts';

/** Who has it deleted, where the pod itself says so. */
const DISRUPTIONS: ReadonlyMap<string, string> = new Map([
  ['PreemptionByScheduler', 'the scheduler needs its room for a pod of higher priority (preempted)'],
  ['DeletionByTaintManager', 'its node has a taint that it does not tolerate'],
  ['EvictionByEvictionAPI', 'it was evicted through the API, as kubectl drain does'],
  ['DeletionByPodGC', 'its node does not exist any more'],
  ['TerminationByKubelet', 'its node ends it: pressure, shutdown, or a critical pod'],
]);

function disruption(facts: PodFacts): Cause | undefined {
  const found = condition(facts, 'DisruptionTarget');
  if (found?.status !== 'True') return undefined;
  const at = parseRfc3339(found.lastTransitionTime);
  const { reason = '', message = '' } = found;
  return {
    text: `${DISRUPTIONS.get(reason) ?? reason}${message === '' ? '' : `: ${message}`}`,
    ...(at === undefined ? {} : { at }),
  };
}

export const terminating: Rule<PodFacts> = {
  name: 'terminating',
  find: (facts) => {
    if (!isDeleted(facts)) return undefined;
    const { metadata } = facts.pod;
    const grace = metadata.deletionGracePeriodSeconds ?? 0;
    const kill = parseRfc3339(metadata.deletionTimestamp);
    // The API server writes the end of the grace period there.
    const since = kill === undefined ? undefined : plusMs(kill, -grace * 1000);
    const running = containers(facts).filter(({ status }) => status?.state?.running !== undefined);
    const names = running.map(({ spec }) => spec.name);
    const deleting: readonly Cause[] = [
      {
        text: `the pod is being deleted, with ${duration(grace * 1000)} of grace`,
        ...(since === undefined ? {} : { since }),
      },
      ...[disruption(facts)].filter((cause) => cause !== undefined),
    ];
    const force = {
      command: `kubectl delete pod ${podArgument(facts)} --grace-period=1`,
      why: 'shortens the grace period; --grace-period=0 --force also forgets a pod whose node is gone',
    };
    const left = kill === undefined ? 0 : elapsedMs(facts.now, kill);
    const late = left > 0 ? `it is killed in ${duration(left)}` : 'the grace period is over';
    if (!isScheduled(facts) || names.length === 0) {
      return {
        state: 'waiting',
        verdict: 'it is being deleted: its containers have ended, and the node cleans up',
        chain: deleting,
        commands: [force],
      };
    }
    const hooked = running.find(({ spec }) => spec.lifecycle?.preStop !== undefined);
    const hookEnd = facts.spans.findLast(({ kind, name }) => kind === 'hook' && name === 'preStop');
    const processes = (facts.machine?.processes ?? []).filter(({ container }) => names.includes(container));
    const [first] = processes;
    if (hooked !== undefined && hookEnd === undefined && left > 0) {
      const { exec, httpGet, sleep } = hooked.spec.lifecycle?.preStop ?? {};
      const what =
        exec !== undefined
          ? `the command ${(exec.command ?? []).join(' ')}`
          : sleep !== undefined
            ? `a sleep of ${sleep.seconds} s`
            : `HTTP GET ${httpGet?.path ?? '/'}`;
      return {
        state: 'waiting',
        verdict: `it is being deleted, and the preStop hook of container ${hooked.spec.name} has not ended (${late})`,
        chain: [
          ...deleting,
          {
            text: 'SIGTERM is sent only after the hook',
            call: { name: 'preStop', to: `container ${hooked.spec.name}`, with: what, answer: 'none yet' },
          },
        ],
        commands: [force],
      };
    }
    const stacks: readonly Detail[] =
      first === undefined || first.stack.length === 0
        ? []
        : [{ title: `Kernel stack of process ${first.pid}, innermost first`, lines: first.stack.slice(0, 6) }];
    const stop = facts.spans.findLast(({ kind, name }) => kind === 'cri' && name === 'StopContainer');
    const calling = facts.open.findLast(({ kind, name }) => kind === 'cri' && name === 'StopContainer');
    return {
      state: left > 0 ? 'waiting' : 'broken',
      verdict: `it is being deleted, and ${plural(names.length, 'container').replace(/^1 /, '')} ${list(names)} ${names.length === 1 ? 'has' : 'have'} not ended${first?.term === 'ignored' ? `: process ${first.pid} ignores SIGTERM` : ''} (${late})`,
      chain: [
        ...deleting,
        {
          text:
            left > 0
              ? 'SIGTERM was sent; SIGKILL follows when the grace period is over'
              : 'SIGKILL is due; the agent of the node has to send it',
          call: {
            name: 'StopContainer',
            to: 'the container runtime',
            with: `timeout ${grace} s`,
            answer:
              calling !== undefined
                ? `none yet, after ${duration(elapsedMs(calling.start, facts.now))}`
                : (stop?.error ??
                  (stop === undefined ? 'none yet' : `ended after ${duration(elapsedMs(stop.start, endOf(stop)))}`)),
          },
        },
        ...processes.slice(0, 3).map((each) => ({ text: processText(each) })),
      ],
      details: stacks,
      commands: [
        force,
        ...(first === undefined
          ? []
          : [{ command: `cat /proc/${first.pid}/status`, why: 'on the node: the process that is left' }]),
      ],
    };
  },
};
