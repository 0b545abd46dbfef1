// DefaultPreemption: which pods have to go, on which node, and why none helps; with the filters of the default profile.

import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../../client/types.ts';
import type { SchedulerCache } from '../../../../controlplane/scheduler/cache/cache.ts';
import { podInfo } from '../../../../controlplane/scheduler/cache/pod-info.ts';
import { DEFAULT_SETTINGS } from '../../../../controlplane/scheduler/config/model.ts';
import { choose } from '../../../../controlplane/scheduler/cycle.ts';
import { CycleState } from '../../../../controlplane/scheduler/framework/cycle-state.ts';
import { fitErrorMessage } from '../../../../controlplane/scheduler/framework/fit-error.ts';
import { makeFramework } from '../../../../controlplane/scheduler/framework/profile.ts';
import { Nominator } from '../../../../controlplane/scheduler/nominator.ts';
import {
  type Candidate,
  cheapest,
  type PodDisruptionBudget,
} from '../../../../controlplane/scheduler/plugins/default-preemption.ts';
import { PLUGINS } from '../../../../controlplane/scheduler/plugins/registry.ts';
import { cluster, inZone, node, noStorage, on, pod, requests } from './support.ts';

const [profile] = DEFAULT_SETTINGS.profiles;
if (profile === undefined) throw new Error('no default profile');

/** "node: victims", or the message of the event. */
function outcome(
  incoming: Pod,
  cache: SchedulerCache,
  budgets: readonly PodDisruptionBudget[] = [],
  nominator = new Nominator(),
): string {
  const framework = makeFramework(
    profile ?? raise(),
    PLUGINS,
    {
      client: { create: () => raise() },
      storage: noStorage(),
      volumes: { bind: () => raise() },
      preemption: { budgets: () => budgets, isPreempting: () => false, random: () => 0 },
      defaultSelector: () => undefined,
    },
    nominator,
  );
  const [state, info] = [new CycleState(), podInfo(incoming)];
  const search = { random: () => 0, start: 0, percentageOfNodesToScore: undefined, nominated: undefined };
  const choice = choose(framework, state, info, cache, search);
  if (choice.kind === 'node') return choice.node.name;
  const result = framework.postFilter(state, info, cache, choice.diagnosis.statuses);
  return result.kind === 'nominate'
    ? `${result.node}: ${result.victims.map(({ name }) => name).join(', ')}`
    : fitErrorMessage(choice.diagnosis, result.message);
}

function raise(): never {
  throw new Error('not to be called');
}

const sized = (
  name: string,
  cpu: string,
  priority: number,
  where?: string,
  more: Partial<Pod['spec']> = {},
  labels = {},
): Pod => {
  const one = pod(name, { ...requests({ cpu }), priority, ...more }, labels);
  return where === undefined ? one : on(where, one);
};
const started = (startTime: string, one: Pod): Pod => ({ ...one, status: { startTime } });
const budget = (app: string, disruptionsAllowed: number, disruptedPods = {}): PodDisruptionBudget => ({
  metadata: { name: app, namespace: 'demo', uid: app, resourceVersion: '1' },
  spec: { selector: { matchLabels: { app } } },
  status: { disruptionsAllowed, disruptedPods, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
});
const high = (cpu: string, more: Partial<Pod['spec']> = {}, labels = {}): Pod =>
  sized('high', cpu, 100, undefined, more, labels);
const tainted = (name: string): Node =>
  node(name, { spec: { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] } });

