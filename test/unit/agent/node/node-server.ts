// A NodeAgent on a virtual clock, with a server that stores what it writes.

import { NodeAgent } from '../../../../agent/node/node-agent.ts';
import type { NodeConfig } from '../../../../agent/node/options.ts';
import type { RuntimeConditionSnapshot } from '../../../../agent/ports/runtime.ts';
import type { Node } from '../../../../client/types.ts';
import { FakeClient, type Write } from '../../../support/fake-client.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { config, facts, GOOD } from './fixtures.ts';

export const NODE = '/api/v1/nodes/n';
export const STATUS = `${NODE}/status`;
export const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n';

/** A server that stores what is written to it, as far as the node part needs. */
export function start(overrides: Partial<NodeConfig> = {}, runtimeFailure?: Error, hangs = false) {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const events: string[] = [];
  const logs: string[] = [];
  let version = 1;
  const stored = (path: string, object: unknown): unknown => {
    const before = client.objects.get(path) as Node | undefined;
    const value = object as Node;
    const metadata = {
      ...before?.metadata,
      ...value.metadata,
      uid: before?.metadata.uid ?? 'uid',
      resourceVersion: String(version++),
    };
    const kept = { ...value, metadata };
    client.objects.set(path, kept);
    return structuredClone(kept);
  };
  client.onWrite = ({ verb, path, body }) => {
    if (path === STATUS) {
      const node = client.objects.get(NODE) as Node;
      const { addresses = [], ...rest } = (body as Pick<Required<Node>, 'status'>).status;
      return stored(NODE, {
        ...node,
        status: { ...node.status, ...rest, addresses: addresses.filter((address) => !('$patch' in address)) },
      });
    }
    if (verb === 'create') return stored(path.endsWith('/nodes') ? NODE : LEASE, body);
    if (verb === 'patch') return stored(path, { ...(client.objects.get(path) as Node), ...(body as object) });
    return stored(path, body);
  };
  const runtime = {
    failure: runtimeFailure,
    versions: 0,
    requested: 0,
    hangs,
    status: async () => {
      runtime.requested++;
      if (runtime.hangs) await new Promise(() => undefined);
      if (runtime.failure !== undefined) throw runtime.failure;
      return { runtimeReady: GOOD, networkReady: GOOD, handlers: [], features: { supplementalGroupsPolicy: false } };
    },
    version: async () => {
      runtime.versions++;
      return { name: 'containerd', version: '1.6.20', apiVersion: 'v1' };
    },
    listImages: async () => {
      if (runtime.hangs) await new Promise(() => undefined);
      return [];
    },
  };
  const checks: { PLEG: string | undefined } = { PLEG: undefined };
  /** What a watch shows: nothing but in tests of it. */
  const watched: { node: () => Node | undefined } = { node: () => undefined };
  const network = { now: GOOD as RuntimeConditionSnapshot, status: async () => network.now };
  const stop = new AbortController();
  const agent = new NodeAgent({
    nodeName: 'n',
    nodeIPs: ['10.0.0.5'],
    nodeLabels: {},
    kubeletPort: 10250,
    kubeletVersion: 'v1.34.0',
    config: config(overrides),
    client,
    runtime,
    network,
    recorder: { event: (_object, _type, reason) => void events.push(reason) },
    clock,
    log: (_level, message) => void logs.push(message),
    facts: facts(),
    checks: { PLEG: () => checks.PLEG },
    random: () => 0,
    watched: () => watched.node(),
  });
  const writes = (path: string): Write[] => client.writes.filter((write) => write.path === path);
  const ready = () => agent.node?.status?.conditions?.find(({ type }) => type === 'Ready');
  const running = agent.run(stop.signal);
  return { clock, client, events, logs, runtime, network, checks, watched, agent, writes, ready, stop, running };
}
