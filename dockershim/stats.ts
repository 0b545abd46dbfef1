// CRI's stats of containers and sandboxes, from Docker's and, for a pod's network, from the kernel. Keeps the last reading
// of each container's CPU time, for rates, and of the writable layers' sizes, which Docker has to walk for.

import { readFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import type { ContainerStats as DockerStats } from 'dockerode';
import { type Clock, elapsedMs, type MonotonicMs } from '../lib/clock.ts';
import { isErrno } from '../lib/errors.ts';
import { singleFlight } from '../lib/single-flight.ts';
import type { ContainerStats } from '../proto/gen/runtime/v1/ContainerStats.ts';
import type { PodSandboxStats } from '../proto/gen/runtime/v1/PodSandboxStats.ts';
import type { Containers } from './containers.ts';
import type { Handlers, Received, Reply } from './cri-types.ts';
import type { Engine } from './engine.ts';
import { CriError, isNotFound } from './errors.ts';
import { hasId, hasLabels } from './filters.ts';
import { type ContainerRecord, decodeRecord, KIND_LABEL, SANDBOX_LABEL, type SandboxRecord } from './records.ts';
import type { Sandboxes } from './sandboxes.ts';
import { nanosAt } from './time.ts';
import type { DockerFacts } from './translate/facts.ts';
import { isHostNetwork } from './translate/sandbox.ts';
import { type CpuReading, cpuOf, memoryOf, nanoCores, parseNetDev, sumOf } from './translate/stats.ts';

/** containerd reads the sizes of its snapshots this often. ms. */
const SIZES_FOR_MS = 10_000;

export interface StatsParts {
  readonly engine: Engine;
  readonly containers: Containers;
  readonly sandboxes: Sandboxes;
  readonly facts: () => Promise<DockerFacts>;
  readonly clock: Clock;
}

export class Stats {
  readonly #parts: StatsParts;
  readonly #readings = new Map<string, CpuReading>();
  #sizes: { readonly at: MonotonicMs; readonly bytes: ReadonlyMap<string, number> } | undefined;

  constructor(parts: StatsParts) {
    this.#parts = parts;
  }

  get handlers(): Handlers {
    return {
      ContainerStats: (request) => this.#one(request),
      ListContainerStats: (request) => this.#list(request),
      PodSandboxStats: (request) => this.#pod(request),
      ListPodSandboxStats: (request) => this.#pods(request),
    };
  }

  readonly #readSizes = singleFlight(async (): Promise<ReadonlyMap<string, number>> => {
    const { engine, clock } = this.#parts;
    const filters = JSON.stringify({ label: [`${KIND_LABEL}=container`] });
    const listed = await engine.call('ContainerList', { size: true }, (docker) =>
      docker.listContainers({ all: true, size: true, filters }),
    );
    const bytes = new Map(
      listed.map((each): [string, number] => {
        const size: unknown = Reflect.get(each, 'SizeRw');
        return [each.Id, typeof size === 'number' ? size : 0];
      }),
    );
    for (const id of this.#readings.keys()) if (!bytes.has(id)) this.#readings.delete(id);
    this.#sizes = { at: clock.monotonic(), bytes };
    return bytes;
  });

  async #sizeOf(id: string): Promise<number> {
    const known = this.#sizes;
    const fresh = known !== undefined && elapsedMs(known.at, this.#parts.clock.monotonic()) < SIZES_FOR_MS;
    return (fresh ? known.bytes : await this.#readSizes()).get(id) ?? 0;
  }

  #read(id: string): Promise<DockerStats> {
    return this.#parts.engine.call('ContainerStats', { container: id }, (docker) =>
      docker.getContainer(id).stats({ stream: false, 'one-shot': true }),
    );
  }

  #figures(id: string, stats: DockerStats) {
    const timestamp = nanosAt(this.#parts.clock);
    const reading = { at: BigInt(timestamp), used: stats.cpu_stats.cpu_usage.total_usage };
    const rate = nanoCores(this.#readings.get(id), reading);
    this.#readings.set(id, reading);
    return {
      cpu: cpuOf(stats, timestamp, rate),
      memory: memoryOf(stats, timestamp, totalmem()),
      processes: stats.pids_stats?.current ?? 0,
    };
  }

  /** Undefined for one that does not run, or is gone. */
  async #stats(
    id: string,
    record: ContainerRecord,
  ): Promise<(ContainerStats & { readonly processes: number }) | undefined> {
    let stats: DockerStats;
    try {
      stats = await this.#read(id);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
    const { cpu, memory, processes } = this.#figures(id, stats);
    const { rootDir } = await this.#parts.facts();
    return {
      attributes: { id, metadata: record.metadata, labels: record.labels, annotations: record.annotations },
      cpu,
      memory,
      writable_layer: {
        timestamp: nanosAt(this.#parts.clock),
        fs_id: { mountpoint: rootDir },
        used_bytes: { value: await this.#sizeOf(id) },
      },
      processes,
    };
  }

  async #one({ container_id }: Received<'ContainerStats'>): Promise<Reply<'ContainerStats'>> {
    const { inspected, record } = await this.#parts.containers.require(container_id);
    const stats = inspected.State.Running ? await this.#stats(inspected.Id, record) : undefined;
    if (stats === undefined) throw new CriError('NOT_FOUND', `no running task of container "${container_id}"`);
    return { stats };
  }

  async #running(labels: readonly string[], wanted: (id: string, record: ContainerRecord) => boolean) {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=container`, ...labels]);
    const all = listed.flatMap(({ Id, Labels, State }) => {
      const record = decodeRecord(Labels);
      return State === 'running' && record?.kind === 'container' && wanted(Id, record) ? [{ Id, record }] : [];
    });
    const stats = await Promise.all(all.map(({ Id, record }) => this.#stats(Id, record)));
    return stats.filter((each) => each !== undefined);
  }

  async #list({ filter }: Received<'ListContainerStats'>): Promise<Reply<'ListContainerStats'>> {
    const stats = await this.#running(
      [],
      (id, record) =>
        hasId(id, filter?.id) &&
        hasId(record.sandboxId, filter?.pod_sandbox_id) &&
        hasLabels(record.labels, filter?.label_selector),
    );
    return { stats };
  }

  async #podStats(id: string, pid: number, record: SandboxRecord): Promise<PodSandboxStats> {
    const timestamp = nanosAt(this.#parts.clock);
    const containers = await this.#running([`${SANDBOX_LABEL}=${id}`], () => true);
    const pause = this.#figures(id, await this.#read(id));
    const all: readonly ContainerStats[] = [...containers, pause];
    const sum = (pick: (stats: ContainerStats) => unknown) => sumOf(all, pick) ?? null;
    const interfaces = isHostNetwork(record) ? [] : await this.#interfaces(pid);
    return {
      attributes: { id, metadata: record.metadata, labels: record.labels, annotations: record.annotations },
      linux: {
        cpu: {
          timestamp,
          usage_core_nano_seconds: sum(({ cpu }) => cpu?.usage_core_nano_seconds),
          usage_nano_cores: sum(({ cpu }) => cpu?.usage_nano_cores),
        },
        memory: {
          timestamp,
          usage_bytes: sum(({ memory }) => memory?.usage_bytes),
          working_set_bytes: sum(({ memory }) => memory?.working_set_bytes),
          rss_bytes: sum(({ memory }) => memory?.rss_bytes),
          page_faults: sum(({ memory }) => memory?.page_faults),
          major_page_faults: sum(({ memory }) => memory?.major_page_faults),
        },
        network: {
          timestamp,
          default_interface: interfaces.find(({ name }) => name === 'eth0') ?? null,
          interfaces: interfaces.filter(({ name }) => name !== 'eth0'),
        },
        process: {
          timestamp,
          process_count: { value: containers.reduce((total, { processes }) => total + processes, pause.processes) },
        },
        containers,
      },
    };
  }

  async #interfaces(pid: number) {
    try {
      return parseNetDev(await readFile(`/proc/${pid}/net/dev`, 'utf8'));
    } catch (error) {
      if (isErrno(error, 'ENOENT', 'ESRCH', 'EINVAL')) return [];
      throw error;
    }
  }

  async #pod({ pod_sandbox_id }: Received<'PodSandboxStats'>): Promise<Reply<'PodSandboxStats'>> {
    const { inspected, record } = await this.#parts.sandboxes.require(pod_sandbox_id);
    if (!inspected.State.Running) throw new CriError('FAILED_PRECONDITION', `sandbox "${pod_sandbox_id}" does not run`);
    return { stats: await this.#podStats(inspected.Id, inspected.State.Pid, record) };
  }

  async #pods({ filter }: Received<'ListPodSandboxStats'>): Promise<Reply<'ListPodSandboxStats'>> {
    const listed = await this.#parts.engine.list([`${KIND_LABEL}=sandbox`]);
    const stats = await Promise.all(
      listed.map(async ({ Id, State }) => {
        if (State !== 'running' || !hasId(Id, filter?.id)) return undefined;
        const found = await this.#parts.sandboxes.find(Id);
        if (found === undefined || !found.inspected.State.Running) return undefined;
        if (!hasLabels(found.record.labels, filter?.label_selector)) return undefined;
        return this.#podStats(Id, found.inspected.State.Pid, found.record);
      }),
    );
    return { stats: stats.filter((each) => each !== undefined) };
  }
}
