// One look at everything that pages show: the machine's cgroup, those above pods, each pod's and each running container's.
// Reads the kernel's files in one go and without waiting, so that a page is of one moment. Keeps no figures but the last
// CPU counters, for rates, and limits for a minute.

import { type Clock, type EpochMs, elapsedMs, type MonotonicMs } from '../../lib/clock.ts';
import { type CgroupLayout, cgroupPath, kubepodsName, podName, qosName } from '../model/cgroup-names.ts';
import { podQOSClass } from '../model/pod-resources.ts';
import { uidOf } from '../model/pod-uid.ts';
import type { ContainerSnapshot, SandboxSnapshot } from '../ports/runtime.ts';
import type { StatsPods } from '../ports/stats.ts';
import type { CgroupReader, CpuFigures, LimitFigures, MemoryFigures, ReadFile } from './cgroup-figures.ts';
import { CpuRates } from './cpu-rates.ts';
import {
  type DeviceIo,
  type InterfaceCounters,
  type PressureFigures,
  parseNetDev,
  readPressure,
} from './kernel-text.ts';

/**
 * `resource`: CPU time and memory, as /metrics/resource. `short`: also pressure. `summary`: also processes, and the networks. `all`: everything
 * there is, but of pods and what is above them only CPU time and memory: each file costs, and the rest is their containers'.
 */
export type Depth = 'resource' | 'short' | 'summary' | 'all';

export interface Sample {
  /** Its cgroup, below the hierarchy's root. */
  readonly path: string;
  readonly at: EpochMs;
  /** ns. */
  readonly cpuUsageNs: number;
  /** Billionths of a core, between the last two readings. */
  readonly nanoCores: number | undefined;
  readonly cpu: CpuFigures | undefined;
  readonly memory: MemoryFigures | undefined;
  readonly limits: LimitFigures;
  readonly threads: number | undefined;
  /** Of the cgroup itself, without those below. */
  readonly processes: number | undefined;
  readonly io: readonly DeviceIo[];
  readonly pressure: PressureFigures;
}

export interface ContainerSample {
  readonly container: ContainerSnapshot;
  readonly sample: Sample;
}

export interface PodSample {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly sandbox: SandboxSnapshot;
  /** Where the sandbox's cgroup is; undefined where it has none. */
  readonly sandboxPath: string | undefined;
  /** undefined where the pod has no cgroup of its own, or is on its way out. */
  readonly sample: Sample | undefined;
  /** Those that run. */
  readonly containers: readonly ContainerSample[];
  readonly network: readonly InterfaceCounters[];
}

export interface NodeSample {
  readonly at: EpochMs;
  readonly root: Sample | undefined;
  readonly kubepods: Sample | undefined;
  /** The cgroups of the QoS classes. */
  readonly classes: readonly Sample[];
  readonly pods: readonly PodSample[];
  /** Of the network namespace that the agent is in. */
  readonly network: readonly InterfaceCounters[];
}

/** Limits change only when a pod is resized. ms. */
const LIMITS_MS = 60_000;
const NO_PRESSURE: PressureFigures = {};

export interface SamplerOptions {
  readonly reader: CgroupReader;
  readonly layout: CgroupLayout;
  readonly pods: StatsPods;
  readonly read: ReadFile;
  readonly clock: Clock;
  /** Cgroups of the system that are sampled beside: their counters are kept for rates, too. */
  readonly systemPaths: readonly string[];
  /** What the root has for limits: the machine's memory and swap, bytes. */
  readonly machineLimits: Pick<LimitFigures, 'memory' | 'swap'>;
  /** /proc by default. */
  readonly procDir?: string;
}

