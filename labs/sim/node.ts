// The loop of a simulated node's Node and Lease, put together as agent/compose/node.ts does.

import type { NodePressureState } from '../../agent/eviction/pressure-state.ts';
import { NodeAgent } from '../../agent/node/node-agent.ts';
import type { NodeAgentOptions } from '../../agent/node/options.ts';
import type { PodsAgent } from '../../agent/pods/options.ts';
import type { CriRuntime } from '../../agent/runtime/types.ts';
import type { NodeShutdownState } from '../../agent/shutdown/shutdown-state.ts';
import type { VolumesInUse } from '../../agent/volumes/volumes-in-use.ts';
import { FACTS, HOST_IPS, NODE_CONFIG, NODE_NAME } from './node-facts.ts';

export interface SimNodeParts
  extends Pick<NodeAgentOptions, 'client' | 'recorder' | 'clock' | 'log' | 'random' | 'watched'> {
  readonly runtime: CriRuntime;
  readonly pods: PodsAgent;
  readonly pressure: NodePressureState;
  readonly shutdown: NodeShutdownState;
  readonly inUse: VolumesInUse;
  /** What is different from a node that works as it should: nothing but in a test of rules. */
  readonly changed?: (options: NodeAgentOptions) => Partial<NodeAgentOptions>;
  readonly config?: NodeAgentOptions['config'];
}

/** The caller runs it. */
export function createNodeAgent(parts: SimNodeParts): NodeAgent {
  const { runtime, pods, pressure, shutdown, inUse, changed = () => ({}), config = NODE_CONFIG, ...rest } = parts;
  const options: NodeAgentOptions = {
    ...rest,
    runtime,
    nodeName: NODE_NAME,
    nodeIPs: HOST_IPS,
    nodeLabels: {},
    kubeletPort: 10_250,
    kubeletVersion: 'v1.34.0',
    config,
    // The agent runs CNI itself, and its configuration is loaded.
    network: { status: async () => ({ ok: true, reason: '', message: '' }) },
    facts: FACTS,
    pressure: () => pressure.conditions(),
    checks: { PLEG: () => runtime.plegProblem(), 'sync loop': () => pods.syncLoopProblem() },
    shutdown: () => shutdown.notReadyReason(),
    volumesInUse: () => inUse.list(),
    onVolumesWritten: (names) => inUse.written(names),
  };
  const node = new NodeAgent({ ...options, ...changed(options) });
  pressure.changed.subscribe(() => node.wake());
  shutdown.changed.subscribe(() => void node.checkNow());
  inUse.changed.subscribe(() => node.wake(true));
  return node;
}
