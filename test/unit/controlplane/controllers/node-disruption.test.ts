// How soon nodes whose leases are not renewed are tainted for eviction, and that none is when all of them are lost at once.

import { describe, expect, it } from 'vitest';
import type { Lease, Node } from '../../../../client/types.ts';
import { NodeLifecycleController } from '../../../../controlplane/controllers/node-lifecycle/node-lifecycle.ts';
import { MetricsText } from '../../../../lib/metrics.ts';
import { apiError } from '../../../support/fake-client.ts';
import { environment, makeNode, meta } from '../environment.ts';

function inZone(name: string, ready: string, zone: string, more: Readonly<Record<string, string>> = {}): Node {
  const node = makeNode(name, ready);
  return { ...node, metadata: { ...node.metadata, labels: { 'topology.kubernetes.io/zone': zone, ...more } } };
}

/** A cluster whose writes are stored; nodes renew their leases until they are silent. */
function cluster(nodes: readonly Node[]) {
  const env = environment();
  const { clock, client, informers } = env;
  const lease = (name: string, beat: number): Lease => ({
    metadata: meta(name, 'kube-node-lease'),
    spec: { renewTime: `beat ${beat}` },
  });
  client.onWrite = ({ path, body }) => {
    const [, name = ''] = /^\/api\/v1\/nodes\/([^/]+)/.exec(path) ?? [];
    const node = informers.nodes.get(name);
    if (node === undefined) return body;
    const { spec, status } = body as Pick<Node, 'spec' | 'status'>;
    const conditions = status?.conditions ?? node.status?.conditions;
    const next = {
      ...node,
      metadata: { ...node.metadata, resourceVersion: meta(name).resourceVersion },
      spec: { ...node.spec, ...spec },
      status: { ...node.status, ...(conditions === undefined ? {} : { conditions }) },
    };
    informers.nodes.upsert(next);
    return next;
  };
  const controller = new NodeLifecycleController(env.context, informers, { nodeMonitorGraceMs: 40_000 });
  env.run(controller);
  informers.nodes.replace(nodes);
  let beat = 0;
  /** Of so many seconds, with leases renewed by all but those that are silent. */
  const pass = async (seconds: number, silent: readonly string[] = []): Promise<void> => {
    for (let second = 0; second < seconds; second += 5) {
      beat++;
      for (const { metadata } of informers.nodes.list()) {
        if (!silent.includes(metadata.name)) informers.nodeLeases.upsert(lease(metadata.name, beat));
      }
      await clock.advance(Math.min(5, seconds - second) * 1000);
    }
  };
  const tainted = (effect: string): string[] =>
    informers.nodes
      .list()
      .filter(({ spec }) => spec?.taints?.some((taint) => taint.effect === effect))
      .map(({ metadata }) => metadata.name)
      .sort();
  const report = (name: string, ready: string): void => {
    const node = informers.nodes.get(name);
    if (node === undefined) throw new Error(`no node ${name}`);
    const conditions = [{ type: 'Ready', status: ready, lastHeartbeatTime: `at ${beat}` }];
    informers.nodes.upsert({
      ...node,
      metadata: { ...node.metadata, resourceVersion: meta(name).resourceVersion },
      status: { ...node.status, conditions },
    });
  };
  const metrics = (): string => {
    const page = new MetricsText();
    controller.metrics.show(page);
    return page.toString();
  };
  return { ...env, pass, tainted, report, metrics };
}

const named = (count: number, zone = 'z'): Node[] =>
  Array.from({ length: count }, (_, index) => inZone(`${zone}${index + 1}`, 'True', zone));
const names = (nodes: readonly Node[]): string[] => nodes.map(({ metadata }) => metadata.name);

