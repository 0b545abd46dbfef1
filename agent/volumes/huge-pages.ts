// Which page size an emptyDir of huge pages has: the medium names it, or the pod's requests do. Pure.

import type { Pod } from '../../client/types.ts';
import { quantityValue } from '../../lib/quantity.ts';

const RESOURCE_PREFIX = 'hugepages-';
const MEDIUM_PREFIX = 'HugePages-';

export function isHugePagesMedium(medium: string): boolean {
  return medium === 'HugePages' || medium.startsWith(MEDIUM_PREFIX);
}

/** Page sizes ("2Mi") of the huge pages that the pod or a container of it requests. */
function requestedSizes(pod: Pod): readonly string[] {
  const spec: Pod['spec'] & { resources?: { requests?: Record<string, string> } } = pod.spec;
  const lists = [
    spec.resources?.requests,
    ...[...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.resources?.requests),
  ];
  const names = lists.flatMap((requests) => Object.keys(requests ?? {}));
  return names.filter((name) => name.startsWith(RESOURCE_PREFIX)).map((name) => name.slice(RESOURCE_PREFIX.length));
}

/** "2Mi" as hugetlbfs takes it. */
function pageSizeOption(size: string): string {
  return `pagesize=${size}`;
}

/** The option to mount hugetlbfs with. Throws the kubelet's message where the pod does not name a size. */
export function hugePagesOption(medium: string, pod: Pod): string {
  const requested = requestedSizes(pod);
  if (medium === 'HugePages') {
    const [size] = requested;
    const differ = size !== undefined && requested.some((other) => quantityValue(other) !== quantityValue(size));
    if (differ) throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
    if (size !== undefined) return pageSizeOption(size);
  } else {
    const wanted = quantityValue(medium.slice(MEDIUM_PREFIX.length));
    const size = requested.find((one) => quantityValue(one) === wanted);
    if (size !== undefined) return pageSizeOption(size);
  }
  throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`);
}
