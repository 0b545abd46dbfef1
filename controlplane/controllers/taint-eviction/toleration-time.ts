// How long a pod may stay on a node with NoExecute taints (pkg/controller/tainteviction). Pure.

import type { Taint } from 'kubernetes-types/core/v1';
import { tolerates } from '../../../client/selectors.ts';
import type { Pod } from '../../../client/types.ts';

/**
 * ms from the moment in which the taints were there until the pod is deleted: 0 where it does not tolerate one of them, the
 * shortest tolerationSeconds of those by which it tolerates them; undefined where it stays.
 */
export function tolerationMs({ spec }: Pick<Pod, 'spec'>, taints: readonly Taint[]): number | undefined {
  const seconds: number[] = [];
  for (const taint of taints.filter(({ effect }) => effect === 'NoExecute')) {
    // The first that fits counts, as in the real controller.
    const toleration = (spec.tolerations ?? []).find((each) => tolerates(each, taint));
    if (toleration === undefined) return 0;
    if (toleration.tolerationSeconds !== undefined) seconds.push(Math.max(0, toleration.tolerationSeconds));
  }
  return seconds.length === 0 ? undefined : Math.min(...seconds) * 1000;
}
