// The rules for what makes pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs.

import { isPodReady } from '../../../agent/model/pod-ready.ts';
import type { WorkloadFacts } from '../facts.ts';
import type { Finding, Rule } from '../finding.ts';
import { podsRefused } from './pods-refused.ts';
import { podsUnready } from './pods-unready.ts';

export const WORKLOAD_RULES: readonly (readonly Rule<WorkloadFacts>[])[] = [[podsRefused], [podsUnready]];

/** Nothing is wrong, or its controller has not begun. */
export function otherWorkload({ counts, workload }: WorkloadFacts): Finding {
  const isThere = counts.ready >= counts.wanted;
  return {
    state: isThere ? 'ready' : 'waiting',
    verdict: isThere
      ? `it has its pods: ${counts.ready} of ${counts.wanted} are Ready`
      : `${counts.present} of ${counts.wanted} pods are there, and its controller has reported no error`,
    chain: [],
    commands: isThere
      ? []
      : [
          {
            command: `kubectl -n ${workload.namespace} describe ${workload.kind.toLowerCase()} ${workload.name}`,
            why: 'its status and events; without a controller manager nothing makes pods',
          },
        ],
  };
}

export function fineWorkload({ pods }: WorkloadFacts): readonly string[] {
  const ready = pods.filter(isPodReady).map(({ metadata }) => metadata.name);
  return ready.length === 0 ? [] : [`Ready: ${ready.slice(0, 8).join(', ')}${ready.length > 8 ? ', …' : ''}`];
}
