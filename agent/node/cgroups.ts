// The cgroups above containers: kubepods, the QoS classes and one per pod, with the limits of the API. Containers'
// own cgroups are the runtime's. What the figures are is decided by pure functions (cgroup-limits.ts); how they are
// written is the hierarchy's business (cgroups-v1.ts, cgroups-v2.ts).

import { setImmediate } from 'node:timers/promises';
import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import {
  type CgroupLayout,
  cgroupPath,
  kubepodsName,
  podName,
  podUIDOfCgroup,
  qosName,
} from '../model/cgroup-names.ts';
import { podQOSClass, podRequests, type QOSClass } from '../model/pod-resources.ts';
import { podUID } from '../model/pod-uid.ts';
import type { PodCgroups } from '../ports/node.ts';
import type { ContainerId } from '../ports/runtime.ts';
import type { CgroupHierarchy } from './cgroup-hierarchy.ts';
import { burstableLimits, type CgroupLimits, nodeLimits, podCgroupLimits } from './cgroup-limits.ts';
import { CgroupsV1, findV1Hierarchies, hasSwapV1 } from './cgroups-v1.ts';
import { CgroupsV2, hasSwapController } from './cgroups-v2.ts';
import type { SystemdSlices } from './systemd-slices.ts';

export interface NodeCgroupsOptions {
  readonly layout: CgroupLayout;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** What all pods together may use: capacity less kubeReserved and systemReserved. */
  readonly allocatable: { readonly cpuMilli: number; readonly memoryBytes: number };
  /** enforceNodeAllocatable contains "pods"; default true. */
  readonly enforceNodeAllocatable?: boolean;
  readonly cpuCFSQuota: boolean;
  readonly cpuCFSQuotaPeriodUs: number;
  /** Most processes a pod may have; -1 is no limit. */
  readonly podPidsLimit: number;
  /** Where cgroups are mounted; /sys/fs/cgroup. */
  readonly mountPoint?: string;
  /** Where driver is systemd: registers every cgroup as a slice. Without it slices are directories with their names. */
  readonly slices?: SystemdSlices;
}

export interface NodeCgroups extends PodCgroups {
  readonly version: 1 | 2;
  /** Whether the kernel limits a cgroup's swap (memory.swap.max of v2, memory.memsw.limit_in_bytes of v1). */
  readonly swapController: boolean;
  /** Makes kubepods and the QoS classes. Once at the start. */
  ensureNode(): Promise<void>;
  /** Limits an existing cgroup of another program. Rejects when there is none. */
  limitExisting(path: string, limits: CgroupLimits): Promise<void>;
  /** Removes kubepods with everything in it, and an emptied cgroupRoot; for a lab that is torn down. */
  removeNode(): Promise<void>;
}

const CLASSES: readonly QOSClass[] = ['Guaranteed', 'Burstable', 'BestEffort'];
/** How long killed processes may take to leave their cgroup, and the longest wait between checks. ms. */
const REMOVE_LIMIT_MS = 10_000;
const REMOVE_STEP_MS = 50;

