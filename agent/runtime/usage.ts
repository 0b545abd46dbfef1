// The runtime's figures of disks, memory and images (CRI ImageFsInfo, ListContainerStats, ListContainers,
// Status). For eviction and image garbage collection; read seldom.

import type { ContainerStats__Output } from '../../proto/gen/runtime/v1/ContainerStats.ts';
import { podUID } from '../model/pod-uid.ts';
import type { ContainerStats } from '../ports/runtime.ts';
import { ANNOTATION_RESTART_COUNT, LABEL_CONTAINER_NAME, LABEL_POD_UID } from './config/labels.ts';
import { type CriClient, isRuntimeError } from './cri-client.ts';
import type { CriRuntime } from './types.ts';

/** undefined for a container that is no pod's. */
export function containerStatsOf(stats: ContainerStats__Output): ContainerStats | undefined {
  const { attributes, memory, writable_layer } = stats;
  const uid = attributes?.labels[LABEL_POD_UID];
  const name = attributes?.labels[LABEL_CONTAINER_NAME];
  if (uid === undefined || name === undefined) return undefined;
  const workingSet = memory?.working_set_bytes?.value;
  const bytes = writable_layer?.used_bytes?.value;
  return {
    podUID: podUID(uid),
    name,
    restartCount: Number(attributes?.annotations[ANNOTATION_RESTART_COUNT] ?? attributes?.metadata?.attempt ?? 0),
    ...(workingSet === undefined ? {} : { workingSetBytes: Number(workingSet) }),
    ...(bytes === undefined
      ? {}
      : { writableLayer: { bytes: Number(bytes), inodes: Number(writable_layer?.inodes_used?.value ?? 0) } }),
  };
}

/** The image of sandboxes in the runtime's verbose status; '' when it does not say. containerd's words. */
export function sandboxImageOf(info: Readonly<Record<string, string>>): string {
  const text = info['config'];
  if (text === undefined) return '';
  const config: unknown = JSON.parse(text);
  if (typeof config !== 'object' || config === null) return '';
  if ('sandboxImage' in config && typeof config.sandboxImage === 'string') return config.sandboxImage;
  return '';
}

export function createRuntimeUsage(
  { call }: CriClient,
  deadlineMs: number,
): Pick<CriRuntime, 'imageFsPaths' | 'containerStats' | 'imagesInUse'> {
  return {
    async imageFsPaths() {
      const { image_filesystems, container_filesystems } = await call('ImageFsInfo', {}, { deadlineMs });
      return {
        image: image_filesystems[0]?.fs_id?.mountpoint || undefined,
        container: container_filesystems[0]?.fs_id?.mountpoint || undefined,
      };
    },
    async containerStats() {
      try {
        const { stats } = await call('ListContainerStats', {}, { deadlineMs });
        return stats.flatMap((each) => containerStatsOf(each) ?? []);
      } catch (error) {
        if (isRuntimeError(error, 'UNIMPLEMENTED')) return [];
        throw error;
      }
    },
    async imagesInUse() {
      const [{ containers }, { info }] = await Promise.all([
        call('ListContainers', {}, { deadlineMs }),
        call('Status', { verbose: true }, { deadlineMs }),
      ]);
      const used = containers.flatMap(({ image_ref, image, image_id }) => [image_ref, image?.image ?? '', image_id]);
      return [...new Set([...used, sandboxImageOf(info)])].filter((name) => name !== '');
    },
  };
}