describe('NodeLifecycleController', () => {
  it('taints one node of a zone each 10 s', async () => {
    const env = cluster(named(10));
    await env.pass(10);
    const silent = ['z1', 'z2', 'z3'];
    await env.pass(40, silent);
    expect(env.tainted('NoSchedule')).toEqual(silent);
    expect(env.tainted('NoExecute')).toHaveLength(1);
    await env.pass(10, silent);
    expect(env.tainted('NoExecute')).toHaveLength(2);
    await env.pass(10, silent);
    expect(env.tainted('NoExecute')).toEqual(silent);
    expect(env.metrics()).toContain('node_collector_evictions_total{zone=":\0:z"} 3\n');
  });

  it('of a small zone that is lost for the larger part no more nodes are tainted', async () => {
    const env = cluster([...named(5), ...named(2, 'y')]);
    const silent = ['z1', 'z2', 'z3'];
    await env.pass(300, silent);
    expect(env.tainted('NoSchedule')).toEqual(silent);
    // The first two were no disruption yet.
    expect(env.tainted('NoExecute').length).toBeLessThan(3);
  });

  it('a zone that is lost as a whole is tainted at the usual rate, while others are ready', async () => {
    const env = cluster([...named(2), ...named(2, 'y')]);
    await env.pass(60, ['z1', 'z2']);
    expect(env.tainted('NoExecute')).toEqual(['z1', 'z2']);
  });

  it('with no node ready none is tainted for eviction, and what was is taken back; then each has its grace period anew', async () => {
    const env = cluster(named(3));
    const all = names(named(3));
    await env.pass(60, ['z1']);
    expect(env.tainted('NoExecute')).toEqual(['z1']);
    await env.pass(60, all);
    expect(env.tainted('NoSchedule')).toEqual(all);
    expect(env.tainted('NoExecute')).toEqual([]);
    expect(env.logs).toContain('node-lifecycle: all Nodes are not-Ready: nothing is evicted (master disruption mode)');
    env.report('z3', 'True');
    await env.pass(35, ['z1', 'z2']);
    expect(env.tainted('NoSchedule')).toEqual(['z1', 'z2']);
    env.report('z2', 'True');
    await env.pass(35, ['z1', 'z2']);
    expect(env.tainted('NoSchedule')).toEqual(['z1']);
  });

  it('a node for which its kubelet reports the same, without others, is not tainted for eviction', async () => {
    const env = cluster(named(1));
    env.report('z1', 'False');
    await env.pass(60);
    expect(env.tainted('NoSchedule')).toEqual(['z1']);
    expect(env.tainted('NoExecute')).toEqual([]);
  });

  it('a node that is excluded from disruption is tainted though it is the only one', async () => {
    const env = cluster([inZone('z1', 'True', 'z', { 'node.kubernetes.io/exclude-disruption': '' })]);
    await env.pass(60, ['z1']);
    expect(env.tainted('NoExecute')).toEqual(['z1']);
  });

  it('an API server that is away for a minute costs no node its pods', async () => {
    const env = cluster(named(3));
    const all = names(named(3));
    await env.pass(30);
    env.client.failures.push(...Array.from({ length: 10_000 }, () => apiError(503, 'ServiceUnavailable')));
    // Nothing is heard, and nothing can be written.
    await env.pass(60, all);
    env.client.failures.length = 0;
    // A node may have been declared Unknown before its next lease; its kubelet then reports what it is.
    await env.pass(60);
    for (const name of all) env.report(name, 'True');
    await env.pass(30);
    expect(env.tainted('NoSchedule')).toEqual([]);
    expect(env.client.writes.filter(({ body }) => JSON.stringify(body).includes('NoExecute'))).toEqual([]);
  });

  it.each([-3_600_000, 3_600_000])(
    'a wall clock that jumps by %i ms is no silence, and does not hide one',
    async (jump) => {
      const env = cluster(named(2));
      await env.pass(30);
      env.clock.jump(jump);
      await env.pass(30);
      expect(env.tainted('NoSchedule')).toEqual([]);
      await env.pass(30, ['z1']);
      expect(env.tainted('NoSchedule')).toEqual([]);
      env.clock.jump(jump);
      await env.pass(10, ['z1']);
      expect(env.tainted('NoExecute')).toEqual(['z1']);
    },
  );
});
