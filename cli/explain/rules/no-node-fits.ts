// The scheduler finds no node for the pod: each node with the first filter that refused it, and the figures.

import type { PersistentVolume } from 'kubernetes-types/core/v1';
import type { Node, Pod, Stored } from '../../../client/types.ts';
import { acceptsNode, matchesNodeSelector, toleratesTaint } from '../../../controlplane/scheduler/affinity.ts';
import {
  type Amounts,
  addAmounts,
  amountsOf,
  hostPorts,
  podRequests,
  portsConflict,
} from '../../../controlplane/scheduler/requests.ts';
import { formatMilli } from '../../../lib/quantity.ts';
import type { PodFacts } from '../facts.ts';
import type { Command, Rule } from '../finding.ts';
import { type NeighbourRefusal, Neighbours } from '../neighbours.ts';
import { selectedLabelsText, selectorTermsText } from '../node-selector-text.ts';
import { condition, isDeleted, isScheduled, lastEvent, podArgument, timing } from '../pod-view.ts';
import { bytes, list, plural } from '../words.ts';

/** Nodes that are named one by one. */
const MAX_NODES = 5;

interface Refusal {
  /** "too little cpu": the same for nodes that refuse for the same reason. */
  readonly reason: string;
  readonly detail: string;
  readonly command?: Command;
}

function amount(resource: string, value: number): string {
  if (resource === 'cpu') return formatMilli(value);
  return resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-')
    ? bytes(value)
    : String(value);
}

function shortages(pod: Pod, node: Node, others: readonly Pod[]): readonly Refusal[] {
  const allocatable = amountsOf(node.status?.allocatable);
  const used = others.reduce<Amounts>((sum, other) => addAmounts(sum, podRequests(other)), new Map());
  const { name } = node.metadata;
  const command = { command: `kubectl describe node ${name}`, why: 'what is allocatable, and which pods requested it' };
  const refusals: Refusal[] = [];
  const most = allocatable.get('pods') ?? 0;
  if (others.length + 1 > most) {
    refusals.push({
      reason: 'too many pods',
      detail: `it has ${plural(others.length, 'pod')}, and takes ${most} at most`,
      command,
    });
  }
  for (const [resource, wanted] of podRequests(pod)) {
    const [total, taken] = [allocatable.get(resource) ?? 0, used.get(resource) ?? 0];
    if (wanted === 0 || wanted <= total - taken) continue;
    const show = (value: number): string => amount(resource, value);
    const free = Math.max(0, total - taken);
    refusals.push({
      reason: `too little ${resource}`,
      detail: `${resource}: ${show(wanted)} requested, ${show(free)} free (${show(total)} allocatable, ${show(taken)} requested by ${plural(others.length, 'pod')})`,
      command,
    });
  }
  return refusals;
}

function selectorText(pod: Pod, node: Node): string {
  const labels = new Map(Object.entries(node.metadata.labels ?? {}));
  const wrong = Object.entries(pod.spec.nodeSelector ?? {}).filter(([key, value]) => labels.get(key) !== value);
  if (wrong.length === 0) return 'its labels do not match the pod’s required node affinity';
  return `nodeSelector wants ${list(
    wrong.map(([key, value]) => {
      const has = labels.get(key);
      return `${key}=${value}, the node has ${has === undefined ? `no label ${key}` : `${key}=${has}`}`;
    }),
  )}`;
}

/** A volume of the pod that is not there for this node: in another zone, or on another machine's disk. */
function volumeElsewhere(node: Node, volumes: readonly Stored<PersistentVolume>[]): Refusal | undefined {
  for (const { metadata, spec } of volumes) {
    const required = spec?.nodeAffinity?.required;
    if (required === undefined || matchesNodeSelector(required, node)) continue;
    return {
      reason: `volume ${metadata.name} cannot be reached from there`,
      detail: `volume ${metadata.name} is only where ${selectorTermsText(required)}, the node has ${selectedLabelsText(required, node)}`,
      command: {
        command: `kubectl get pv ${metadata.name} -o jsonpath='{.spec.nodeAffinity}'`,
        why: 'where the volume can be reached from',
      },
    };
  }
  return undefined;
}

