// NodeMetrics and PodMetrics of metrics.k8s.io/v1beta1, from what was used. Pure.

import type { EpochMs } from '../../lib/clock.ts';
import { goDuration } from '../../lib/go-duration.ts';
import { formatBytes } from '../../lib/quantity.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { nanoQuantity } from '../kinds/metrics.ts';
import type { KubeObject } from '../kinds/resource.ts';
import type { Usage } from './usage.ts';

const API_VERSION = 'metrics.k8s.io/v1beta1';

function amounts({ nanoCores, memory }: Usage): { readonly cpu: string; readonly memory: string } {
  return { cpu: nanoQuantity(nanoCores), memory: formatBytes(memory) };
}

/** `of`: the node or pod, whose labels select its metrics, too. */
function metadata({ metadata: { name = '', namespace, labels } }: KubeObject, now: EpochMs): KubeObject['metadata'] {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    creationTimestamp: rfc3339(now),
    ...(labels === undefined ? {} : { labels }),
  };
}

export function nodeMetrics(node: KubeObject, usage: Usage, now: EpochMs): KubeObject {
  return {
    kind: 'NodeMetrics',
    apiVersion: API_VERSION,
    metadata: metadata(node, now),
    timestamp: rfc3339(usage.at),
    window: goDuration(usage.windowMs),
    usage: amounts(usage),
  };
}

/** `containers`: of each container; at least one. The time is that of the earliest. */
export function podMetrics(
  pod: KubeObject,
  containers: readonly (readonly [name: string, usage: Usage])[],
  now: EpochMs,
): KubeObject {
  const usages = containers.map(([, usage]) => usage);
  const earliest = usages.reduce((a, b) => (b.at < a.at ? b : a));
  return {
    kind: 'PodMetrics',
    apiVersion: API_VERSION,
    metadata: metadata(pod, now),
    timestamp: rfc3339(earliest.at),
    window: goDuration(earliest.windowMs),
    containers: containers.map(([name, usage]) => ({ name, usage: amounts(usage) })),
  };
}
