// The kubelet's HTTPS API. Part of the composition: it decides nothing.

import type { PodsAgent } from '../pods/options.ts';
import { createLogReader } from '../runtime/logs/read-logs.ts';
import type { CriRuntime } from '../runtime/types.ts';
import { createKubeletServer } from '../server/kubelet-server.ts';
import type { KubeletServer } from '../server/options.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';
import type { Volumes } from './volumes.ts';

/** Undefined where enableServer is off. */
export function createServer(
  { options, clock, tracer, log }: AgentBase,
  parts: {
    readonly cluster: Cluster;
    readonly runtime: CriRuntime;
    readonly volumes: Volumes;
    readonly pods: PodsAgent;
  },
): KubeletServer | undefined {
  if (!options.config.enableServer) return undefined;
  const { cluster, runtime, volumes, pods } = parts;
  return createKubeletServer({
    options,
    pods,
    runtime,
    logs: createLogReader(clock),
    stats: { containers: () => runtime.containerStats(), volumes: volumes.storage.stats },
    ...(cluster.client === undefined ? {} : { reviews: cluster.client }),
    syncLoopHealth: () => pods.syncLoopProblem(),
    tracer,
    clock,
    log,
  });
}
