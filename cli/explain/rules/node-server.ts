// The agent cannot reach the API server from its node, or is refused there. By the agent's own request, which fails at one of DNS,
// TCP, TLS and HTTP.

import type { NodeFacts, ServerAttempt } from '../facts.ts';
import type { Command, Rule } from '../finding.ts';
import { symptom } from '../node-view.ts';
import { list } from '../words.ts';

function verdictOf({ server, step, answer, status }: ServerAttempt): string {
  const { hostname, host } = new URL(server);
  switch (step) {
    case 'dns':
      return `its agent cannot reach the API server ${server}: the name ${hostname} cannot be resolved (DNS)`;
    case 'tcp':
      return `its agent cannot reach the API server ${server}: no connection to ${host} (TCP): ${answer}`;
    case 'tls':
      return `its agent cannot reach the API server ${server}: TLS fails: ${answer}`;
    case 'http':
    case 'answered':
      if (status === undefined) return `its agent gets no answer from the API server ${server} (HTTP): ${answer}`;
      if (status === 401) return `the API server ${server} does not accept its agent’s credentials: ${answer}`;
      if (status === 403) return `the API server ${server} does not let its agent read its own Node: ${answer}`;
      return `the API server ${server} answers its agent with HTTP ${answer}`;
  }
}

/** What worked before the step that failed. */
function worked({ server, step }: ServerAttempt): readonly string[] {
  const { hostname, host } = new URL(server);
  const steps = [`the name ${hostname} was found`, `${host} takes connections`, 'TLS was agreed on'];
  return steps.slice(0, ['dns', 'tcp', 'tls', 'http'].indexOf(step));
}

function commandOf({ server, step }: ServerAttempt, kubeconfig: string): Command {
  const { hostname } = new URL(server);
  if (step === 'dns')
    return { command: `getent hosts ${hostname}`, why: 'on the node: whether the name can be resolved' };
  if (step === 'http')
    return {
      command: `kubectl --kubeconfig ${kubeconfig} get --raw /readyz?verbose`,
      why: 'on the node: its own words',
    };
  return { command: `curl -vk ${server}/readyz`, why: 'on the node: the same way to the API server' };
}

export const nodeServer: Rule<NodeFacts> = {
  name: 'node-server',
  find: (facts) => {
    const { agent, clock } = facts;
    const attempt = agent?.attempt;
    // 404: it is there, and has no such Node.
    if (agent === undefined || attempt === undefined || attempt.step === 'answered' || attempt.status === 404)
      return undefined;
    const before = worked(attempt);
    const isWrongTime = attempt.step === 'tls' && /expired|not valid yet/.test(attempt.answer);
    return {
      state: 'broken',
      verdict: verdictOf(attempt),
      chain: [
        symptom(facts),
        {
          text: `the agent’s own request, made now from this machine, fails`,
          call: {
            name: attempt.request,
            to: attempt.server,
            with: `the kubeconfig ${agent.kubeconfig}`,
            answer: attempt.answer,
          },
        },
        ...(before.length === 0 ? [] : [{ text: `on the way there this worked: ${list(before)}` }]),
        ...(isWrongTime && clock === undefined
          ? [{ text: 'a wrong clock on the node has the same effect: compare it with another machine’s' }]
          : []),
      ],
      commands: [commandOf(attempt, agent.kubeconfig)],
    };
  },
};
