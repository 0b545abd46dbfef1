// TaintToleration (Filter, Score): a node's NoSchedule and NoExecute taints need a toleration each; of the other nodes those
// with fewer PreferNoSchedule taints that are not tolerated are better. Pure.

import type { Taint } from 'kubernetes-types/core/v1';
import { tolerates } from '../../../client/selectors.ts';
import type { Node, Pod } from '../../../client/types.ts';
import { toleratesTaint } from '../affinity.ts';
import { isNodeChange } from '../events.ts';
import { normalizeByMaximum } from '../framework/normalize.ts';
import type { Plugin } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';

/** The first taint that keeps the pod away. */
export function untoleratedTaint(pod: Pod, taints: readonly Taint[]): Taint | undefined {
  return taints.find(({ effect }, index) => {
    const taint = taints[index];
    return taint !== undefined && (effect === 'NoSchedule' || effect === 'NoExecute') && !toleratesTaint(pod, taint);
  });
}

/** PreferNoSchedule taints that no toleration of this or of any effect matches. */
function avoided(pod: Pod, taints: readonly Taint[]): number {
  const tolerations = (pod.spec.tolerations ?? []).filter(
    ({ effect }) => effect === undefined || effect === '' || effect === 'PreferNoSchedule',
  );
  return taints.filter(
    (taint) => taint.effect === 'PreferNoSchedule' && !tolerations.some((toleration) => tolerates(toleration, taint)),
  ).length;
}

const taintsOf = (node: Node): readonly Taint[] => node.spec?.taints ?? [];

export const taintToleration: Plugin = {
  name: 'TaintToleration',
  filter: (_state, { pod }, node) => {
    if (node.taints.length === 0) return undefined;
    const taint = untoleratedTaint(pod, node.taints);
    return taint && unresolvable(`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`);
  },
  score: (_state, { pod }, node) => (node.taints.length === 0 ? 0 : avoided(pod, node.taints)),
  normalizeScores: (_state, _pod, scores) => normalizeByMaximum(scores, true),
  worthRetrying: (event, { pod }) => {
    if (event.resource === 'Self') return event.changed.has('tolerations');
    if (event.resource !== 'Node' || !isNodeChange(event, 'taints')) return false;
    const before = event.action === 'update' ? untoleratedTaint(pod, taintsOf(event.old)) : event;
    return before !== undefined && untoleratedTaint(pod, taintsOf(event.object)) === undefined;
  },
};
