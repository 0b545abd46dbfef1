// Everything about one node: its object, Lease, events and pods; and the runtime where the node is this machine.

import { resourcePath } from '../../../client/paths.ts';
import type { Lease, Node, Pod, Stored } from '../../../client/types.ts';
import { UserError } from '../../../lib/errors.ts';
import type { NodeFacts } from '../facts.ts';
import { absent } from './absent.ts';
import { collectEvents } from './events.ts';
import { leasePath } from './pod.ts';
import { collectRuntime } from './runtime.ts';
import { found, Gaps, type Sources } from './source.ts';

/** Rejects with UserError when there is no such node. */
export async function collectNode(sources: Sources, name: string): Promise<NodeFacts> {
  const { client, local } = sources;
  const gaps = new Gaps();
  const lookup = await gaps.lookup('node', () => client.get<Node>(resourcePath('v1', 'nodes', { name })));
  if (lookup.state === 'unknown') throw new UserError(`the node cannot be read: ${lookup.why}`);
  if (lookup.state === 'absent') {
    const { items } = await client.list<Stored<object>>('/api/v1/nodes');
    const names = items.map(({ metadata }) => metadata.name);
    throw absent('node', '', name, names);
  }
  if (local === undefined || local.name !== name) {
    gaps.add('the container runtime', local === undefined ? sources.notLocal : `this machine is node ${local.name}`);
  }
  const query = { fieldSelector: `spec.nodeName=${name}` };
  const [events, lease, pods, runtime] = await Promise.all([
    // The kubelet gives the node's name as the uid of its events' object.
    collectEvents(sources, gaps, 'Node', { namespace: '', name, uid: undefined }),
    gaps.lookup('the node’s lease', () => client.get<Lease>(leasePath(name))),
    gaps.attempt<readonly Pod[]>('its pods', [], async () => (await client.list<Pod>('/api/v1/pods', query)).items),
    local?.name === name ? collectRuntime(local) : undefined,
  ]);
  const own = { node: lookup.value, lease: found(lease), pods, runtime };
  return { kind: 'node', now: sources.now(), gaps: gaps.list, events, ...own };
}
