// Which labels a node may give itself. Workloads are steered by labels, so a node that could set any of them could draw
// pods, and with them their secrets, to itself. Pure; the lists are kube-apiserver's (k8s.io/kubelet/pkg/apis).

import { getOwn } from '../../lib/own-property.ts';

const RESTRICTED = 'node-restriction.kubernetes.io';
/** Labels of Kubernetes' own that a kubelet sets. */
const ALLOWED = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'kubernetes.io/os',
  'kubernetes.io/arch',
]);
/** Prefixes of Kubernetes' own, with everything below them, that a kubelet may use. */
const ALLOWED_PREFIXES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/** The part before the slash; '' for a label without a prefix. */
function prefixOf(label: string): string {
  const slash = label.indexOf('/');
  return slash < 0 ? '' : label.slice(0, slash);
}

const within = (prefix: string, domain: string): boolean => prefix === domain || prefix.endsWith(`.${domain}`);

/** Whether a node may set, change or remove the label on its own Node. */
export function isNodeSettable(label: string): boolean {
  const prefix = prefixOf(label);
  if (within(prefix, RESTRICTED)) return false;
  if (!within(prefix, 'kubernetes.io') && !within(prefix, 'k8s.io')) return true;
  return ALLOWED.has(label) || ALLOWED_PREFIXES.some((allowed) => within(prefix, allowed));
}

/** The labels that differ and that a node may not touch, sorted. */
export function forbiddenNodeLabels(
  now: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
): string[] {
  const keys = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...keys].filter((key) => getOwn(now, key) !== getOwn(before, key) && !isNodeSettable(key)).toSorted();
}
