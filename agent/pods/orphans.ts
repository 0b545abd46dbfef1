// Pods that are on this machine although no source has them: left by an agent that was killed, or force-deleted
// while no agent ran. Found in the runtime, on disk and among the cgroups, and removed from all three.

import { errorMessage } from '../../lib/errors.ts';
import type { PodRef, PodSnapshot, PodUID } from '../ports/runtime.ts';
import { isAlive, MINIMUM_GRACE_SECONDS } from './termination.ts';
import type { WorkerContext } from './worker-context.ts';

type OrphanContext = Pick<WorkerContext, 'runtime' | 'volumes' | 'cgroups' | 'tracer' | 'log'>;

export interface PodsOnMachine {
  /** Every pod that something on this machine belongs to. Names are known only to the runtime. */
  readonly onMachine: ReadonlyMap<PodUID, PodRef>;
  /** Those with a live sandbox or container. */
  readonly running: readonly PodUID[];
}

export async function listPodsOnMachine({ runtime, volumes, cgroups }: OrphanContext): Promise<PodsOnMachine> {
  const [inRuntime, onDisk, inCgroups] = await Promise.all([
    runtime.listPods(),
    volumes.listPods(),
    cgroups.listPods(),
  ]);
  const pods = new Map<PodUID, PodRef>();
  for (const uid of [...onDisk, ...inCgroups]) pods.set(uid, { uid, namespace: '', name: '' });
  for (const { pod } of inRuntime) pods.set(pod.uid, pod);
  const live = inRuntime.filter(
    ({ sandboxes, containers }) => sandboxes.some(({ state }) => state === 'ready') || containers.some(isAlive),
  );
  return { onMachine: pods, running: live.map(({ pod }) => pod.uid) };
}

/** Stops and removes everything of a pod. Idempotent; rejects with the first failure. */
export async function removeOrphan(pod: PodRef, context: OrphanContext): Promise<void> {
  const { runtime, volumes, cgroups, tracer } = context;
  await tracer.within({ pod, cause: 'no source has the pod' }, () =>
    tracer.span('worker', 'removeOrphan', {}, async () => {
      const snapshot: PodSnapshot = await runtime.observePod(pod);
      const alive = snapshot.containers.filter(isAlive);
      await Promise.all(alive.map(({ id }) => runtime.stopContainer(id, MINIMUM_GRACE_SECONDS)));
      await Promise.all(snapshot.sandboxes.map(({ id }) => runtime.stopPodSandbox(id)));
      await Promise.all(snapshot.containers.map(({ id }) => runtime.removeContainer(id)));
      await Promise.all(snapshot.sandboxes.map(({ id }) => runtime.removePodSandbox(id)));
      await volumes.unmountAll(pod);
      await cgroups.removePod(pod.uid);
    }),
  );
}

/**
 * Removes every pod on the machine that `isKept` does not know. One that resists is reported and left for next time.
 * `seenRunning` is called for every kept pod of which something runs. Resolves with those that resisted.
 */
export async function removeOrphans(
  context: OrphanContext,
  isKept: (uid: PodUID) => boolean,
  seenRunning: (uid: PodUID) => void,
): Promise<ReadonlySet<string>> {
  const { onMachine, running } = await listPodsOnMachine(context);
  const orphans = [...onMachine.values()].filter(({ uid }) => !isKept(uid));
  for (const uid of running) if (isKept(uid)) seenRunning(uid);
  const left = new Set<string>();
  await Promise.all(
    orphans.map(async (pod) => {
      try {
        await removeOrphan(pod, context);
        context.log('info', 'Orphaned pod removed', { podUID: pod.uid, pod: `${pod.namespace}/${pod.name}` });
      } catch (error) {
        left.add(pod.uid);
        const fields = { podUID: pod.uid, pod: `${pod.namespace}/${pod.name}`, err: errorMessage(error) };
        context.log('warn', 'Failed to remove orphaned pod, will retry', fields);
      }
    }),
  );
  return left;
}
