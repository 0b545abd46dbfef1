// The runtime cannot create or start a container: a command that is not there, a profile, a mount, a user.

import { endOfContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { type ContainerView, containers, isDeleted, lastEvent, podArgument, timing, waitingFor } from '../pod-view.ts';
import { startProblem } from '../start-error.ts';

interface Failure {
  readonly view: ContainerView;
  readonly reason: string;
  readonly message: string;
  readonly call: 'CreateContainer' | 'StartContainer';
}

function failureOf(facts: PodFacts): Failure | undefined {
  const view = waitingFor(facts, 'CreateContainerConfigError', 'CreateContainerError', 'RunContainerError');
  if (view !== undefined) {
    const { reason = '', message = '' } = view.status?.state?.waiting ?? {};
    return { view, reason, message, call: reason === 'RunContainerError' ? 'StartContainer' : 'CreateContainer' };
  }
  for (const each of containers(facts)) {
    const end = endOfContainer(each);
    if (end === undefined || each.status?.state?.running !== undefined) continue;
    if (end.reason === 'StartError' || end.reason === 'ContainerCannotRun')
      return { view: each, reason: end.reason, message: end.message, call: 'StartContainer' };
  }
  return nextInstance(facts);
}

/** One that has ended, and of which no next instance can be made: after each try it waits, as one that ends again and again does. */
function nextInstance(facts: PodFacts): Failure | undefined {
  const view = waitingFor(facts, 'CrashLoopBackOff');
  const event = lastEvent(facts, ['Failed'], /^Error: \S+ \S/);
  if (view === undefined || event === undefined) return undefined;
  const finishedAt = endOfContainer(view)?.finishedAt;
  if (finishedAt === undefined || event.last < finishedAt) return undefined;
  const message = event.message.replace(/^Error: /, '');
  return { view, reason: 'CrashLoopBackOff', message, call: 'CreateContainer' };
}

export const containerStart: Rule<PodFacts> = {
  name: 'container-start',
  find: (facts) => {
    const failure = isDeleted(facts) ? undefined : failureOf(facts);
    if (failure === undefined) return undefined;
    const { view, reason, message, call } = failure;
    const { name } = view.spec;
    const { verdict, hint } = startProblem(message);
    const end = endOfContainer(view);
    const event = lastEvent(facts, ['Failed']);
    const command = [...(view.spec.command ?? []), ...(view.spec.args ?? [])];
    return {
      state: 'broken',
      verdict: `container ${name} ${verdict}`,
      chain: [
        { text: `container ${name} does not run, the reason is ${reason}` },
        {
          text: `the container runtime could not ${call === 'CreateContainer' ? 'create' : 'start'} it`,
          call: {
            name: call,
            to: 'the container runtime',
            ...(command.length === 0 ? {} : { with: `command ${JSON.stringify(command).slice(0, 80)}` }),
            answer: message,
          },
          ...timing(event),
          ...(end?.next === undefined ? {} : { next: end.next }),
        },
      ],
      commands: [
        { command: `kubectl get pod ${podArgument(facts)} -o yaml`, why: `the container’s spec. It needs ${hint}` },
      ],
    };
  },
};
