// On which nodes a daemon set's pods belong, and what such a pod is like: bound by the scheduler to the one node that its affinity
// names, and tolerating what befalls a node. Pure.

import type { NodeSelector, PodTemplateSpec, Toleration } from 'kubernetes-types/core/v1';
import type { Node, Pod, PodSpec } from '../../../client/types.ts';
import { acceptsNode, toleratesTaint } from '../../scheduler/affinity.ts';
import type { DaemonSet } from '../shared/objects.ts';
import { REVISION_HASH } from '../shared/revisions.ts';

/** On pods: the generation of the template, as older versions of kube-controller-manager tell them apart. */
const GENERATION_LABEL = 'pod-template-generation';
const GENERATION_ANNOTATION = 'deprecated.daemonset.template.generation';

const toleration = (key: string, effect: string): Toleration => ({ key, operator: 'Exists', effect });
/** Pods of a daemon set outlive what drives others out, and start on nodes that take no others. */
const TOLERATIONS: readonly Toleration[] = [
  toleration('node.kubernetes.io/not-ready', 'NoExecute'),
  toleration('node.kubernetes.io/unreachable', 'NoExecute'),
  toleration('node.kubernetes.io/disk-pressure', 'NoSchedule'),
  toleration('node.kubernetes.io/memory-pressure', 'NoSchedule'),
  toleration('node.kubernetes.io/pid-pressure', 'NoSchedule'),
  toleration('node.kubernetes.io/unschedulable', 'NoSchedule'),
];
const HOST_NETWORK_TOLERATION = toleration('node.kubernetes.io/network-unavailable', 'NoSchedule');

/** The template's tolerations and those above; one for the same taint takes the place of the template's. */
export function tolerationsOf(spec: PodSpec): Toleration[] {
  const added = spec.hostNetwork === true ? [...TOLERATIONS, HOST_NETWORK_TOLERATION] : TOLERATIONS;
  const isSame = (a: Toleration, b: Toleration): boolean =>
    a.key === b.key && a.effect === b.effect && a.operator === b.operator && (a.value ?? '') === (b.value ?? '');
  const own = spec.tolerations ?? [];
  const replaced = own.map((each) => added.find((one) => isSame(one, each)) ?? each);
  return [...replaced, ...added.filter((one) => !own.some((each) => isSame(one, each)))];
}

const specOf = ({ spec }: DaemonSet): PodSpec => spec.template.spec ?? { containers: [] };

export interface Placement {
  /** A pod belongs there. */
  readonly run: boolean;
  /** A pod that is there may stay: the node's taints keep new ones away only. */
  readonly stay: boolean;
}

export function placementOn(set: DaemonSet, node: Node): Placement {
  const spec = specOf(set);
  const { name } = node.metadata;
  const pod: Pod = {
    metadata: { name: '', uid: '', resourceVersion: '', namespace: set.metadata.namespace },
    spec: { ...spec, tolerations: tolerationsOf(spec) },
  };
  const named = (spec.nodeName ?? '') === '' || spec.nodeName === name;
  if (!named || !acceptsNode(pod, node)) return { run: false, stay: false };
  const untolerated = (node.spec?.taints ?? []).filter((taint) => !toleratesTaint(pod, taint));
  const keepsOut = untolerated.some(({ effect }) => effect === 'NoExecute');
  return { run: !keepsOut && !untolerated.some(({ effect }) => effect === 'NoSchedule'), stay: !keepsOut };
}

const onNode = (name: string): NodeSelector => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }],
});

/** The node that a pod is on, or is meant for; undefined where it names none. */
export function targetNode({ spec }: Pod): string | undefined {
  if ((spec.nodeName ?? '') !== '') return spec.nodeName;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const field = terms
    .flatMap(({ matchFields = [] }) => matchFields)
    .find(({ key, operator }) => key === 'metadata.name' && operator === 'In');
  const [name, ...others] = field?.values ?? [];
  return others.length === 0 ? name : undefined;
}

function generationOf({ metadata }: DaemonSet): string | undefined {
  const text = metadata.annotations?.[GENERATION_ANNOTATION];
  return text !== undefined && /^-?\d+$/.test(text) ? String(BigInt(text)) : undefined;
}

/** The template of the pod for a node, whose name takes the place of the required affinity, which has been evaluated. */
export function templateFor(set: DaemonSet, hash: string, node: string): PodTemplateSpec {
  const spec = specOf(set);
  const generation = generationOf(set);
  const labels = {
    ...set.spec.template.metadata?.labels,
    ...(generation === undefined ? {} : { [GENERATION_LABEL]: generation }),
    [REVISION_HASH]: hash,
  };
  return {
    metadata: { ...set.spec.template.metadata, labels },
    spec: {
      ...spec,
      affinity: {
        ...spec.affinity,
        nodeAffinity: {
          ...spec.affinity?.nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: onNode(node),
        },
      },
      tolerations: tolerationsOf(spec),
    },
  };
}

/** Whether a pod is of the set's template: by the hash, or by the generation where it is older than hashes. */
export function isUpdated(set: DaemonSet, pod: Pod, hash: string): boolean {
  const generation = generationOf(set);
  const { labels = {} } = pod.metadata;
  return labels[REVISION_HASH] === hash || (generation !== undefined && labels[GENERATION_LABEL] === generation);
}
