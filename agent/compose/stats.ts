// The pages of the kubelet API about what the machine, its pods and the agent itself use and do. Their parts are loaded with the
// first request. Part of the composition: it decides nothing.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../client/types.ts';
import { type Clock, type EpochMs, epochMs } from '../../lib/clock.ts';
import { openFilesLimit, readDescriptorUse } from '../../lib/descriptors.ts';
import { invariantViolations } from '../../lib/invariant.ts';
import { machineTasks } from '../eviction/cgroup-usage.ts';
import { diskUsage } from '../eviction/disk-usage.ts';
import { cgroupPath, kubepodsName } from '../model/cgroup-names.ts';
import { uidOf } from '../model/pod-uid.ts';
import { findV1Hierarchies } from '../node/cgroups-v1.ts';
import type { PodsAgent } from '../pods/options.ts';
import type { OwnPages, UsagePages } from '../ports/stats.ts';
import { hostsFile, podDirectory, podLogsDirectory } from '../runtime/config/paths.ts';
import type { CriRuntime } from '../runtime/types.ts';
import { type AgentBase, KUBELET_VERSION } from './base.ts';
import type { Machine, MachineCgroups } from './machine.ts';
import type { AgentMetrics } from './metrics.ts';
import type { Volumes } from './volumes.ts';

export interface StatsParts {
  readonly machine: Machine;
  readonly cgroups: MachineCgroups;
  readonly runtime: CriRuntime;
  readonly volumes: Volumes;
  readonly pods: PodsAgent;
  readonly metrics: AgentMetrics;
}

const MOUNT_POINT = '/sys/fs/cgroup';
/** For how long what pods have on disk is relied on: the kubelet's volumeStatsAggPeriod. ms. */
const DISK_MS = 60_000;

/** Loads what makes the pages when the first is asked for. */
export function createUsagePages(base: AgentBase, parts: StatsParts): UsagePages {
  let loading: Promise<UsagePages> | undefined;
  const load = (): Promise<UsagePages> => {
    loading ??= loadUsagePages(base, parts);
    return loading;
  };
  return {
    summary: async (cpuAndMemory) => (await load()).summary(cpuAndMemory),
    resource: async () => (await load()).resource(),
    cadvisor: async () => (await load()).cadvisor(),
  };
}

async function loadUsagePages(base: AgentBase, parts: StatsParts): Promise<UsagePages> {
  const { options, clock, log } = base;
  const { machine, runtime, volumes, pods } = parts;
  const { layout, settings } = parts.cgroups;
  const [{ StatsPages }, { Sampler }, { PodDisks }, { readKernelFile: read }, info] = await Promise.all([
    import('../stats/usage-pages.ts'),
    import('../stats/sampler.ts'),
    import('../stats/disk.ts'),
    import('../stats/read-file.ts'),
    import('../stats/machine-info.ts'),
  ]);
  const { facts } = machine;
  const own = ownCgroup(parts.cgroups.cgroups.version);
  const system = own === undefined ? [] : [{ name: 'kubelet' as const, path: own, startTime: startedAt(clock.now()) }];
  const identity = ({ metadata: { uid, namespace, name } }: Pod) => ({ uid, namespace, name });
  return new StatsPages({
    nodeName: options.nodeName,
    rootDir: options.rootDir,
    sampler: new Sampler({
      reader: await createReader(parts.cgroups, cgroupPath(layout, kubepodsName(layout)), clock),
      layout,
      pods,
      read,
      clock,
      systemPaths: system.map(({ path }) => path),
      machineLimits: { memory: facts.memoryBytes, swap: facts.swapBytes },
    }),
    machine: {
      ...facts,
      ...info.topologyOf(read('/proc/cpuinfo') ?? '', facts.cpus),
      cores: facts.cpus,
      memory: facts.memoryBytes,
      swap: facts.swapBytes,
      bootTime: info.bootTimeOf(read('/proc/stat') ?? ''),
      deviceName: info.createDeviceNames(read),
    },
    pods,
    system,
    disks: new PodDisks({
      clock,
      maxAgeMs: DISK_MS,
      measure: diskUsage,
      paths: {
        volumes: ({ metadata }, plugin) =>
          join(podDirectory(options.rootDir, metadata.uid), 'volumes', `kubernetes.io~${plugin}`),
        logs: (pod) => podLogsDirectory(settings.podLogsDir, identity(pod)),
        etcHosts: ({ metadata }) => hostsFile(options.rootDir, metadata.uid),
      },
    }),
    containerStats: () => runtime.containerStats(),
    imageFs: async () => (await runtime.imageFsInfo())[0],
    volumes: volumes.storage.stats,
    tasks: () => machineTasks('/proc'),
    clock,
    onTrouble: (message) => log('warn', message),
  });
}

