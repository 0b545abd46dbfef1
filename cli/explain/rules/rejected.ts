// The pod was bound to a node that refused it: too few resources, the wrong node, a taint. Nothing tries again.

import type { Node, Pod } from '../../../client/types.ts';
import { matchesNodeSelector } from '../../../controlplane/scheduler/affinity.ts';
import { podRequests } from '../../../controlplane/scheduler/requests.ts';
import { formatMilli } from '../../../lib/quantity.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { selectedLabelsText, selectorTermsText } from '../node-selector-text.ts';
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
  ['PodFeatureUnsupported', 'the pod needs a feature that the node does not have'],
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

/** cpu in millicores, memory in bytes: "1500m cpu", "2 GiB". */
function amountText(resource: string, value: number): string {
  if (resource === 'cpu') return `${formatMilli(value)} cpu`;
  return resource === 'memory' || resource === 'ephemeral-storage' ? bytes(value) : `${value} ${resource}`;
}

function shortageText({ resource, requested, used, capacity }: Shortage): string {
  const amount = (value: number): string => amountText(resource, value);
  return `the pod requested ${amount(requested)}; of the node’s ${amount(capacity)}, ${amount(used)} were in use, ${amount(Math.max(0, capacity - used))} free`;
}

/** The expressions of required node affinity that the node does not meet, where the pod has no nodeSelector that fails. */
function affinityCause({ pod }: PodFacts, node: Node): readonly Cause[] {
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return [];
  if (matchesNodeSelector(required, node)) return [{ text: 'by now the node’s labels match its node affinity' }];
  return [
    {
      text: `node affinity demands ${selectorTermsText(required)}; the node has ${selectedLabelsText(required, node)}`,
    },
  ];
}

function selectorCause(facts: PodFacts): readonly Cause[] {
  const { pod, nodes } = facts;
  const selector = Object.entries(pod.spec.nodeSelector ?? {});
  const node = nodes.find(({ metadata }) => metadata.name === pod.spec.nodeName);
  if (node === undefined) return [];
  if (selector.length === 0) return affinityCause(facts, node);
  const labels = new Map(Object.entries(node.metadata.labels ?? {}));
  const wrong = selector.filter(([key, value]) => labels.get(key) !== value);
  if (wrong.length === 0)
    return [{ text: 'by now the node’s labels match its nodeSelector' }, ...affinityCause(facts, node)];
  const parts = wrong.map(([key, value]) => {
    const has = labels.get(key);
    return `${key}=${value} (it has ${has === undefined ? 'no such label' : `${key}=${has}`})`;
  });
  return [{ text: `the node lacks ${list(parts)}` }];
}

/** What it gave up, and the critical pods that are on the node now. */
function preemptionCause({ pod, placed }: PodFacts): readonly Cause[] {
  const figures = (of: Pod): string =>
    list([...podRequests(of)].filter(([, value]) => value > 0).map(([resource, value]) => amountText(resource, value)));
  const critical = placed.filter(
    (other) =>
      other.spec.nodeName === pod.spec.nodeName &&
      (other.spec.priority ?? 0) > (pod.spec.priority ?? 0) &&
      figures(other) !== '',
  );
  return [
    { text: `priority ${pod.spec.priority ?? 0}; it requested ${figures(pod) || 'nothing'}` },
    ...critical.slice(0, 3).map((other) => ({
      text: `pod ${other.metadata.namespace}/${other.metadata.name} is there with priority ${other.spec.priority}; it requests ${figures(other)}`,
    })),
  ];
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
      verdict: `node ${node} ${reason === 'Preempting' ? 'preempted' : 'refused'} it: ${why}`,
      chain: [
        { text: `the phase is Failed, the reason ${reason}; nothing tries this pod again`, ...timing(event) },
        {
          text: `the agent of node ${node} ${reason === 'Preempting' ? 'ended it to admit another pod' : 'did not admit the pod'}`,
          call: { name: 'admission', to: `node ${node}`, answer: message },
        },
        ...(shortage === undefined ? [] : [{ text: shortageText(shortage) }]),
        ...(reason === 'NodeAffinity' ? selectorCause(facts) : []),
        ...(reason === 'Preempting' ? preemptionCause(facts) : []),
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
