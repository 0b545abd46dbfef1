// The loop of a simulated node's Node and Lease, put together as agent/compose/node.ts does; and loops that are wrong on
// purpose, so that it can be tested whether the rules notice.

import type { NodePressureState } from '../../../agent/eviction/pressure-state.ts';
import { NodeAgent } from '../../../agent/node/node-agent.ts';
import type { NodeAgentOptions } from '../../../agent/node/options.ts';
import type { PodsAgent } from '../../../agent/pods/options.ts';
import type { RuntimeStatus } from '../../../agent/ports/runtime.ts';
import type { CriRuntime } from '../../../agent/runtime/types.ts';
import type { VolumesInUse } from '../../../agent/volumes/volumes-in-use.ts';
import type { Lease, NodeStatus } from '../../../client/types.ts';
import type { Faults } from './faults.ts';
import { FACTS, HOST_IPS, NODE_CONFIG, NODE_NAME } from './node-facts.ts';

type NodeCondition = NonNullable<NodeStatus['conditions']>[number];

export interface SimNodeParts extends Pick<NodeAgentOptions, 'client' | 'recorder' | 'clock' | 'log' | 'random'> {
  readonly runtime: CriRuntime;
  readonly pods: PodsAgent;
  readonly pressure: NodePressureState;
  readonly inUse: VolumesInUse;
  readonly faults: Faults;
}

/** The caller runs it. */
export function createNodeAgent(parts: SimNodeParts): NodeAgent {
  const { runtime, pods, pressure, inUse, faults, ...rest } = parts;
  const options: NodeAgentOptions = {
    ...rest,
    runtime,
    nodeName: NODE_NAME,
    nodeIPs: HOST_IPS,
    nodeLabels: {},
    kubeletPort: 10_250,
    kubeletVersion: 'v1.33.0',
    config: NODE_CONFIG,
    // The agent runs CNI itself, and its configuration is loaded.
    network: { status: async () => ({ ok: true, reason: '', message: '' }) },
    facts: FACTS,
    pressure: () => pressure.conditions(),
    checks: { PLEG: () => runtime.plegProblem(), 'sync loop': () => pods.syncLoopProblem() },
    volumesInUse: () => inUse.list(),
    onVolumesWritten: (names) => inUse.written(names),
  };
  const node = new NodeAgent({ ...options, ...wrong(options, faults) });
  pressure.changed.subscribe(() => node.wake());
  inUse.changed.subscribe(() => node.wake(true));
  return node;
}

function wrong(options: NodeAgentOptions, faults: Faults): Partial<NodeAgentOptions> {
  const { runtime, client, config } = options;
  return {
    ...(faults.has('the node believes that its runtime answers') ? believing(runtime) : {}),
    ...(faults.has('the node renews its lease too late')
      ? { config: { ...config, nodeLeaseDurationSeconds: 4 * config.nodeLeaseDurationSeconds } }
      : {}),
    ...(faults.has('the node claims a pressure that was not measured')
      ? { pressure: () => ({ memory: true, disk: false, pid: false }) }
      : {}),
    ...(faults.has('the node hides a pressure')
      ? { pressure: () => ({ memory: false, disk: false, pid: false }) }
      : {}),
    ...(faults.has("the node's transitions move with its heartbeats") ? rewriting(client, { condition: moved }) : {}),
    ...(faults.has("the node's heartbeats go back") ? rewriting(client, { condition: withHeartbeatBack }) : {}),
    ...(faults.has('the node renews its lease into the past') ? rewriting(client, { lease: withRenewalBack }) : {}),
  };
}

/** What the runtime showed last is what it reports. */
function believing(runtime: NodeAgentOptions['runtime']): Pick<NodeAgentOptions, 'runtime' | 'network' | 'checks'> {
  let last: RuntimeStatus | undefined;
  const status = async (): Promise<RuntimeStatus> => {
    try {
      last = await runtime.status();
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
  return {
    runtime: { status, version: () => runtime.version(), listImages: () => runtime.listImages() },
    network: { status: async () => (await status()).networkReady },
    checks: {},
  };
}

/** What the agent writes, changed on its way. */
function rewriting(
  client: NodeAgentOptions['client'],
  changed: {
    readonly condition?: (condition: NodeCondition) => NodeCondition;
    readonly lease?: (lease: Lease) => Lease;
  },
): Pick<NodeAgentOptions, 'client'> {
  const { condition = (same) => same, lease = (same) => same } = changed;
  return {
    client: {
      get: (path, query, options) => client.get(path, query, options),
      create: (path, body, options) => client.create(path, body, options),
      // Nothing but the Lease is replaced.
      replace: (path, body, options) => client.replace(path, lease(body as Lease), options),
      patch: (path, body, type, options) => {
        const { status, ...rest } = body as { status?: NodeStatus };
        const conditions = status?.conditions?.map(condition);
        const written = conditions === undefined ? body : { ...rest, status: { ...status, conditions } };
        return client.patch(path, written, type, options);
      },
    },
  };
}

/** The transition is as young as the heartbeat. */
function moved(condition: NodeCondition): NodeCondition {
  const { lastHeartbeatTime } = condition;
  return { ...condition, ...(lastHeartbeatTime === undefined ? {} : { lastTransitionTime: lastHeartbeatTime }) };
}

function withHeartbeatBack(condition: NodeCondition): NodeCondition {
  return { ...condition, lastHeartbeatTime: backwards(condition.lastHeartbeatTime) };
}

function withRenewalBack(lease: Lease): Lease {
  return { ...lease, spec: { ...lease.spec, renewTime: backwards(lease.spec?.renewTime) } };
}

/** The later a time is, the earlier is what becomes of it. */
function backwards(time = ''): string {
  return new Date(2 * Date.parse('2026-01-01T00:00:00Z') - Date.parse(time)).toISOString();
}