export class Sampler {
  readonly #options: SamplerOptions;
  readonly #procDir: string;
  readonly #rates = new CpuRates();
  readonly #limits = new Map<string, { readonly limits: LimitFigures; readonly at: MonotonicMs }>();
  /** Names of the cgroups of sandboxes and containers, by the runtime's id. */
  readonly #names = new Map<string, string>();
  /** The first process of each sandbox, by the runtime's id: it lives as long as the sandbox. */
  readonly #pids = new Map<string, number>();

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#procDir = options.procDir ?? '/proc';
  }

  take(depth: Depth): NodeSample {
    const { layout, clock, pods } = this.#options;
    const seen = new Set<string>(this.#options.systemPaths);
    const sample = (path: string, of: Depth): Sample | undefined => {
      seen.add(path);
      return this.#sample(path, of);
    };
    const above = depth === 'all' ? 'resource' : depth;
    const at = clock.now();
    const root = sample('/', depth);
    const kubepods = sample(cgroupPath(layout, kubepodsName(layout)), above);
    const classes =
      depth === 'all'
        ? (['Burstable', 'BestEffort'] as const).flatMap(
            (qos) => sample(cgroupPath(layout, qosName(layout, qos)), above) ?? [],
          )
        : [];
    const ids = new Set<string>();
    const podSamples = pods.listPods().flatMap((pod): PodSample[] => {
      const snapshot = pods.snapshotOf(uidOf(pod));
      const sandbox = snapshot?.sandboxes[0];
      if (snapshot === undefined || sandbox?.state !== 'ready') return [];
      const { uid, namespace, name } = pod.metadata;
      const path = cgroupPath(layout, podName(layout, uid, podQOSClass(pod)));
      const running = snapshot.containers.filter(({ state }) => state === 'running');
      const wanted = [sandbox.id, ...running.map(({ id }) => id)];
      for (const id of wanted) ids.add(id);
      this.#findNames(path, wanted);
      const containers = running.flatMap((container): ContainerSample[] => {
        const own = this.#names.get(container.id);
        const found = own === undefined ? undefined : sample(`${path}/${own}`, depth);
        return found === undefined ? [] : [{ container, sample: found }];
      });
      const own = this.#names.get(sandbox.id);
      const sandboxPath = own === undefined ? undefined : `${path}/${own}`;
      const network = !hasNetworks(depth) || sandboxPath === undefined ? [] : this.#networkOf(sandbox.id, sandboxPath);
      return [{ uid, namespace, name, sandbox, sandboxPath, sample: sample(path, above), containers, network }];
    });
    this.#forget(seen, ids);
    const network = hasNetworks(depth) ? this.#network('self') : [];
    return { at, root, kubepods, classes, pods: podSamples, network };
  }

  /** The figures of one cgroup; undefined when there is none of this path. */
  sample(path: string, depth: Depth): Sample | undefined {
    return this.#sample(path, depth);
  }

  #sample(path: string, depth: Depth): Sample | undefined {
    const { reader, clock } = this.#options;
    const at = clock.now();
    const monotonic = clock.monotonic();
    const all = depth === 'all';
    const networks = hasNetworks(depth);
    const cpu = all ? reader.cpu(path) : undefined;
    const cpuUsageNs = all ? cpu?.usageNs : reader.cpuUsage(path);
    if (cpuUsageNs === undefined) return undefined;
    return {
      path,
      at,
      cpuUsageNs,
      nanoCores: this.#rates.observe(path, cpuUsageNs, monotonic),
      cpu,
      memory: reader.memory(path, all),
      limits: this.#limitsOf(path, monotonic),
      threads: all ? reader.threads(path) : undefined,
      processes: networks ? reader.processes(path).length : undefined,
      io: all ? reader.io(path) : [],
      pressure: depth === 'resource' ? NO_PRESSURE : this.#pressureOf(path),
    };
  }

  #limitsOf(path: string, now: MonotonicMs): LimitFigures {
    if (path === '/') return this.#options.machineLimits;
    const known = this.#limits.get(path);
    if (known !== undefined && elapsedMs(known.at, now) < LIMITS_MS) return known.limits;
    const limits = this.#options.reader.limits(path);
    this.#limits.set(path, { limits, at: now });
    return limits;
  }

  /** Of the machine from /proc, which has it whatever the version of cgroups. */
  #pressureOf(path: string): PressureFigures {
    const { reader, read } = this.#options;
    if (path !== '/') return reader.pressure(path);
    return readPressure((resource) => read(`${this.#procDir}/pressure/${resource}`));
  }

  /** The runtime names a container's cgroup: by the id alone, or cri-containerd-<id>.scope. */
  #findNames(pod: string, ids: readonly string[]): void {
    if (ids.every((id) => this.#names.has(id))) return;
    const children = this.#options.reader.children(pod);
    for (const id of ids) {
      const name = children.find((child) => child.includes(id));
      if (name !== undefined) this.#names.set(id, name);
    }
  }

  /** The counters of a sandbox's network namespace, read through its process. */
  #networkOf(id: string, path: string): readonly InterfaceCounters[] {
    let pid = this.#pids.get(id);
    if (pid === undefined) {
      pid = this.#options.reader.processes(path)[0];
      // 0 is one of another pid namespace.
      if (pid === undefined || pid === 0) return [];
      this.#pids.set(id, pid);
    }
    return this.#network(String(pid));
  }

  #network(process: string): readonly InterfaceCounters[] {
    const text = this.#options.read(`${this.#procDir}/${process}/net/dev`);
    return text === undefined ? [] : parseNetDev(text);
  }

  #forget(cgroups: ReadonlySet<string>, ids: ReadonlySet<string>): void {
    this.#rates.keep(cgroups);
    for (const path of this.#limits.keys()) if (!cgroups.has(path)) this.#limits.delete(path);
    for (const id of this.#names.keys()) if (!ids.has(id)) this.#names.delete(id);
    for (const id of this.#pids.keys()) if (!ids.has(id)) this.#pids.delete(id);
  }
}

function hasNetworks(depth: Depth): boolean {
  return depth === 'summary' || depth === 'all';
}
