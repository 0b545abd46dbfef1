// Disruption budgets with stock kubectl, against an API server and the control plane: their status, and a drain that waits for them.
// The test reports pods as ready the way a node would.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod } from '../../../client/types.ts';
import type { PodDisruptionBudget } from '../../../controlplane/controllers/shared/objects.ts';
import { isActive, isReady } from '../../../controlplane/controllers/shared/pods.ts';
import type { Kubectl } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { eventually } from './cluster.ts';
import { PodRunner } from './pod-runner.ts';

const versions = (await kubectls()).filter(({ full }) => full);
const runner = new PodRunner(() => undefined);

/** kubectl waits five seconds before it tries an eviction again: all versions do at the same time. */
const scenarios = versions.map(({ command, version }) => {
  const suffix = version.replace('.', '-');
  const namespace = `disruption-${suffix}`;
  const nodes = [`a-${suffix}`, `b-${suffix}`] as const;
  let kubectl: Kubectl;
  const budget = (): Promise<PodDisruptionBudget> =>
    runner.admin.get(resourcePath('policy/v1', 'poddisruptionbudgets', { namespace, name: 'guard' }));
  const podsOn = (node: string): readonly Pod[] =>
    runner.pods.list().filter((pod) => pod.metadata.namespace === namespace && pod.spec.nodeName === node);
  const allowed = (count: number): Promise<unknown> =>
    eventually(`${count} disruptions`, async () => {
      const { status, metadata } = await budget();
      const seen = status?.observedGeneration === metadata.generation;
      return seen && status?.disruptionsAllowed === count ? true : undefined;
    });

  async function prepare(): Promise<void> {
    kubectl = await runner.namespace(command, namespace);
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady' };
    const capacity = { cpu: '4', memory: '8Gi', pods: '110' };
    for (const name of nodes) {
      await runner.admin.create('/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { set: suffix } },
        status: { capacity, allocatable: capacity, conditions: [ready] },
      });
      // A new node is tainted until a controller has seen that it is ready.
      await runner.admin.patch(resourcePath('v1', 'nodes', { name }), { spec: { taints: null } }, 'merge');
    }
    await kubectl.feed(
      JSON.stringify({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web' },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: {
              nodeSelector: { set: suffix },
              terminationGracePeriodSeconds: 0,
              containers: [{ name: 'c', image: 'run' }],
            },
          },
        },
      }),
      'create',
      '-f',
      '-',
    );
    await kubectl.ok('create', 'pdb', 'guard', '--selector=app=web', '--max-unavailable=0');
  }

  async function count(): Promise<void> {
    await eventually('three healthy pods', async () =>
      (await budget()).status?.currentHealthy === 3 ? true : undefined,
    );
    expect((await budget()).status).toMatchObject({
      expectedPods: 3,
      desiredHealthy: 3,
      disruptionsAllowed: 0,
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' }],
    });
    await kubectl.ok('patch', 'pdb/guard', '-p', '{"spec":{"maxUnavailable":"50%"}}');
    await allowed(2);
    await kubectl.ok('patch', 'pdb/guard', '-p', '{"spec":{"maxUnavailable":0}}');
    await allowed(0);
    expect(await kubectl.ok('get', 'pdb/guard', '--no-headers')).toMatch(/^guard +N\/A +0 +0 /);
  }

  async function drain(): Promise<void> {
    const [first, second] = nodes;
    // They run here before the scheduler has bound them.
    await eventually('three pods on the nodes', async () => (nodes.flatMap(podsOn).length === 3 ? true : undefined));
    const node = podsOn(first).length > 0 ? first : second;
    const other = node === first ? second : first;
    const args = ['drain', node, '--ignore-daemonsets', '--timeout=240s'];
    // It goes on trying until it is stopped here.
    await kubectl.untilError(args, /Cannot evict pod as it would violate the pod's disruption budget\./);
    expect(podsOn(node).filter(isActive).length).toBeGreaterThan(0);
    await kubectl.ok('patch', 'pdb/guard', '-p', '{"spec":{"maxUnavailable":3}}');
    await allowed(3);
    const drained = await kubectl.run(args);
    expect(drained.stderr).not.toContain('Cannot evict');
    expect(drained.stdout).toContain(`node/${node} drained`);
    await eventually('three pods on the other node', async () =>
      podsOn(other).filter(isReady).length === 3 ? true : undefined,
    );
    // The evictions are over: no pod is waited for any more.
    await eventually('the status', async () => {
      const { status } = await budget();
      return status?.disruptionsAllowed === 3 && status.disruptedPods === undefined ? true : undefined;
    });
    await kubectl.ok('uncordon', node);
  }

  return { prepare, count, drain };
});

beforeAll(async () => {
  // The nodes report nothing after their creation, and stay ready all the same.
  await runner.start(['*', '-node-lifecycle-controller']);
  await Promise.all(scenarios.map(({ prepare }) => prepare()));
});
afterAll(() => runner.stop());

it('a budget counts by the scale of a deployment', async () => {
  await Promise.all(scenarios.map(({ count }) => count()));
});

it('a budget holds up a drain until it allows it, and the pods come back on another node', async () => {
  await Promise.all(scenarios.map(({ drain }) => drain()));
});
