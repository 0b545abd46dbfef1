// Everything about one node: its object, Lease, events and pods, and what its agent serves; where the node is this machine, also
// its runtime, and the files, the process and the clock of its agent.

import { resourcePath } from '../../../client/paths.ts';
import type { Lease, Node, Pod, Stored } from '../../../client/types.ts';
import { UserError } from '../../../lib/errors.ts';
import type { NodeFacts } from '../facts.ts';
import { absent } from './absent.ts';
import { collectAgent, collectKubeletApi, findAgent, servingProblem } from './agent-of-node.ts';
import { callServer } from './api-server.ts';
import { collectEvents } from './events.ts';
import { leasePath } from './pod.ts';
import { collectRuntime } from './runtime.ts';
import { elsewhere, found, Gaps, localNode, type Sources } from './source.ts';

/** Rejects with UserError when there is no such node. */
export async function collectNode(sources: Sources, name: string): Promise<NodeFacts> {
  const { client } = sources;
  const gaps = new Gaps();
  const lookup = await gaps.lookup('node', () => client.get<Node>(resourcePath('v1', 'nodes', { name })));
  if (lookup.state === 'unknown') throw new UserError(`the node cannot be read: ${lookup.why}`);
  if (lookup.state === 'absent') {
    const { items } = await client.list<Stored<object>>('/api/v1/nodes');
    const names = items.map(({ metadata }) => metadata.name);
    throw absent('node', '', name, names);
  }
  const here = localNode(sources, name);
  if (here === undefined) gaps.add('the container runtime, the agent’s process and its files', elsewhere(sources));
  const query = { fieldSelector: `spec.nodeName=${name}` };
  const agent = async (): Promise<Pick<NodeFacts, 'agent' | 'servingProblem'>> => {
    const files = here === undefined ? undefined : await findAgent(here, gaps);
    if (here === undefined || files === undefined) return { agent: undefined, servingProblem: undefined };
    const [facts, problem] = await Promise.all([
      collectAgent(sources, gaps, files, here),
      servingProblem(files.config),
    ]);
    return { agent: facts, servingProblem: problem };
  };
  const [events, lease, pods, runtime, { clock }, kubeletApi, own] = await Promise.all([
    // The kubelet gives the node's name as the uid of its events' object.
    collectEvents(sources, gaps, 'Node', { namespace: '', name, uid: undefined }),
    gaps.lookup('the node’s lease', () => client.get<Lease>(leasePath(name))),
    gaps.attempt<readonly Pod[]>('its pods', [], async () => (await client.list<Pod>('/api/v1/pods', query)).items),
    here === undefined ? undefined : collectRuntime(here),
    callServer(client.access, '/version', sources.now),
    collectKubeletApi(sources, lookup.value),
    gaps.attempt('the agent’s files', { agent: undefined, servingProblem: undefined }, agent),
  ]);
  return {
    kind: 'node',
    now: sources.now(),
    gaps: gaps.list,
    events,
    node: lookup.value,
    lease: found(lease),
    pods,
    runtime,
    isHere: here !== undefined,
    clock,
    kubeletApi,
    ...own,
  };
}