export function createNodeCgroups(options: NodeCgroupsOptions): NodeCgroups {
  const { layout, tracer, clock, slices } = options;
  const mountPoint = options.mountPoint ?? '/sys/fs/cgroup';
  const v1 = findV1Hierarchies(mountPoint);
  const hierarchy: CgroupHierarchy = v1.length > 0 ? new CgroupsV1(v1) : new CgroupsV2(mountPoint);
  const classPath = (qos: QOSClass): string => cgroupPath(layout, qosName(layout, qos));
  const podPath = (uid: string, qos: QOSClass): string => cgroupPath(layout, podName(layout, uid, qos));
  /** Millicores requested by each burstable pod: their sum is what the class as a whole gets. */
  const burstable = new Map<string, number>();
  let writtenShares = -1;
  let updating: Promise<void> = Promise.resolve();

  /** systemd first: it removes a directory that is no unit of its own as a leftover. */
  async function ensure(path: string, limits: CgroupLimits): Promise<void> {
    if (slices !== undefined) await slices.ensure(path, limits);
    // Written here as well: systemd supports fewer controllers than pods need, and applies limits after it has replied.
    hierarchy.ensure(path, limits);
  }

  /** One after the other, each with the sum of its own moment: an older figure must not be written last. */
  function updateBurstable(): Promise<void> {
    const update = async (): Promise<void> => {
      const limits = burstableLimits([...burstable.values()]);
      if (limits.cpuShares === writtenShares) return;
      await ensure(classPath('Burstable'), limits);
      writtenShares = limits.cpuShares ?? -1;
    };
    // The previous update's error goes to its own caller.
    updating = updating.then(update, update);
    return updating;
  }

  /** Ends the units of a tree, those below first. A directory is a slice's, a scope's of the runtime, or without a unit. */
  async function stopSlices(path: string): Promise<void> {
    if (slices === undefined) return;
    const names = hierarchy.children(path).filter((name) => name.endsWith('.slice'));
    for (const name of names) await stopSlices(`${path}/${name}`);
    await slices.stop(path);
  }

  async function removeTree(path: string): Promise<void> {
    // Mostly nothing is left in it, and a look for processes costs more. A unit is for systemd to end.
    if (slices === undefined && hierarchy.remove(path)) return;
    hierarchy.kill(path);
    await stopSlices(path);
    // A killed process leaves its cgroup when the kernel has torn it down: mostly at the first check or the second.
    const look = (): boolean => {
      hierarchy.kill(path);
      return hierarchy.remove(path);
    };
    if (await poll(look, { clock, firstMs: 1, everyMs: REMOVE_STEP_MS, limitMs: REMOVE_LIMIT_MS })) return;
    const pids = hierarchy.processes(path);
    throw new Error(`cgroup ${path} is still in use after ${REMOVE_LIMIT_MS} ms by pids ${pids.join(' ')}`);
  }

  return {
    version: hierarchy.version,
    swapController: v1.length > 0 ? hasSwapV1(v1) : hasSwapController(mountPoint),

    ensureNode: () =>
      tracer.span('cgroup', 'ensureNode', { path: cgroupPath(layout, kubepodsName(layout)) }, async () => {
        const enforced = options.enforceNodeAllocatable ?? true;
        await ensure(classPath('Guaranteed'), nodeLimits(options.allocatable, enforced));
        await ensure(classPath('BestEffort'), { cpuShares: 2 });
        await updateBurstable();
      }),

    limitExisting: (path, limits) =>
      tracer.span('cgroup', 'limitExisting', { path }, async () => {
        if (!hierarchy.exists(path)) throw new Error(`"${path}" cgroup does not exist`);
        await ensure(path, limits);
      }),

    ensurePod(pod: Pod) {
      const { uid } = pod.metadata;
      const qos = podQOSClass(pod);
      const path = podPath(uid, qos);
      return tracer.span('cgroup', 'ensurePod', { path }, async (span) => {
        span.set({ isNew: !hierarchy.exists(path) });
        // A dozen directories made in one go: other work that begins now (a token request) is sent first.
        await setImmediate();
        if (qos === 'Burstable') {
          burstable.set(uid, podRequests(pod, { withOverhead: true }).cpuMilli);
          await updateBurstable();
        }
        await ensure(path, podCgroupLimits(pod, options));
      });
    },

    async containerMemory(pod: Pod, id: ContainerId) {
      const path = podPath(pod.metadata.uid, podQOSClass(pod));
      // The runtime names the cgroup: the id alone, or cri-containerd-<id>.scope.
      const own = hierarchy.children(path).find((name) => name.includes(id));
      return own === undefined ? undefined : hierarchy.memoryBytes(`${path}/${own}`);
    },

    removePod: (uid) =>
      tracer.span('cgroup', 'removePod', { uid }, async () => {
        for (const qos of CLASSES) {
          const path = podPath(uid, qos);
          // A pod is of one class; only that slice is removed.
          if (hierarchy.exists(path)) await removeTree(path);
        }
        if (burstable.delete(uid)) await updateBurstable();
      }),

    async listPods() {
      const uids = CLASSES.flatMap((qos) => hierarchy.children(classPath(qos))).map((name) =>
        podUIDOfCgroup(layout, name),
      );
      return [...new Set(uids)].filter((uid) => uid !== undefined).map(podUID);
    },

    removeNode: () =>
      tracer.span('cgroup', 'removeNode', {}, async () => {
        const path = cgroupPath(layout, kubepodsName(layout));
        await removeTree(path);
        const own = path.slice(0, path.lastIndexOf('/'));
        // A cgroupRoot with other children is kept.
        if (own === '' || hierarchy.children(own).length > 0) return;
        if (hierarchy.exists(own)) await slices?.stop(own);
        hierarchy.remove(own);
      }),
  };
}