async function createReader({ cgroups }: MachineCgroups, example: string, clock: Clock) {
  const { readDirectories: directories, readKernelFile: readSeldom, KeptFiles } = await import('../stats/read-file.ts');
  const { read } = new KeptFiles(clock, openFilesLimit());
  if (cgroups.version === 2) {
    const { CgroupV2Reader } = await import('../stats/cgroup-v2.ts');
    return new CgroupV2Reader({ mountPoint: MOUNT_POINT, read, readSeldom, directories, example });
  }
  const { CgroupV1Reader } = await import('../stats/cgroup-v1.ts');
  const mounts = new Map(
    findV1Hierarchies(MOUNT_POINT).flatMap(({ controllers, mountPoint }) =>
      controllers.map((controller) => [controller, mountPoint] as const),
    ),
  );
  return new CgroupV1Reader({ mounts, read, readSeldom, directories, example });
}

/** The agent's cgroup; undefined where it has none of its own, but shares the machine's. */
function ownCgroup(version: 1 | 2): string | undefined {
  const line = version === 1 ? /^\d+:(?:.*,)?memory(?:,.*)?:(\/.+)$/m : /^0::(\/.+)$/m;
  return line.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
}

function startedAt(now: EpochMs): EpochMs {
  return epochMs(now - process.uptime() * 1000);
}

/** Shows what `parts.metrics` has counted. */
export function createOwnPages(base: AgentBase, parts: StatsParts): OwnPages {
  const { spans, starts, relists } = parts.metrics;
  const { options, clock } = base;
  const { pods, volumes } = parts;
  const begun = startedAt(clock.now());
  const counted = [...spans.agent, ...starts.metrics, ...relists.metrics];
  return {
    async agent() {
      const { agentPage } = await import('../metrics/agent-page.ts');
      const figures = await volumes.storage.stats();
      const use = readDescriptorUse();
      const { user, system } = process.cpuUsage();
      return agentPage({
        nodeName: options.nodeName,
        cgroupVersion: parts.cgroups.cgroups.version,
        version: KUBELET_VERSION,
        counted,
        pods: pods.listPods().map((pod) => {
          const uid = uidOf(pod);
          return { pod, status: pods.statusOf(uid), snapshot: pods.snapshotOf(uid) };
        }),
        volumes: volumes.manager.counts(),
        claims: figures.flatMap((stats) =>
          stats.pvcRef === undefined ? [] : [{ stats, namespace: stats.pvcRef.namespace, claim: stats.pvcRef.name }],
        ),
        process: {
          cpu: (user + system) / 1e6,
          resident: process.memoryUsage.rss(),
          startedAt: begun,
          ...(use === 'exhausted' ? {} : { openFiles: use.open, maxFiles: use.limit }),
        },
        relistedAt: relists.lastAt,
        violations: invariantViolations(),
      });
    },
    async probes() {
      const { probesPage } = await import('../metrics/agent-page.ts');
      return probesPage(spans.probes, begun);
    },
  };
}