/** Why the node itself does not take the pod, as far as this program knows the filters. `volumes`: those of its claims. Pure. */
export function refusalsOf(
  pod: Pod,
  node: Node,
  placed: readonly Pod[],
  volumes: readonly Stored<PersistentVolume>[],
): readonly Refusal[] {
  const { name } = node.metadata;
  const others = placed.filter((other) => other.spec.nodeName === name);
  const uncordon = { command: `kubectl uncordon ${name}`, why: 'lets pods onto the node again' };
  if (node.spec?.unschedulable === true) {
    return [{ reason: 'cordoned', detail: 'it is cordoned (spec.unschedulable)', command: uncordon }];
  }
  const taint = (node.spec?.taints ?? []).find(
    (each) => each.effect !== 'PreferNoSchedule' && !toleratesTaint(pod, each),
  );
  if (taint !== undefined) {
    const text = `${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`;
    return [
      {
        reason: `taint ${text}`,
        detail: `it has taint ${text}, which the pod does not tolerate`,
        command: {
          command: `kubectl taint node ${name} ${taint.key}:${taint.effect}-`,
          why: 'removes the taint; or give the pod a toleration for it',
        },
      },
    ];
  }
  if (!acceptsNode(pod, node)) {
    return [
      {
        reason: 'its labels do not match',
        detail: selectorText(pod, node),
        command: { command: 'kubectl get nodes --show-labels', why: 'the labels that nodes have' },
      },
    ];
  }
  for (const port of hostPorts(pod)) {
    const owner = others.find((other) => hostPorts(other).some((taken) => portsConflict(port, taken)));
    if (owner === undefined) continue;
    const { namespace, name: ownerName } = owner.metadata;
    return [
      {
        reason: `host port ${port.port} is taken`,
        detail: `host port ${port.protocol} ${port.port} belongs to pod ${namespace}/${ownerName}`,
        command: { command: `kubectl -n ${namespace} get pod ${ownerName} -o wide`, why: 'the pod that has the port' },
      },
    ];
  }
  const short = shortages(pod, node, others);
  const elsewhere = short.length === 0 ? volumeElsewhere(node, volumes) : undefined;
  return elsewhere === undefined ? short : [elsewhere];
}

function withPods(refusal: NeighbourRefusal | undefined): readonly Refusal[] {
  const command = {
    command: 'kubectl get pods -A --show-labels -o wide',
    why: 'which pods are where, with their labels',
  };
  return refusal === undefined ? [] : [{ ...refusal, command }];
}

export const noNodeFits: Rule<PodFacts> = {
  name: 'no-node-fits',
  find: (facts) => {
    const { pod, nodes, placed } = facts;
    const scheduled = condition(facts, 'PodScheduled');
    if (isScheduled(facts) || isDeleted(facts) || scheduled?.reason !== 'Unschedulable') return undefined;
    const message = scheduled.message ?? '';
    const event = lastEvent(facts, ['FailedScheduling']);
    if (nodes.length === 0) {
      return {
        state: 'broken',
        verdict: 'the cluster has no nodes',
        chain: [{ text: message, ...timing(event) }],
        commands: [{ command: 'kubectl get nodes', why: 'an agent registers its node when it starts' }],
      };
    }
    const volumes = [...facts.references.claims.values()].flatMap((claim) =>
      claim.state === 'found' ? (claim.value.volume ?? []) : [],
    );
    const neighbours = new Neighbours(pod, nodes, placed);
    const refusals = nodes.map((node) => {
      const own = refusalsOf(pod, node, placed, volumes);
      return { node, found: own.length > 0 ? own : withPods(neighbours.refusal(node)) };
    });
    const reasons = new Set(refusals.flatMap(({ found }) => found.map(({ reason }) => reason)));
    // kube-scheduler's words: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had …."
    const inWords = message.replace(/^\d+\/\d+ nodes are available: /, '').replace(/\.?( preemption:.*)?$/, '');
    const why = reasons.size === 0 ? inWords : list([...reasons]);
    const only = nodes.length === 1 ? ` (there is one, ${nodes[0]?.metadata.name})` : ` of ${nodes.length}`;
    const commands = refusals.flatMap(({ found }) => found.flatMap(({ command }) => command ?? []));
    return {
      state: 'broken',
      verdict: `no node${only} takes it: ${why}`,
      chain: [
        { text: `the scheduler gives the pod no node: ${message}`, ...timing(event) },
        ...refusals.slice(0, MAX_NODES).map(({ node, found }) => ({
          text: `node ${node.metadata.name}: ${found.length === 0 ? 'refused by a filter of the scheduler that is only in its message' : found.map(({ detail }) => detail).join('; ')}`,
        })),
        ...(refusals.length > MAX_NODES ? [{ text: `and ${refusals.length - MAX_NODES} more nodes` }] : []),
      ],
      commands: [
        ...commands.slice(0, 2),
        { command: `kubectl describe pod ${podArgument(facts)}`, why: 'what the pod requests and demands of a node' },
      ],
    };
  },
};
