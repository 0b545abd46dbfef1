// Loops of the Node and the Lease that are wrong on purpose, so that it can be tested whether the rules notice.

import type { NodeAgentOptions } from '../../../agent/node/options.ts';
import type { RuntimeStatus } from '../../../agent/ports/runtime.ts';
import type { Lease, NodeStatus } from '../../../client/types.ts';
import type { Faults } from '../../../labs/sim/faults.ts';

type NodeCondition = NonNullable<NodeStatus['conditions']>[number];

/** What is wrong with the loop of the Node and the Lease, by the world's faults. */
export function faultyNode(options: NodeAgentOptions, faults: Faults): Partial<NodeAgentOptions> {
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
