// Whether a pod belongs on this node: its name, the pod's node selector and affinity, taints that end pods, and host
// ports. The words are the scheduler plugins', which the kubelet uses too. Pure.

import type { Taint } from 'kubernetes-types/core/v1';
import { matchesNodeSelector, tolerates } from '../../client/selectors.ts';
import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { isStaticPod } from '../model/static-pods.ts';

export interface PlacementNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Pick<Taint, 'key' | 'value' | 'effect'>[];
}

interface Refusal {
  readonly reason: string;
  readonly message: string;
}

function failed(predicate: string, why: string): Refusal {
  return { reason: predicate, message: `Predicate ${predicate} failed: ${why}` };
}

/** Every reason why the pod does not belong here, in the kubelet's order. */
export function misplacements(pod: Pod, others: readonly Pod[], node: PlacementNode): readonly Refusal[] {
  const found: Refusal[] = [];
  if (!matchesNode(pod, node)) {
    found.push(failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector"));
  }
  if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== node.name) {
    found.push(failed('NodeName', "node(s) didn't match the requested node name"));
  }
  if (portConflict(pod, others)) {
    found.push(failed('NodePorts', "node(s) didn't have free ports for the requested pod ports"));
  }
  if (!isStaticPod(pod) && untolerated(pod, node) !== undefined) {
    found.push(failed('TaintToleration', "node(s) had taints that the pod didn't tolerate"));
  }
  return found;
}

// ---------------------------------------------------------------- node selector and affinity

/** nodeSelector and requiredDuringSchedulingIgnoredDuringExecution: both must hold. */
export function matchesNode({ spec }: Pod, node: Pick<PlacementNode, 'name' | 'labels'>): boolean {
  const selector = Object.entries(spec.nodeSelector ?? {});
  if (selector.some(([key, value]) => getOwn(node.labels, key) !== value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeSelector(required, node);
}

// ---------------------------------------------------------------- taints

/** The first NoExecute taint that the pod does not tolerate: the node is only interested in those. */
export function untolerated(
  { spec }: Pod,
  node: Pick<PlacementNode, 'taints'>,
): PlacementNode['taints'][number] | undefined {
  return node.taints.find(
    (taint) =>
      taint.effect === 'NoExecute' && !(spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

// ---------------------------------------------------------------- host ports

interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

const ANY_ADDRESS = '0.0.0.0';

/** Ports of the node that the pod takes for itself; sidecars hold theirs as containers do. */
function hostPorts({ spec }: Pod): readonly HostPort[] {
  return [...spec.containers, ...(spec.initContainers ?? []).filter(isSidecar)].flatMap(({ ports = [] }) =>
    ports
      .filter(({ hostPort }) => hostPort !== undefined && hostPort > 0)
      .map(({ hostPort = 0, hostIP, protocol }) => ({
        protocol: protocol || 'TCP',
        ip: hostIP || ANY_ADDRESS,
        port: hostPort,
      })),
  );
}

/** Same protocol, same port, and addresses that are the same or one of them all. */
export function portConflict(pod: Pod, others: readonly Pod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  const taken = others.flatMap((other) => hostPorts(other));
  return wanted.some((want) =>
    taken.some(
      (have) =>
        have.protocol === want.protocol &&
        have.port === want.port &&
        (have.ip === want.ip || have.ip === ANY_ADDRESS || want.ip === ANY_ADDRESS),
    ),
  );
}
