// The pods agent: pod workers, admission, image pulls and status, over every port. Part of the composition: it decides
// nothing.

import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { createAdmission } from '../admission/admission.ts';
import { appArmorEnabled } from '../admission/host.ts';
import { runtimeHandlerOf } from '../api/runtime-class.ts';
import type { NodePressureState } from '../eviction/pressure-state.ts';
import type { PodsAgent } from '../pods/options.ts';
import { createPodsAgent } from '../pods/pods-agent.ts';
import { restartBackoffPolicy } from '../pods/restart-backoff.ts';
import type { PodProbes } from '../ports/probes.ts';
import type { PullCredentials } from '../ports/pull-credentials.ts';
import { sweepLogs } from '../runtime/logs/sweep.ts';
import type { CriRuntime } from '../runtime/types.ts';
import type { NodeShutdownState } from '../shutdown/shutdown-state.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';
import type { Machine, MachineCgroups } from './machine.ts';
import type { AgentMetrics } from './metrics.ts';
import type { Volumes } from './volumes.ts';

export interface PodsParts {
  readonly machine: Machine;
  readonly cgroups: MachineCgroups;
  readonly cluster: Cluster;
  readonly runtime: CriRuntime;
  readonly volumes: Volumes;
  readonly probes: PodProbes;
  readonly credentials: PullCredentials;
  readonly pressure: NodePressureState;
  readonly shutdown: NodeShutdownState;
  readonly metrics: AgentMetrics;
}

export async function createPods(base: AgentBase, parts: PodsParts): Promise<PodsAgent> {
  const { options, clock, tracer, log, signals } = base;
  const { machine, cluster, runtime, volumes, probes, credentials } = parts;
  const { config, nodeName, rootDir } = options;
  const { client, objects, recorder } = cluster;
  const { settings } = parts.cgroups;
  const checkpointFiles = {
    allocated: join(rootDir, 'allocated_pods_state'),
    actuated: join(rootDir, 'actuated_pods_state'),
  };
  return createPodsAgent({
    runtime,
    cgroups: parts.cgroups.cgroups,
    volumes: volumes.manager,
    ...(cluster.podApi === undefined ? {} : { api: cluster.podApi }),
    objects,
    recorder,
    probes,
    sources: cluster.sources,
    onPodGone: (pod) => signals.podGone.emit(pod),
    onStatus: (pod, status) => parts.metrics.starts.reported(pod, status, clock.now()),
    ...(client === undefined ? {} : { runtimeHandler: (name: string) => runtimeHandlerOf(client, name) }),
    credentials,
    sweep: async (isKept) => {
      const removed = await sweepLogs(settings, isKept);
      if (removed.length > 0) log('info', 'Removed logs of deleted pods', { removed });
    },
    allocations: {
      initial: {
        allocated: await readFileIfExists(checkpointFiles.allocated),
        actuated: await readFileIfExists(checkpointFiles.actuated),
      },
      save: (file, text) => writeFileAtomic(checkpointFiles[file], text, 0o600),
    },
    clock,
    tracer,
    node: { name: nodeName, hostIPs: () => machine.nodeIPs, allocatable: () => machine.allocatable },
    config: {
      serializeImagePulls: config.serializeImagePulls,
      maxParallelImagePulls: config.maxParallelImagePulls ?? 0,
      resyncMs: config.syncFrequency,
      runtimeRequestTimeoutMs: config.runtimeRequestTimeout,
      restartBackoff: restartBackoffPolicy(config.crashLoopBackOff.maxContainerRestartPeriod),
      cpuCFSQuota: config.cpuCFSQuota,
      cpuCFSQuotaPeriodUs: config.cpuCFSQuotaPeriod * 1000,
      admit: [
        parts.shutdown.admit,
        parts.pressure.admit,
        ...createAdmission({
          node: () => cluster.node(),
          kernelVersion: machine.facts.kernelVersion,
          allowedUnsafeSysctls: config.allowedUnsafeSysctls,
          appArmor: await appArmorEnabled(),
        }),
      ],
    },
    log,
  });
}
