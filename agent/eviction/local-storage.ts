// Local ephemeral-storage limits: what evicts a pod whether or not the node is short of anything. The sizeLimit of an
// emptyDir, the limits of the pod together, and that of each container. Pure.

import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { formatBytes } from '../../lib/quantity.ts';
import { bytesOf } from './messages.ts';
import { ephemeralStorageLimit, limitedParts, podDiskUsage } from './ranking.ts';
import type { DiskLayout, PodUsage } from './types.ts';

interface SizedVolume {
  readonly name: string;
  readonly bytes: number;
  readonly text: string;
}

/** emptyDirs on disk with a size limit. Those in memory are limited by their tmpfs. */
function sizedVolumes(pod: Pod): readonly SizedVolume[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    if (emptyDir?.sizeLimit === undefined || emptyDir.medium === 'Memory') return [];
    const limit = bytesOf(emptyDir.sizeLimit);
    return limit.bytes > 0 ? [{ name, ...limit }] : [];
  });
}

/** Whether anything of the pod is limited, so that its use has to be measured. */
export function hasLocalStorageLimit(pod: Pod): boolean {
  return ephemeralStorageLimit(pod) !== undefined || sizedVolumes(pod).length > 0;
}

/** Why the pod is to be evicted, or undefined while it keeps to its limits. The first that is exceeded counts. */
export function localStorageViolation(pod: Pod, usage: PodUsage, layout: DiskLayout): string | undefined {
  for (const { name, bytes, text } of sizedVolumes(pod)) {
    const used = getOwn(usage.volumes, name)?.bytes;
    if (used !== undefined && used > bytes) return `Usage of EmptyDir volume "${name}" exceeds the limit "${text}". `;
  }
  const limit = ephemeralStorageLimit(pod);
  const parts = limitedParts(layout);
  if (limit !== undefined && podDiskUsage(usage, parts).bytes > limit) {
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${formatBytes(limit)}. `;
  }
  for (const { name, resources } of pod.spec.containers) {
    const own = bytesOf(resources?.limits?.['ephemeral-storage']);
    const container = usage.containers.find((candidate) => candidate.name === name);
    if (own.bytes === 0 || container === undefined) continue;
    const used = (container.logs?.bytes ?? 0) + (parts.includes('rootfs') ? (container.rootfs?.bytes ?? 0) : 0);
    if (used > own.bytes) return `Container ${name} exceeded its local ephemeral storage limit "${own.text}". `;
  }
  return undefined;
}
