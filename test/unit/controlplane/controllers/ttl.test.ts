import { expect, it } from 'vitest';
import type { Node } from '../../../../client/types.ts';
import { TtlController, ttlSeconds, ttlStep } from '../../../../controlplane/controllers/ttl/ttl.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makeNode } from '../environment.ts';

it.each<[number, number, number]>([
  [0, 0, 0],
  [0, 100, 0],
  [0, 101, 15],
  [1, 90, 15],
  [1, 89, 0],
  [1, 501, 30],
  [0, 5000, 300],
  [4, 1800, 300],
  [4, 1799, 60],
  [4, 1, 0],
])('from step %d with %d nodes: %d s', (step, nodes, seconds) => {
  expect(ttlSeconds(ttlStep(step, nodes))).toBe(seconds);
});

it('annotates each node, and all when there are many', async () => {
  const { client, context, informers, run } = environment();
  run(new TtlController(context, informers));
  const named = (count: number): Node[] => Array.from({ length: count }, (_, index) => makeNode(`n${index}`, 'True'));
  const written = makeNode('m', 'True');
  informers.nodes.replace([
    { ...written, metadata: { ...written.metadata, annotations: { 'node.alpha.kubernetes.io/ttl': '0' } } },
    ...named(1),
  ]);
  await settle();
  expect(client.writes).toMatchObject([
    {
      path: '/api/v1/nodes/n0',
      type: 'strategic',
      body: { metadata: { annotations: { 'node.alpha.kubernetes.io/ttl': '0' } } },
    },
  ]);
  for (const node of named(101)) informers.nodes.upsert(node);
  await settle();
  const last = client.writes.slice(-102);
  expect(new Set(last.map(({ path }) => path)).size).toBe(102);
});
