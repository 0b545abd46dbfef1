// Actuates allocated resources: enlarges the pod's cgroup, updates the running containers, then sets the cgroup to its final
// size. It decides nothing; after a failure the next decision continues.

import type { Pod } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { PodCgroups } from '../../ports/node.ts';
import type { ContainerResourceFigures, ContainerRuntime, SandboxId } from '../../ports/runtime.ts';
import { RuntimeError } from '../../ports/runtime.ts';
import type { PodsLog } from '../options.ts';
import type { ResizeAction } from '../pod-action.ts';
import { resourcesOf } from './allocation.ts';
import type { PodResizes } from './pod-resizes.ts';
import { type CpuSettings, runtimeFigures, shrinksMemoryTo } from './resize-actions.ts';

export interface ActuateParts {
  readonly runtime: Pick<ContainerRuntime, 'updateContainerResources' | 'updatePodSandboxResources'>;
  readonly cgroups: Pick<PodCgroups, 'ensurePod' | 'containerMemory'>;
  readonly resizes: PodResizes;
  readonly config: CpuSettings;
  readonly log: PodsLog;
}

/** Of best effort, as in the kubelet: the cgroup bounds the pod in any case. */
async function reportSandboxResources(sandboxId: SandboxId | undefined, pod: Pod, parts: ActuateParts): Promise<void> {
  if (sandboxId === undefined) return;
  try {
    await parts.runtime.updatePodSandboxResources(sandboxId, pod);
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    const { namespace, name, uid } = pod.metadata;
    const about = { pod: `${namespace}/${name}`, podUID: uid, sandboxID: sandboxId, error: error.message };
    parts.log('warn', 'Failed to notify runtime for UpdatePodSandboxResources', about);
  }
}

/** Rejects with the first failure; updates before it stay and are recorded. */
export async function actuateResize(
  pod: Pod,
  { updates, sandboxId }: ResizeAction,
  parts: ActuateParts,
): Promise<void> {
  const { runtime, cgroups, resizes, config } = parts;
  const { uid } = pod.metadata;
  // An allocation that a crash could lose must not be actuated.
  await resizes.saved();
  const [before, room] = [resizes.actuatedPod(pod), resizes.room(pod)];
  await cgroups.ensurePod(room);
  resizes.cgroupEnlarged(pod);
  if (!sameJson(before.spec, room.spec)) await reportSandboxResources(sandboxId, room, parts);
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
  if (!sameJson(room.spec, pod.spec)) await reportSandboxResources(sandboxId, pod, parts);
  resizes.completed(pod);
}
