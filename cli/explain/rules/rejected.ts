// The pod was bound to a node that refused it: too few resources, the wrong node, a taint. Nothing tries again.

import { formatMilli } from '../../../lib/quantity.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing } from '../pod-view.ts';
import { bytes, list } from '../words.ts';

const MEANINGS: ReadonlyMap<string, string> = new Map([
  ['NodeAffinity', 'the node’s labels do not match the pod’s nodeSelector or node affinity'],
  ['NodeName', 'the pod names another node'],
  ['NodePorts', 'a host port of the pod is taken on the node'],
  ['Preempting', 'a critical pod needed the room'],
  ['TaintToleration', 'the node has a taint that the pod does not tolerate'],
  ['UnexpectedAdmissionError', 'the agent could not decide whether the pod fits'],
  ['SysctlForbidden', 'the pod sets a sysctl that the node does not allow'],
  ['AppArmor', 'the pod’s AppArmor profile cannot be used on the node'],
  ['NodeShutdown', 'the node is shutting down'],
]);

interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

/** The kubelet's figures: cpu in millicores, memory in bytes. Pure. */
export function parseShortage(message: string): Shortage | undefined {
  const match = /resource: (\S+), requested: (\d+), used: (\d+), capacity: (\d+)/.exec(message);
  if (match === null) return undefined;
  const [, resource = '', requested, used, capacity] = match;
  return { resource, requested: Number(requested), used: Number(used), capacity: Number(capacity) };
}

function shortageText({ resource, requested, used, capacity }: Shortage): string {
  const amount = (value: number): string => {
    if (resource === 'cpu') return `${formatMilli(value)} cpu`;
    return resource === 'memory' || resource === 'ephemeral-storage' ? bytes(value) : `${value} ${resource}`;
  };
  return `the pod requested ${amount(requested)}; of the node’s ${amount(capacity)}, ${amount(used)} were in use, ${amount(Math.max(0, capacity - used))} free`;
}

function selectorCause({ pod, nodes }: PodFacts): readonly Cause[] {
  const selector = Object.entries(pod.spec.nodeSelector ?? {});
  const node = nodes.find(({ metadata }) => metadata.name === pod.spec.nodeName);
  if (selector.length === 0 || node === undefined) return [];
  const labels = new Map(Object.entries(node.metadata.labels ?? {}));
  const wrong = selector.filter(([key, value]) => labels.get(key) !== value);
  if (wrong.length === 0) return [{ text: 'by now the node’s labels match its nodeSelector' }];
  const parts = wrong.map(([key, value]) => {
    const has = labels.get(key);
    return `${key}=${value} (it has ${has === undefined ? 'no such label' : `${key}=${has}`})`;
  });
  return [{ text: `the node lacks ${list(parts)}` }];
}

export const rejected: Rule<PodFacts> = {
  name: 'rejected',
  find: (facts) => {
    const { pod } = facts;
    const { phase, reason = '', message = '' } = pod.status ?? {};
    const isOutOf = /^OutOf(\w+)$/.exec(reason)?.[1];
    if (isDeleted(facts) || phase !== 'Failed' || (isOutOf === undefined && !MEANINGS.has(reason))) return undefined;
    const node = pod.spec.nodeName ?? '';
    const shortage = parseShortage(message);
    const why = isOutOf === undefined ? (MEANINGS.get(reason) ?? '') : `it has too little ${isOutOf} left`;
    const event = lastEvent(facts, [reason]);
    return {
      state: 'ended',
      verdict: `node ${node} refused it: ${why}`,
      chain: [
        { text: `the phase is Failed, the reason ${reason}; nothing tries this pod again`, ...timing(event) },
        {
          text: `the agent of node ${node} did not admit the pod`,
          call: { name: 'admission', to: `node ${node}`, answer: message },
        },
        ...(shortage === undefined ? [] : [{ text: shortageText(shortage) }]),
        ...(reason === 'NodeAffinity' ? selectorCause(facts) : []),
      ],
      commands: [
        {
          command: `kubectl describe node ${node}`,
          why: 'what is allocatable and in use there, its labels and taints',
        },
        { command: `kubectl delete pod ${podArgument(facts)}`, why: 'after a correction: a rejected pod is made anew' },
      ],
    };
  },
};
