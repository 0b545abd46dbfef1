// The API server refuses the pods that a ReplicaSet, Job or other controller wants to make: a quota, a webhook that denies or does not
// answer, a security standard, a service account that is missing.

import type { WorkloadFacts } from '../facts.ts';
import type { Command, Rule } from '../finding.ts';
import { lastEvent, timing } from '../pod-view.ts';

interface Refusal {
  /** Ends a sentence that begins with "its pods are not made:". */
  readonly verdict: string;
  readonly commands: readonly Command[];
}

const quota = (message: string, namespace: string): Refusal | undefined => {
  const [, name = '', requested = '', used = '', limited = ''] =
    /exceeded quota: ([^,\s]+), requested: (.+), used: (.+), limited: (.+)$/s.exec(message) ?? [];
  if (name === '') return undefined;
  return {
    verdict: `quota ${name} is used up: requested ${requested}, used ${used}, of ${limited}`,
    commands: [
      {
        command: `kubectl -n ${namespace} describe resourcequota ${name}`,
        why: 'what the namespace may use, and uses',
      },
    ],
  };
};

const unset = (message: string, namespace: string): Refusal | undefined => {
  const [, name = '', what = ''] = /failed quota: ([^:\s]+): must specify (.+)$/s.exec(message) ?? [];
  if (name === '') return undefined;
  return {
    verdict: `quota ${name} demands that each pod says ${what}`,
    commands: [{ command: `kubectl -n ${namespace} describe resourcequota ${name}`, why: 'what the quota counts' }],
  };
};

const webhook = (message: string): Refusal | undefined => {
  const look = {
    command: 'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations',
    why: 'the webhooks; failurePolicy Ignore lets pods through while one is away',
  };
  const [, denied = '', why = ''] = /admission webhook "([^"]+)" denied the request: (.*)$/s.exec(message) ?? [];
  if (denied !== '') return { verdict: `admission webhook ${denied} denies them: ${why.trim()}`, commands: [look] };
  const [, name = '', answer = ''] = /failed calling webhook "([^"]+)": (.*)$/s.exec(message) ?? [];
  if (name === '') return undefined;
  const [, service = '', namespace = ''] = /https:\/\/([\w-]+)\.([\w-]+)\.svc/.exec(answer) ?? [];
  const last = answer.split(': ').slice(-2).join(': ').trim();
  return {
    verdict: `admission webhook ${name} does not answer: ${last}`,
    commands: [
      ...(service === ''
        ? []
        : [{ command: `nodelet explain service ${namespace}/${service}`, why: 'the Service behind the webhook' }]),
      look,
    ],
  };
};

const others = (message: string, namespace: string): Refusal | undefined => {
  const [, standard = '', why = ''] = /violates PodSecurity "([^"]+)": (.*)$/s.exec(message) ?? [];
  if (standard !== '') {
    const command = `kubectl get namespace ${namespace} --show-labels`;
    return {
      verdict: `they violate security standard ${standard}: ${why.trim()}`,
      commands: [{ command, why: 'the standard that the namespace enforces' }],
    };
  }
  const account = /serviceaccount "([^"]+)" not found/.exec(message)?.[1];
  if (account === undefined) return undefined;
  return {
    verdict: `service account ${account} does not exist`,
    commands: [{ command: `kubectl -n ${namespace} get serviceaccounts`, why: 'the accounts that there are' }],
  };
};

/** What a FailedCreate event says. Pure. */
export function refusal(message: string, namespace: string): Refusal {
  return (
    quota(message, namespace) ??
    unset(message, namespace) ??
    webhook(message) ??
    others(message, namespace) ?? { verdict: message.replace(/^Error creating: /, ''), commands: [] }
  );
}

export const podsRefused: Rule<WorkloadFacts> = {
  name: 'pods-refused',
  find: (facts) => {
    const { counts, workload } = facts;
    const event = lastEvent(facts, ['FailedCreate']);
    if (event === undefined || counts.present >= counts.wanted) return undefined;
    const { verdict, commands } = refusal(event.message, workload.namespace);
    return {
      state: 'broken',
      verdict: `its pods are not made: ${verdict}`,
      chain: [
        { text: `${counts.present} of ${counts.wanted} pods are there` },
        {
          text: 'the API server refused to store a pod',
          call: {
            name: 'POST pods',
            to: 'the API server',
            with: `namespace ${workload.namespace}`,
            answer: event.message,
          },
          ...timing(event),
        },
      ],
      commands: [
        ...commands,
        {
          command: `kubectl -n ${workload.namespace} describe ${workload.kind.toLowerCase()} ${workload.name}`,
          why: 'its template and events',
        },
      ],
    };
  },
};
