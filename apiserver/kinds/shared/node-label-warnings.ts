// Warnings about labels of nodes that are deprecated, wherever an object selects nodes by them. The texts are the real server's.

import { getOwn } from '../../../lib/own-property.ts';
import { labelValue } from '../names.ts';

export const NODE_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};

interface Requirement {
  key?: string | undefined;
  values?: readonly string[] | undefined;
}
interface Term {
  matchExpressions?: readonly Requirement[] | undefined;
}

/** `withValues`: values that are no label values are worth a warning, too. */
export function termWarnings(field: string, { matchExpressions = [] }: Term, withValues = false): string[] {
  return matchExpressions.flatMap(({ key = '', values = [] }, index) => {
    const at = `${field}.matchExpressions[${index}]`;
    const message = getOwn(NODE_LABELS, key);
    const wrong = (withValues ? values : []).flatMap((value, place) =>
      labelValue(value).map((why) => `${at}.values[${place}]: ${value} is invalid, ${why}`),
    );
    return [...(message === undefined ? [] : [`${at}.key: ${key} is ${message}`]), ...wrong];
  });
}

/** Of a label selector of nodes. */
export function selectorWarnings(
  field: string,
  selector: (Term & { matchLabels?: { readonly [name: string]: unknown } | undefined }) | undefined,
): string[] {
  if (selector === undefined) return [];
  const labels = Object.keys(selector.matchLabels ?? {}).flatMap((label) => {
    const message = getOwn(NODE_LABELS, label);
    return message === undefined ? [] : [`${field}.matchLabels.${label}: ${message}`];
  });
  return [...termWarnings(field, selector), ...labels];
}
