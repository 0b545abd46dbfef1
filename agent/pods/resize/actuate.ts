// Brings running containers to what they have been promised: the pod's cgroup as large as it must be first, then the
// containers, then the cgroup down to its end. It decides nothing; what stops half way is taken up by the next decision.

import type { Pod } from '../../../client/types.ts';
import type { PodCgroups } from '../../ports/node.ts';
import type { ContainerRuntime } from '../../ports/runtime.ts';
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

/** Rejects with what went wrong; what was done until then stays done and is known. */
export async function actuateResize(pod: Pod, { updates }: ResizeAction, parts: ActuateParts): Promise<void> {
  const { runtime, cgroups, resizes, config } = parts;
  const { uid } = pod.metadata;
  // A promise that a crash could forget must not be acted on.
  await resizes.saved();
  await cgroups.ensurePod(resizes.room(pod));
  resizes.roomMade(pod);
  for (const { instance, container, from } of updates) {
    const to = resourcesOf(container);
    const bytes = shrinksMemoryTo(from, to);
    const used = bytes === undefined ? undefined : await cgroups.containerMemory?.(pod, instance.id);
    if (bytes !== undefined && used !== undefined && used >= bytes) {
      throw new Error(
        `attempting to set container "${container.name}" memory limit (${bytes}) below current usage (${used})`,
      );
    }
    // What a call whose answer was lost may have changed is set back as well.
    const tried = resizes.attempted(uid, container.name, instance.id);
    const figures = {
      ...(tried === undefined ? {} : runtimeFigures(tried, to, config)),
      ...runtimeFigures(from, to, config),
    };
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
