// The cgroups above containers: kubepods, the QoS classes and one per pod, with the limits of the API. Containers'
// own cgroups are the runtime's. What the figures are is decided by pure functions (cgroup-limits.ts); how they are
// written is the hierarchy's business (cgroups-v1.ts, cgroups-v2.ts; cgroup-driver.ts with systemd).

import { setImmediate } from 'node:timers/promises';
import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
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
import type { ContainerId, PodUID } from '../ports/runtime.ts';
import { CgroupDriver } from './cgroup-driver.ts';
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

export function createNodeCgroups(options: NodeCgroupsOptions): NodeCgroups {
  const mountPoint = options.mountPoint ?? '/sys/fs/cgroup';
  const v1 = findV1Hierarchies(mountPoint);
  return v1.length > 0
    ? new KubepodsCgroups(options, new CgroupsV1(v1), hasSwapV1(v1))
    : new KubepodsCgroups(options, new CgroupsV2(mountPoint), hasSwapController(mountPoint));
}

class KubepodsCgroups implements NodeCgroups {
  readonly version: 1 | 2;
  readonly swapController: boolean;
  readonly #options: NodeCgroupsOptions;
  readonly #hierarchy: CgroupHierarchy;
  readonly #driver: CgroupDriver;
  /** Millicores requested by each burstable pod: their sum is what the class as a whole gets. */
  readonly #burstable = new Map<string, number>();
  #writtenShares = -1;
  #updating: Promise<void> = Promise.resolve();

  constructor(options: NodeCgroupsOptions, hierarchy: CgroupHierarchy, swapController: boolean) {
    this.#options = options;
    this.#hierarchy = hierarchy;
    this.#driver = new CgroupDriver(hierarchy, options.slices, options.clock);
    this.version = hierarchy.version;
    this.swapController = swapController;
  }

  ensureNode(): Promise<void> {
    const { tracer, allocatable, enforceNodeAllocatable = true } = this.#options;
    return tracer.span('cgroup', 'ensureNode', { path: this.#kubepodsPath() }, async () => {
      await this.#driver.ensure(this.#classPath('Guaranteed'), nodeLimits(allocatable, enforceNodeAllocatable));
      await this.#driver.ensure(this.#classPath('BestEffort'), { cpuShares: 2 });
      await this.#updateBurstable();
    });
  }

  limitExisting(path: string, limits: CgroupLimits): Promise<void> {
    return this.#options.tracer.span('cgroup', 'limitExisting', { path }, async () => {
      if (!this.#hierarchy.exists(path)) throw new Error(`"${path}" cgroup does not exist`);
      await this.#driver.ensure(path, limits);
    });
  }

  ensurePod(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    const qos = podQOSClass(pod);
    const path = this.#podPath(uid, qos);
    return this.#options.tracer.span('cgroup', 'ensurePod', { path }, async (span) => {
      span.set({ isNew: !this.#hierarchy.exists(path) });
      // A dozen directories made in one go: other work that begins now (a token request) is sent first.
      await setImmediate();
      if (qos === 'Burstable') {
        this.#burstable.set(uid, podRequests(pod, { withOverhead: true }).cpuMilli);
        await this.#updateBurstable();
      }
      await this.#driver.ensure(path, podCgroupLimits(pod, this.#options));
    });
  }

  async containerMemory(pod: Pod, id: ContainerId): Promise<number | undefined> {
    const path = this.#podPath(pod.metadata.uid, podQOSClass(pod));
    // The runtime names the cgroup: the id alone, or cri-containerd-<id>.scope.
    const own = this.#hierarchy.children(path).find((name) => name.includes(id));
    return own === undefined ? undefined : this.#hierarchy.memoryBytes(`${path}/${own}`);
  }

  removePod(uid: PodUID): Promise<void> {
    return this.#options.tracer.span('cgroup', 'removePod', { uid }, async () => {
      for (const qos of CLASSES) {
        const path = this.#podPath(uid, qos);
        // A pod is of one class; only that slice is removed.
        if (this.#hierarchy.exists(path)) await this.#driver.remove(path);
      }
      if (this.#burstable.delete(uid)) await this.#updateBurstable();
    });
  }

  async listPods(): Promise<readonly PodUID[]> {
    const names = CLASSES.flatMap((qos) => this.#hierarchy.children(this.#classPath(qos)));
    const uids = new Set(names.map((name) => podUIDOfCgroup(this.#options.layout, name)));
    return [...uids].filter((uid) => uid !== undefined).map(podUID);
  }

  removeNode(): Promise<void> {
    return this.#options.tracer.span('cgroup', 'removeNode', {}, async () => {
      const path = this.#kubepodsPath();
      await this.#driver.remove(path);
      const cgroupRoot = path.slice(0, path.lastIndexOf('/'));
      // One with other children is kept.
      if (cgroupRoot !== '') await this.#driver.removeEmpty(cgroupRoot);
    });
  }

  #kubepodsPath(): string {
    return cgroupPath(this.#options.layout, kubepodsName(this.#options.layout));
  }

  #classPath(qos: QOSClass): string {
    return cgroupPath(this.#options.layout, qosName(this.#options.layout, qos));
  }

  #podPath(uid: string, qos: QOSClass): string {
    return cgroupPath(this.#options.layout, podName(this.#options.layout, uid, qos));
  }

  /** One after the other, each with the sum of its own moment: an older figure must not be written last. */
  #updateBurstable(): Promise<void> {
    const update = async (): Promise<void> => {
      const limits = burstableLimits([...this.#burstable.values()]);
      if (limits.cpuShares === this.#writtenShares) return;
      await this.#driver.ensure(this.#classPath('Burstable'), limits);
      this.#writtenShares = limits.cpuShares ?? -1;
    };
    // The previous update's error goes to its own caller.
    this.#updating = this.#updating.then(update, update);
    return this.#updating;
  }
}
