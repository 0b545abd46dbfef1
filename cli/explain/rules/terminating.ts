// The pod is being deleted and its containers have not ended: a preStop hook, a process that ignores SIGTERM, a runtime that
// does not answer, an agent that is away.

import { elapsedMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { Span } from '../../../lib/trace.ts';
import type { PodFacts, ProcessFact } from '../facts.ts';
import type { Cause, Command, Detail, Finding, Rule } from '../finding.ts';
import { type ContainerView, condition, containers, endOf, isDeleted, isScheduled, podArgument } from '../pod-view.ts';
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

/** What all answers about a deletion begin with, and offer. */
interface Deletion {
  readonly facts: PodFacts;
  /** The symptom, and who has the pod deleted. */
  readonly chain: readonly Cause[];
  readonly graceSeconds: number;
  /** Until SIGKILL; 0 or less: it is due. ms */
  readonly leftMs: number;
  /** "it is killed in 20 s" */
  readonly late: string;
  readonly force: Command;
}

function deletionOf(facts: PodFacts): Deletion {
  const { deletionGracePeriodSeconds: graceSeconds = 0, deletionTimestamp } = facts.pod.metadata;
  const kill = parseRfc3339(deletionTimestamp);
  // The API server writes the end of the grace period there.
  const since = kill === undefined ? undefined : plusMs(kill, -graceSeconds * 1000);
  const leftMs = kill === undefined ? 0 : elapsedMs(facts.now, kill);
  return {
    facts,
    chain: [
      {
        text: `the pod is being deleted, with ${duration(graceSeconds * 1000)} of grace`,
        ...(since === undefined ? {} : { since }),
      },
      ...[disruption(facts)].filter((cause) => cause !== undefined),
    ],
    graceSeconds,
    leftMs,
    late: leftMs > 0 ? `it is killed in ${duration(leftMs)}` : 'the grace period is over',
    force: {
      command: `kubectl delete pod ${podArgument(facts)} --grace-period=1`,
      why: 'shortens the grace period; --grace-period=0 --force also forgets a pod whose node is gone',
    },
  };
}

function hookText({ spec }: ContainerView): string {
  const { exec, httpGet, sleep } = spec.lifecycle?.preStop ?? {};
  if (exec !== undefined) return `the command ${(exec.command ?? []).join(' ')}`;
  return sleep === undefined ? `HTTP GET ${httpGet?.path ?? '/'}` : `a sleep of ${sleep.seconds} s`;
}

function hookRuns({ chain, late, force }: Deletion, hooked: ContainerView): Finding {
  const { name } = hooked.spec;
  return {
    state: 'waiting',
    verdict: `it is being deleted, and the preStop hook of container ${name} has not ended (${late})`,
    chain: [
      ...chain,
      {
        text: 'SIGTERM is sent only after the hook',
        call: { name: 'preStop', to: `container ${name}`, with: hookText(hooked), answer: 'none yet' },
      },
    ],
    commands: [force],
  };
}

/** What has become of the call that ends a container. */
function stopAnswer({ spans, open, now }: PodFacts): string {
  const isStop = ({ kind, name }: Pick<Span, 'kind' | 'name'>): boolean => kind === 'cri' && name === 'StopContainer';
  const calling = open.findLast(isStop);
  if (calling !== undefined) return `none yet, after ${duration(elapsedMs(calling.start, now))}`;
  const stop = spans.findLast(isStop);
  if (stop === undefined) return 'none yet';
  return stop.error ?? `ended after ${duration(elapsedMs(stop.start, endOf(stop)))}`;
}

function stackOf({ pid, stack }: ProcessFact): readonly Detail[] {
  if (stack.length === 0) return [];
  return [{ title: `Kernel stack of process ${pid}, innermost first`, lines: stack.slice(0, 6) }];
}

/** `names`: containers that run. */
function containersRun(
  { facts, chain, graceSeconds, leftMs, late, force }: Deletion,
  names: readonly string[],
): Finding {
  const processes = (facts.machine?.processes ?? []).filter(({ container }) => names.includes(container));
  const [first] = processes;
  const who =
    names.length === 1 ? `container ${names[0]} has` : `${plural(names.length, 'container')} ${list(names)} have`;
  const ignores = first?.term === 'ignored' ? `: process ${first.pid} ignores SIGTERM` : '';
  return {
    state: leftMs > 0 ? 'waiting' : 'broken',
    verdict: `it is being deleted, and ${who} not ended${ignores} (${late})`,
    chain: [
      ...chain,
      {
        text:
          leftMs > 0
            ? 'SIGTERM was sent; SIGKILL follows when the grace period is over'
            : 'SIGKILL is due; the agent of the node has to send it',
        call: {
          name: 'StopContainer',
          to: 'the container runtime',
          with: `timeout ${graceSeconds} s`,
          answer: stopAnswer(facts),
        },
      },
      ...processes.slice(0, 3).map((each) => ({ text: processText(each) })),
    ],
    details: first === undefined ? [] : stackOf(first),
    commands: [
      force,
      ...(first === undefined
        ? []
        : [{ command: `cat /proc/${first.pid}/status`, why: 'on the node: the process that is left' }]),
    ],
  };
}

export const terminating: Rule<PodFacts> = {
  name: 'terminating',
  find: (facts) => {
    if (!isDeleted(facts)) return undefined;
    const deletion = deletionOf(facts);
    const running = containers(facts).filter(({ status }) => status?.state?.running !== undefined);
    if (!isScheduled(facts) || running.length === 0) {
      return {
        state: 'waiting',
        verdict: 'it is being deleted: its containers have ended, and the node cleans up',
        chain: deletion.chain,
        commands: [deletion.force],
      };
    }
    const hooked = running.find(({ spec }) => spec.lifecycle?.preStop !== undefined);
    const hookHasEnded = facts.spans.some(({ kind, name }) => kind === 'hook' && name === 'preStop');
    if (hooked !== undefined && !hookHasEnded && deletion.leftMs > 0) return hookRuns(deletion, hooked);
    return containersRun(
      deletion,
      running.map(({ spec }) => spec.name),
    );
  },
};
