// The kubelet's HTTPS API. Part of the composition: it decides nothing.

import { tracedExec } from '../../lib/traced-exec.ts';
import { createLogReader } from '../runtime/logs/read-logs.ts';
import { createKubeletServer } from '../server/kubelet-server.ts';
import type { KubeletServer } from '../server/options.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';
import { nodeLogsDir } from './node-settings.ts';
import { createOwnPages, createUsagePages, type StatsParts } from './stats.ts';

/** Undefined where enableServer is off. */
export function createServer(
  base: AgentBase,
  parts: StatsParts & { readonly cluster: Cluster },
): KubeletServer | undefined {
  const { options, clock, tracer, log } = base;
  if (!options.config.enableServer) return undefined;
  const { cluster, runtime, pods } = parts;
  return createKubeletServer({
    options,
    pods,
    runtime,
    logs: createLogReader(clock),
    nodeLogs: {
      directory: nodeLogsDir(options.config.podLogsDir),
      exec: tracedExec(tracer, 'systemd', base.exec),
    },
    usage: createUsagePages(base, parts),
    own: createOwnPages(base, parts),
    ...(cluster.client === undefined ? {} : { reviews: cluster.client }),
    syncLoopHealth: () => pods.syncLoopProblem(),
    tracer,
    clock,
    log,
  });
}
