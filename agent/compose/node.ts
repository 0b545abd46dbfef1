// The loop of the Node object, subscribed to everything that changes the Node's status. Part of the composition: it
// decides nothing.

import type { NodePressureState } from '../eviction/pressure-state.ts';
import { createDescriptorCheck } from '../node/descriptors.ts';
import { NodeAgent } from '../node/node-agent.ts';
import type { PodsAgent } from '../pods/options.ts';
import type { CriRuntime } from '../runtime/types.ts';
import type { NodeShutdownState } from '../shutdown/shutdown-state.ts';
import { type AgentBase, KUBELET_VERSION } from './base.ts';
import type { Cluster } from './cluster.ts';
import type { Machine } from './machine.ts';
import type { Network } from './network.ts';
import type { Volumes } from './volumes.ts';

export interface NodeParts {
  readonly machine: Machine;
  readonly cluster: Cluster;
  readonly runtime: CriRuntime;
  readonly network: Network;
  readonly volumes: Volumes;
  readonly pods: PodsAgent;
  readonly pressure: NodePressureState;
  readonly shutdown: NodeShutdownState;
  /** Where the kubelet's HTTPS API listens. */
  readonly kubeletPort: number;
}

/** Undefined in standalone mode, where there is no Node. */
export function createNode(base: AgentBase, parts: NodeParts): NodeAgent | undefined {
  const { options, clock, log, signals } = base;
  const { machine, cluster, runtime, network, volumes, pods, pressure, shutdown } = parts;
  const { client, recorder } = cluster;
  if (client === undefined) return undefined;
  const { inUse } = volumes.storage;
  const node = new NodeAgent({
    nodeName: options.nodeName,
    nodeIPs: machine.nodeIPs,
    nodeLabels: options.nodeLabels,
    kubeletPort: parts.kubeletPort,
    kubeletVersion: KUBELET_VERSION,
    config: options.config,
    client,
    runtime,
    network: network.port(runtime),
    recorder,
    clock,
    log,
    facts: machine.facts,
    pressure: () => pressure.conditions(),
    checks: {
      PLEG: () => runtime.plegProblem(),
      'sync loop': () => pods.syncLoopProblem(),
      'file descriptors': createDescriptorCheck(),
    },
    shutdown: () => shutdown.notReadyReason(),
    volumesInUse: () => inUse.list(),
    onVolumesWritten: (names) => inUse.written(names),
    watched: () => cluster.watchedNode(),
  });
  signals.networkChanged.subscribe(() => void node.checkNow());
  shutdown.changed.subscribe(() => void node.checkNow());
  pressure.changed.subscribe(() => node.wake());
  // A mount waits until its volume is in the status.
  inUse.changed.subscribe(() => node.wake(true));
  return node;
}
