// Actuates allocated resources: enlarges the pod's cgroup, updates the running containers, then sets the cgroup to its final
// size. It decides nothing; after a failure the next decision continues.

import type { Pod } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import type { PodCgroups } from '../../ports/node.ts';
import type { ContainerRuntime, SandboxId } from '../../ports/runtime.ts';
import { RuntimeError } from '../../ports/runtime.ts';
import type { PodsLog } from '../options.ts';
import type { ResizeAction } from '../pod-action.ts';
import { resourcesOf } from './allocation.ts';
import type { PodResizes } from './pod-resizes.ts';
import { type CpuSettings, memoryRefusal, shrinksMemoryTo, updateFigures } from './resize-actions.ts';

export interface ActuateParts {
  readonly runtime: Pick<ContainerRuntime, 'updateContainerResources' | 'updatePodSandboxResources'>;
  readonly cgroups: Pick<PodCgroups, 'ensurePod' | 'containerMemory'>;
  readonly resizes: PodResizes;
  readonly config: CpuSettings;
  readonly log: PodsLog;
}

type Update = ResizeAction['updates'][number];

/** Of best effort, as in the kubelet: the cgroup bounds the pod in any case. Nothing to do where the resources are as `before`. */
async function reportSandboxResources(
  sandboxId: SandboxId | undefined,
  before: Pod,
  pod: Pod,
  parts: ActuateParts,
): Promise<void> {
  if (sandboxId === undefined || sameJson(before.spec, pod.spec)) return;
  try {
    await parts.runtime.updatePodSandboxResources(sandboxId, pod);
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    const { namespace, name, uid } = pod.metadata;
    const about = { pod: `${namespace}/${name}`, podUID: uid, sandboxID: sandboxId, error: error.message };
    parts.log('warn', 'Failed to notify runtime for UpdatePodSandboxResources', about);
  }
}

/** Rejects, with nothing changed, where the container uses more memory than it may have. */
async function checkMemory(pod: Pod, { instance, container, from }: Update, { cgroups }: ActuateParts): Promise<void> {
  const bytes = shrinksMemoryTo(from, resourcesOf(container));
  if (bytes === undefined) return;
  const refusal = memoryRefusal(container.name, bytes, await cgroups.containerMemory?.(pod, instance.id));
  if (refusal !== undefined) throw new Error(refusal);
}

async function updateContainer({ uid }: Pod['metadata'], update: Update, parts: ActuateParts): Promise<void> {
  const { runtime, resizes, config } = parts;
  const { instance, container, from } = update;
  const to = resourcesOf(container);
  // What a call with a lost response may have changed is set back as well.
  const figures = updateFigures([...resizes.uncertain(uid, container.name, instance.id), from], to, config);
  if (figures !== undefined) {
    resizes.updating(uid, container.name, instance.id, to);
    await runtime.updateContainerResources(instance.id, figures);
  }
  resizes.updated(uid, container.name, instance.id, to);
}

/** Rejects with the first failure; updates before it stay and are recorded. */
export async function actuateResize(
  pod: Pod,
  { updates, sandboxId }: ResizeAction,
  parts: ActuateParts,
): Promise<void> {
  const { cgroups, resizes } = parts;
  // An allocation that a crash could lose must not be actuated.
  await resizes.saved();
  const [before, room] = [resizes.actuatedPod(pod), resizes.room(pod)];
  await cgroups.ensurePod(room);
  resizes.cgroupEnlarged(pod);
  await reportSandboxResources(sandboxId, before, room, parts);
  for (const update of updates) {
    await checkMemory(pod, update, parts);
    await updateContainer(pod.metadata, update, parts);
  }
  if (resizes.unfinished(pod.metadata.uid)) return;
  await cgroups.ensurePod(pod);
  await reportSandboxResources(sandboxId, room, pod, parts);
  resizes.completed(pod);
}
