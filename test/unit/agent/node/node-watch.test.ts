// When the agent reads its Node, where a watch shows it the Node already.

import { describe, expect, it } from 'vitest';
import { UnreachableError } from '../../../../client/errors.ts';
import type { Node } from '../../../../client/types.ts';
import type { FakeClient } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { LEASE, NODE, STATUS, start } from './node-server.ts';

describe('an agent with a watch of its Node', () => {
  const withoutImages = (node: Node): Node => {
    const { images: _images, ...status } = node.status ?? {};
    return { ...node, status };
  };
  /** A watch that shows what the server has. */
  const begin = async () => {
    const all = start();
    const { client, watched, clock } = all;
    watched.node = () => withoutImages(client.objects.get(NODE) as Node);
    await clock.advance(21_000);
    client.reads = 0;
    return all;
  };
  let changes = 0;
  const change = ({ client }: { readonly client: FakeClient }, how: (node: Node) => Partial<Node>): void => {
    const node = client.objects.get(NODE) as Node;
    client.objects.set(NODE, {
      ...node,
      metadata: { ...node.metadata, resourceVersion: `other ${++changes}` },
      ...how(node),
    });
  };
  const unknown = ({ status }: Node) => ({
    status: { ...status, conditions: status?.conditions?.map((each) => ({ ...each, status: 'Unknown' })) ?? [] },
  });

  it('does not read the Node for a status that has not changed, nor writes it', async () => {
    const { clock, client, writes } = await begin();
    const before = writes(STATUS).length;
    await clock.advance(270_000);
    expect([client.reads, writes(STATUS).length]).toEqual([0, before]);
    await clock.advance(300_000);
    expect([client.reads, writes(STATUS).length]).toEqual([0, before + 1]);
  });

  it('reads the Node where others have written it', async () => {
    const all = await begin();
    const { clock, client, ready, events } = all;
    change(all, unknown);
    await clock.advance(10_000);
    change(all, ({ spec }) => ({ spec: { ...spec, unschedulable: true } }));
    await clock.advance(10_000);
    expect([ready()?.status, client.reads]).toEqual(['True', 2]);
    expect(events).toContain('NodeNotSchedulable');
  });

  it('reads the Node where the watch is behind its own last write', async () => {
    const all = await begin();
    const { clock, client, watched, agent, network } = all;
    const old = watched.node();
    watched.node = () => old;
    network.now = { ok: false, reason: 'A', message: 'gone' };
    await agent.checkNow();
    await settle();
    expect(client.reads).toBe(0);
    const before = client.writes.length;
    await clock.advance(10_000);
    expect(client.reads).toBe(1);
    expect(client.writes.slice(before).map(({ path }) => path)).toEqual([LEASE]);
  });

  it('reads the Node where another has come in its place, and where it is gone', async () => {
    const all = await begin();
    const { clock, client, watched, logs, agent } = all;
    change(all, ({ metadata }) => ({ metadata: { ...metadata, uid: 'another' } }));
    await clock.advance(10_000);
    expect([client.reads, agent.node?.metadata.uid]).toEqual([1, 'another']);
    client.objects.delete(NODE);
    watched.node = () => undefined;
    await clock.advance(10_000);
    expect(logs).toContain("cannot update the node's status: there is no Node n");
  });

  it('reads the Node after a status that could not be written', async () => {
    const all = await begin();
    const { clock, client, network, agent, ready } = all;
    network.now = { ok: false, reason: 'A', message: 'gone' };
    client.failures.push(new UnreachableError('refused', 'ECONNREFUSED'));
    await agent.checkNow();
    await settle();
    expect(client.reads).toBe(0);
    await clock.advance(10_000);
    expect([client.reads, ready()?.status]).toEqual([1, 'False']);
    await clock.advance(30_000);
    expect(client.reads).toBe(1);
  });
});
