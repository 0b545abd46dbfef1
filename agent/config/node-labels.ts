// Which labels a node may give itself (--node-labels): label syntax, and the kubelet's restriction of the kubernetes.io
// and k8s.io namespaces. Pure.

import { UserError } from '../../lib/errors.ts';

/** Labels in reserved namespaces that a kubelet may set on its own Node (NodeRestriction allows the same). */
const ALLOWED: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.kubernetes.io/zone',
  'failure-domain.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
]);
const ALLOWED_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const inNamespace = (prefix: string, namespace: string): boolean =>
  prefix === namespace || prefix.endsWith(`.${namespace}`);

/** The labels, checked. Throws UserError naming the first one that is not right. */
export function parseNodeLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [key, value] of Object.entries(labels)) {
    const slash = key.indexOf('/');
    const prefix = slash < 0 ? '' : key.slice(0, slash);
    const name = key.slice(slash + 1);
    if ((slash >= 0 && (prefix.length > 253 || !PREFIX.test(prefix))) || !NAME.test(name)) {
      throw new UserError(`--node-labels: "${key}" is not a label key`);
    }
    if (value !== '' && !NAME.test(value))
      throw new UserError(`--node-labels: "${value}" is not a label value (${key})`);
    const reserved = inNamespace(prefix, 'kubernetes.io') || inNamespace(prefix, 'k8s.io');
    const allowed = ALLOWED.has(key) || ALLOWED_NAMESPACES.some((namespace) => inNamespace(prefix, namespace));
    if (reserved && !allowed) {
      throw new UserError(`--node-labels: "${key}" is in a reserved namespace and not one a node may set on itself`);
    }
  }
  return labels;
}