describe('a pod of high priority', () => {
  it.each<[string, Pod, readonly Node[], readonly Pod[], string, PodDisruptionBudget[]?]>([
    ['takes a free node', high('4'), [node('a'), node('b')], [sized('q', '1', 0, 'a')], 'b'],
    ['has the only victim go', high('4'), [node('a')], [sized('q', '1', 0, 'a')], 'a: q'],
    [
      'has no more go than it needs, the least important first',
      high('2'),
      [node('a')],
      [sized('q', '2', 1, 'a'), sized('r', '2', 2, 'a')],
      'a: q',
    ],
    [
      'of the same priority the one that started last',
      high('2'),
      [node('a')],
      [
        started('2026-01-01T00:00:00Z', sized('q', '2', 1, 'a')),
        started('2026-01-02T00:00:00Z', sized('r', '2', 1, 'a')),
      ],
      'a: r',
    ],
    [
      'has none go of its own priority',
      high('2'),
      [node('a')],
      [sized('q', '4', 100, 'a')],
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    ],
    [
      'has none go in vain',
      high('4'),
      [node('a')],
      [sized('q', '1', 100, 'a'), sized('r', '1', 0, 'a')],
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Insufficient cpu.',
    ],
    [
      'has none go where that cannot help',
      high('5'),
      [node('a'), tainted('b'), tainted('c')],
      [sized('q', '1', 0, 'a'), sized('r', '1', 0, 'b')],
      '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {gpu: yes}. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.',
    ],
    [
      'which each node reports for itself',
      high('4'),
      [node('a'), node('b'), tainted('c')],
      [sized('q', '1', 100, 'a'), sized('r', '1', 200, 'b')],
      '0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 Insufficient cpu. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.',
    ],
    [
      'may not where its policy is Never',
      high('4', { preemptionPolicy: 'Never' }),
      [node('a')],
      [sized('q', '1', 0, 'a')],
      '0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.',
    ],
    [
      'spares what a budget protects',
      high('2'),
      [node('a')],
      [sized('q', '2', 1, 'a', {}, { app: 'q' }), sized('r', '2', 2, 'a')],
      'a: r',
      [budget('q', 0)],
    ],
    [
      'and the node where it would have to break one',
      high('4'),
      [node('a'), node('b')],
      [sized('q', '4', 1, 'a', {}, { app: 'q' }), sized('r', '4', 50, 'b')],
      'b: r',
      [budget('q', 0)],
    ],
    [
      'but breaks one where there is no other way',
      high('4'),
      [node('a')],
      [sized('q', '4', 1, 'a', {}, { app: 'q' })],
      'a: q',
      [budget('q', 0)],
    ],
    [
      'takes the node whose most important victim matters least',
      high('4'),
      [node('a'), node('b')],
      [sized('q', '4', 10, 'a'), sized('r', '2', 5, 'b'), sized('s', '2', 5, 'b')],
      'b: r, s',
    ],
    [
      'has a pod go that keeps it away',
      high('1', {}, { app: 'web' }),
      [node('a', { labels: inZone('a') })],
      [
        sized('q', '1', 0, 'a', {
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'topology.kubernetes.io/zone', labelSelector: { matchLabels: { app: 'web' } } },
              ],
            },
          },
        }),
      ],
      'a: q',
    ],
    [
      'has a pod go that has its port',
      high('1', { containers: [{ name: 'c', ports: [{ containerPort: 1, hostPort: 80 }] }] }),
      [node('a')],
      [sized('q', '1', 0, 'a', { containers: [{ name: 'c', ports: [{ containerPort: 1, hostPort: 80 }] }] })],
      'a: q',
    ],
  ])('%s', (_what, incoming, nodes, placed, expected, budgets) => {
    expect(outcome(incoming, cluster(nodes, placed), budgets)).toBe(expected);
  });

  it('waits for the victims of its first preemption', () => {
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }];
    const victim = sized('q', '4', 0, 'a');
    const leaving: Pod = {
      ...victim,
      metadata: { ...victim.metadata, deletionTimestamp: 'x' },
      status: { conditions },
    };
    const waiting: Pod = { ...high('4'), status: { nominatedNodeName: 'a' } };
    expect(outcome(waiting, cluster([node('a')], [leaving]))).toBe(
      '0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node.',
    );
  });
});

describe('a nominated pod', () => {
  const nominator = new Nominator();
  nominator.set(podInfo(sized('first', '3', 50)), 'a');
  it('counts on its node for pods of lower priority, and not for those of higher', () => {
    const cache = cluster([node('a')]);
    const message =
      '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';
    expect(outcome(sized('low', '2', 10), cache, [], nominator)).toBe(message);
    expect(outcome(sized('high', '2', 60), cache, [], nominator)).toBe('a');
  });
});

describe('cheapest', () => {
  const candidate = (name: string, violations: number, ...victims: Pod[]): Candidate => ({
    node: name,
    violations,
    victims: victims.map(podInfo),
  });
  const of = (name: string, priority: number, startTime?: string): Pod =>
    startTime === undefined ? sized(name, '1', priority) : started(startTime, sized(name, '1', priority));
  it.each<[string, Candidate[], string | undefined]>([
    ['none', [], undefined],
    ['fewer violations', [candidate('a', 1, of('p', 0)), candidate('b', 0, of('q', 9))], 'b'],
    ['lower highest priority', [candidate('a', 0, of('p', 5)), candidate('b', 0, of('q', 4), of('r', 4))], 'b'],
    ['smaller sum', [candidate('a', 0, of('p', 5), of('q', 3)), candidate('b', 0, of('r', 5), of('s', 2))], 'b'],
    [
      'fewer pods of negative priority',
      [candidate('a', 0, of('p', -5), of('q', -5)), candidate('b', 0, of('r', -5))],
      'b',
    ],
    [
      'that have run for the shortest time',
      [candidate('a', 0, of('p', 1, '2026-01-01T00:00:00Z')), candidate('b', 0, of('q', 1, '2026-01-02T00:00:00Z'))],
      'b',
    ],
    ['the first of equals', [candidate('a', 0, of('p', 1)), candidate('b', 0, of('q', 1))], 'a'],
  ])('%s', (_what, candidates, expected) => {
    expect(cheapest(candidates)?.node).toBe(expected);
  });
});
