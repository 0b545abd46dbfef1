// Actuates allocated resources: enlarges the pod's cgroup, updates the running containers, then sets the cgroup to its final
// size. It decides nothing; after a failure the next decision continues.

import type { Pod } from '../../../client/types.ts';
import type { PodCgroups } from '../../ports/node.ts';
import type { ContainerResourceFigures, ContainerRuntime } from '../../ports/runtime.ts';
import type { ResizeAction } from '../pod-action.ts';
import { resourcesOf } from './allocation.ts';
import type { PodResizes } from './pod-resizes.ts';
import { type CpuSettings, runtimeFigures, shrinksMemoryTo } from './resize-actions.ts';

export interface ActuateParts {
  readonly runtime: Pick<ContainerRuntime, 'updateContainerResources'>;
  readonly cgroups: Pick<PodCgroups, 'ensurePod' | 'containerMemory'>;
  readonly resizes: PodResizes;
  readonly config: CpuSettings;
}

/** Rejects with the first failure; updates before it stay and are recorded. */
export async function actuateResize(pod: Pod, { updates }: ResizeAction, parts: ActuateParts): Promise<void> {
  const { runtime, cgroups, resizes, config } = parts;
  const { uid } = pod.metadata;
  // An allocation that a crash could lose must not be actuated.
  await resizes.saved();
  await cgroups.ensurePod(resizes.room(pod));
  resizes.cgroupEnlarged(pod);
  for (const { instance, container, from } of updates) {
    const to = resourcesOf(container);
    const bytes = shrinksMemoryTo(from, to);
    const used = bytes === undefined ? undefined : await cgroups.containerMemory?.(pod, instance.id);
    if (bytes !== undefined && used !== undefined && used >= bytes) {
      throw new Error(
        `attempting to set container "${container.name}" memory limit (${bytes}) below current usage (${used})`,
      );
    }
    // What a call with a lost response may have changed is set back as well.
    const possible = [...resizes.uncertain(uid, container.name, instance.id), from];
    let figures: ContainerResourceFigures = {};
    for (const before of possible) figures = { ...figures, ...runtimeFigures(before, to, config) };
    // Where only the memory request changes, there is nothing to set in the kernel.
    if (Object.keys(figures).length > 0) {
      resizes.updating(uid, container.name, instance.id, to);
      await runtime.updateContainerResources(instance.id, figures);
    }
    resizes.updated(uid, container.name, instance.id, to);
  }
  if (resizes.unfinished(uid)) return;
  await cgroups.ensurePod(pod);
  resizes.completed(pod);
}
