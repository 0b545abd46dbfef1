// The pages about what the machine and its pods use. Reads when a page is asked for and not otherwise; only the summary waits:
// for the runtime, for disks, and for a second reading of a CPU counter that has no first one yet.

import type { Pod } from '../../client/types.ts';
import { type Clock, type EpochMs, epochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { singleFlight } from '../../lib/single-flight.ts';
import type { ContainerStats } from '../ports/runtime.ts';
import type { StatsPods, UsagePages } from '../ports/stats.ts';
import type { ReadVolumeStats } from '../ports/volume-stats.ts';
import { cadvisorPage, type MachineInfo } from './cadvisor-page.ts';
import { type FileSystem, fileSystemOf, type PodDisks } from './disk.ts';
import { resourcePage } from './resource-page.ts';
import type { NodeSample, Sample, Sampler } from './sampler.ts';
import { type SummaryDisks, type SystemContainer, type SystemSample, statsSummary } from './summary.ts';

/** Between two readings of a CPU counter when there is no earlier one. ms. */
const SECOND_READING_MS = 250;

export interface UsagePagesOptions {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly sampler: Sampler;
  readonly machine: MachineInfo;
  readonly pods: StatsPods;
  /** Cgroups of the agent, the runtime and the rest, where they are known; the pods' own is always there. */
  readonly system: readonly { readonly name: SystemContainer; readonly path: string; readonly startTime?: EpochMs }[];
  readonly disks: PodDisks;
  /** Of CRI. */
  readonly containerStats: () => Promise<readonly ContainerStats[]>;
  readonly imageFs: () => Promise<
    { readonly mountpoint: string; readonly usedBytes: number; readonly inodesUsed: number } | undefined
  >;
  readonly volumes: ReadVolumeStats;
  readonly tasks: () => { readonly max: number; readonly running: number } | undefined;
  readonly clock: Clock;
  readonly onTrouble: (message: string) => void;
}

export class StatsPages implements UsagePages {
  readonly #options: UsagePagesOptions;
  /** Two callers at once get one summary. */
  readonly #whole = singleFlight(() => this.#summary(false));
  readonly #short = singleFlight(() => this.#summary(true));

  constructor(options: UsagePagesOptions) {
    this.#options = options;
  }

  summary(cpuAndMemory: boolean): Promise<object> {
    return cpuAndMemory ? this.#short() : this.#whole();
  }

  async resource(): Promise<string> {
    return resourcePage(this.#take('/metrics/resource', () => this.#options.sampler.take('resource')));
  }

  async cadvisor(): Promise<string> {
    const { sampler, machine } = this.#options;
    return cadvisorPage(
      this.#take('/metrics/cadvisor', () => sampler.take('all')),
      machine,
    );
  }

  /** A page of metrics says itself that there are no figures; the log says why. */
  #take(page: string, take: () => NodeSample): NodeSample | undefined {
    try {
      return take();
    } catch (error) {
      this.#options.onTrouble(`${page}: ${errorMessage(error)}`);
      return undefined;
    }
  }

  async #summary(cpuAndMemory: boolean): Promise<object> {
    const { nodeName, machine, clock, sampler } = this.#options;
    const depth = cpuAndMemory ? 'short' : 'summary';
    const disks = cpuAndMemory ? undefined : await this.#disks();
    let node = sampler.take(depth);
    if (lacksRates(node)) {
      await clock.sleep(SECOND_READING_MS);
      node = sampler.take(depth);
    }
    const bootTime = epochMs(machine.bootTime * 1000);
    const system = this.#system(node, depth);
    return statsSummary({ nodeName, node, bootTime, system, ...(disks === undefined ? {} : { disks }) });
  }

  #system(node: NodeSample, depth: 'short' | 'summary'): readonly SystemSample[] {
    const { system, sampler } = this.#options;
    const pods: readonly SystemSample[] = node.kubepods === undefined ? [] : [{ name: 'pods', sample: node.kubepods }];
    const others = system.flatMap(({ name, path, startTime }): SystemSample[] => {
      const sample: Sample | undefined = sampler.sample(path, depth);
      return sample === undefined ? [] : [{ name, sample, ...(startTime === undefined ? {} : { startTime }) }];
    });
    return [...pods, ...others];
  }

  async #disks(): Promise<SummaryDisks> {
    const { rootDir, pods, disks, containerStats, volumes, tasks } = this.#options;
    const all: readonly Pod[] = pods.listPods();
    const [rootFs, imageFs, containers, podDisks, volumeFigures] = await Promise.all([
      fileSystemOf(rootDir),
      this.#imageFs(),
      containerStats(),
      disks.read(all),
      volumes(),
    ]);
    if (rootFs === undefined) throw new Error(`failed to get rootFs stats: there is no ${rootDir}`);
    return { rootFs, imageFs, containers, pods: podDisks, volumes: volumeFigures, tasks: tasks() };
  }

  async #imageFs(): Promise<FileSystem | undefined> {
    const images = await this.#options.imageFs();
    if (images === undefined) return undefined;
    const room = await fileSystemOf(images.mountpoint);
    return room === undefined ? undefined : { ...room, usedBytes: images.usedBytes, inodesUsed: images.inodesUsed };
  }
}

/** Whether a cgroup has been read for the first time, or not lately. */
function lacksRates({ root, pods }: NodeSample): boolean {
  return [root, ...pods.flatMap(({ containers }) => containers.map(({ sample }) => sample))].some(
    (sample) => sample !== undefined && sample.nanoCores === undefined,
  );
}
