// What pods use of memory, processes and disk, measured only when needed: under pressure, or for pods
// that have a limit on local storage. Decides nothing.

import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { setOwn } from '../../lib/own-property.ts';
import { type CgroupLayout, cgroupPath, podName } from '../model/cgroup-names.ts';
import { podQOSClass } from '../model/pod-resources.ts';
import type { ContainerStats } from '../ports/runtime.ts';
import { type CgroupFiles, taskCount, workingSetBytes } from './cgroup-usage.ts';
import { diskUsage } from './disk-usage.ts';
import type { ContainerUsage, DiskUsage, PodUsage, PodUsages } from './types.ts';

export interface PodUsageOptions {
  readonly cgroups: CgroupFiles;
  readonly layout: CgroupLayout;
  /** Every container of the runtime; those of other pods are skipped. */
  readonly containerStats: () => Promise<readonly ContainerStats[]>;
  /** Where a pod's files are. */
  readonly paths: PodPaths;
}

export interface PodPaths {
  /** The directory of all volumes of a plugin: pods/<uid>/volumes/kubernetes.io~<plugin>. */
  readonly volumes: (pod: Pod, plugin: string) => string;
  /** The directory with one directory per container. */
  readonly logs: (pod: Pod) => string;
  readonly etcHosts: (pod: Pod) => string;
}

/** What a round needs to know; disks cost a walk over every file. */
export interface Wanted {
  readonly disk: boolean;
}

export class PodUsageReader {
  readonly #options: PodUsageOptions;

  constructor(options: PodUsageOptions) {
    this.#options = options;
  }

  async read(pods: readonly Pod[], wanted: Wanted): Promise<PodUsages> {
    const stats = newestOf(await this.#options.containerStats());
    const usages = new Map<string, PodUsage>();
    // One pod after the other: the disk is shared, and nothing waits for this.
    for (const pod of pods) {
      const { uid } = pod.metadata;
      usages.set(uid, await this.#readPod(pod, stats.get(uid) ?? new Map(), wanted));
    }
    return usages;
  }

  async #readPod(pod: Pod, stats: ReadonlyMap<string, ContainerStats>, wanted: Wanted): Promise<PodUsage> {
    const { cgroups, layout } = this.#options;
    const path = cgroupPath(layout, podName(layout, pod.metadata.uid, podQOSClass(pod)));
    const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map(({ name }) => name);
    return {
      workingSetBytes: workingSetBytes(cgroups, path),
      processes: taskCount(cgroups, path),
      containers: await Promise.all(names.map((name) => this.#container(pod, name, stats.get(name), wanted))),
      volumes: wanted.disk ? await this.#volumes(pod) : {},
      files: wanted.disk ? await diskUsage(this.#options.paths.etcHosts(pod)) : undefined,
    };
  }

  async #container(pod: Pod, name: string, stats: ContainerStats | undefined, wanted: Wanted): Promise<ContainerUsage> {
    return {
      name,
      workingSetBytes: stats?.workingSetBytes,
      rootfs: stats?.writableLayer,
      logs: wanted.disk ? await diskUsage(join(this.#options.paths.logs(pod), name)) : undefined,
    };
  }

  async #volumes(pod: Pod): Promise<Record<string, DiskUsage>> {
    const { paths } = this.#options;
    const used: Record<string, DiskUsage> = {};
    for (const volume of pod.spec.volumes ?? []) {
      const onDisk = volume.emptyDir !== undefined && volume.emptyDir.medium !== 'Memory';
      const plugin = onDisk ? 'empty-dir' : volume.configMap === undefined ? undefined : 'configmap';
      if (plugin === undefined) continue;
      const usage = await diskUsage(join(paths.volumes(pod, plugin), volume.name));
      if (usage !== undefined) setOwn(used, volume.name, usage);
    }
    return used;
  }
}

/** The newest instance of each container, by pod and name: what dead ones left behind is on its way out. */
function newestOf(all: readonly ContainerStats[]): ReadonlyMap<string, ReadonlyMap<string, ContainerStats>> {
  const pods = new Map<string, Map<string, ContainerStats>>();
  for (const stats of all) {
    const containers = pods.get(stats.podUID) ?? new Map<string, ContainerStats>();
    const known = containers.get(stats.name);
    if (known === undefined || known.restartCount < stats.restartCount) containers.set(stats.name, stats);
    pods.set(stats.podUID, containers);
  }
  return pods;
}
