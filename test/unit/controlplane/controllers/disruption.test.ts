// The disruption controller: the status of budgets as tables, the scales of pods' controllers, and what it does against a client in
// memory.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import {
  budgetStatus,
  countHealthy,
  disruptedPods,
  expectedPods,
  selectorText,
} from '../../../../controlplane/controllers/disruption/budget.ts';
import { DisruptionController, targetStaleInMs } from '../../../../controlplane/controllers/disruption/disruption.ts';
import type {
  Deployment,
  PodDisruptionBudget,
  PodDisruptionBudgetStatus,
  ReplicaSet,
} from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { apiError, type Write } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';

const AT = epochMs(Date.parse(NOW));
const ago = (seconds: number): string => rfc3339(plusMs(AT, -seconds * 1000));
type Spec = PodDisruptionBudget['spec'];

function makeBudget(spec: Partial<Spec>, status?: PodDisruptionBudgetStatus, name = 'guard'): PodDisruptionBudget {
  return {
    metadata: { ...meta(name), namespace: 'demo', generation: 1 },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

interface Facts {
  readonly ready?: boolean;
  readonly deleted?: boolean;
  readonly owner?: { apiVersion: string; kind: string; name: string };
  /** Seconds since the condition was set. */
  readonly target?: number;
  readonly reason?: string;
  readonly phase?: string;
}
const SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1' };
function podOf(name: string, { ready = true, deleted, owner, target, reason, phase = 'Running' }: Facts = {}): Pod {
  const condition = (type: string, status: string, at: string) => ({ type, status, lastTransitionTime: at });
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels: { app: 'web' },
      ...(deleted === true ? { deletionTimestamp: NOW } : {}),
      ...(owner === undefined ? {} : { ownerReferences: [{ ...owner, uid: `uid-${owner.name}`, controller: true }] }),
    },
    spec: { containers: [] },
    status: {
      phase,
      conditions: [
        ...(ready ? [condition('Ready', 'True', ago(99))] : []),
        ...(target === undefined
          ? []
          : [{ ...condition('DisruptionTarget', 'True', ago(target)), reason: reason ?? 'x' }]),
      ],
    },
  };
}

describe('how many pods there should be', () => {
  it.each<[string, Partial<Spec>, number, number, number]>([
    ['a number of available ones', { minAvailable: 2 }, 3, 3, 2],
    ['more than there are', { minAvailable: 5 }, 3, 3, 5],
    ['a part, rounded up', { minAvailable: '30%' }, 10, 10, 3],
    ['a part that is no whole number', { minAvailable: '28%' }, 10, 10, 3],
    ['all of them', { minAvailable: '100%' }, 7, 7, 7],
    ['a number of missing ones', { maxUnavailable: 2 }, 5, 5, 3],
    ['more than there are', { maxUnavailable: 9 }, 5, 5, 0],
    ['a part of missing ones, rounded up', { maxUnavailable: '30%' }, 5, 5, 3],
    ['neither', {}, 5, 0, 0],
  ])('%s', (_what, spec, count, pods, healthy) => {
    expect(expectedPods(makeBudget(spec), count)).toEqual({ pods, healthy });
  });
});

describe('the status', () => {
  const allowed = (healthy: number, wanted: number, pods = 5): unknown[] => {
    const status = budgetStatus(makeBudget({}), { pods, healthy: wanted }, healthy, {}, AT);
    return [status.disruptionsAllowed, status.conditions?.[0]?.status, status.conditions?.[0]?.reason];
  };
  it.each([
    [5, 3, 5, [2, 'True', 'SufficientPods']],
    [3, 3, 5, [0, 'False', 'InsufficientPods']],
    [2, 3, 5, [0, 'False', 'InsufficientPods']],
    [1, 0, 0, [0, 'False', 'InsufficientPods']],
  ])('of %i healthy pods and %i that have to be, of %i', (healthy, wanted, pods, expected) => {
    expect(allowed(healthy, wanted, pods)).toEqual(expected);
  });

  it('counts ready pods that stay', () => {
    const pods = [podOf('a'), podOf('b', { ready: false }), podOf('c', { deleted: true }), podOf('d')];
    expect(countHealthy(pods, { d: NOW })).toBe(1);
  });

  it('remembers evictions until the pod is on its way out, or has stayed for two minutes', () => {
    const status = {
      currentHealthy: 0,
      desiredHealthy: 0,
      disruptionsAllowed: 0,
      expectedPods: 0,
      disruptedPods: { new: ago(10), old: ago(121), leaving: ago(1), gone: ago(1) },
    };
    const pods = [podOf('new'), podOf('old'), podOf('leaving', { deleted: true }), podOf('other')];
    const found = disruptedPods(makeBudget({}, status), pods, AT);
    expect(found.pods).toEqual({ new: ago(10) });
    expect(found.notDeleted.map(({ metadata }) => metadata.name)).toEqual(['old']);
    expect(found.recheckMs).toBe(110_001);
  });

  it('changes the condition’s time with its value alone', () => {
    const first = budgetStatus(makeBudget({}), { pods: 2, healthy: 2 }, 2, {}, AT);
    const later = plusMs(AT, 60_000);
    const again = budgetStatus(makeBudget({}, first), { pods: 2, healthy: 2 }, 1, {}, later);
    expect(again.conditions?.[0]?.lastTransitionTime).toBe(NOW);
    const other = budgetStatus(makeBudget({}, first), { pods: 2, healthy: 1 }, 2, {}, later);
    expect(other.conditions).toEqual([
      {
        type: 'DisruptionAllowed',
        status: 'True',
        reason: 'SufficientPods',
        message: '',
        lastTransitionTime: rfc3339(later),
        observedGeneration: 1,
      },
    ]);
  });
});

it.each<[string, Facts, number | undefined]>([
  ['none', {}, undefined],
  ['new', { target: 20 }, 100_000],
  ['stale', { target: 121 }, 0],
  ['of a pod that goes', { target: 121, deleted: true }, undefined],
  ['of one that has ended', { target: 121, phase: 'Failed' }, undefined],
  ['the kubelet’s', { target: 121, reason: 'TerminationByKubelet' }, undefined],
])('a DisruptionTarget: %s', (_what, facts, wanted) => {
  expect(targetStaleInMs(podOf('p', facts), AT)).toBe(wanted);
});

it('a selector is printed as Go prints it', () => {
  expect(selectorText({ matchLabels: { b: '2', a: '1' } })).toBe(
    '&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{},}',
  );
  expect(selectorText({ matchExpressions: [{ key: 'k', operator: 'In', values: ['x', 'y'] }] })).toBe(
    '&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}',
  );
});

describe('the controller', () => {
  const set = (deployment?: string): ReplicaSet => ({
    metadata: {
      ...meta('web-1'),
      namespace: 'demo',
      ...(deployment === undefined
        ? {}
        : {
            ownerReferences: [
              {
                apiVersion: 'apps/v1',
                kind: 'Deployment',
                name: deployment,
                uid: `uid-${deployment}`,
                controller: true,
              },
            ],
          }),
    },
    spec: { selector: {}, replicas: 4 },
  });
  const deployment: Deployment = {
    metadata: { ...meta('web'), namespace: 'demo' },
    spec: { selector: {}, template: {}, replicas: 10 },
  };

  function start(budgets: readonly PodDisruptionBudget[], pods: readonly Pod[], sets: readonly ReplicaSet[] = []) {
    const env = environment();
    env.informers.replicaSets.replace(sets);
    env.informers.deployments.replace([deployment]);
    const list = (kind: string, names: readonly string[]): object => ({
      resources: names.map((name) => ({ name, kind: name.endsWith('/scale') ? 'Scale' : kind })),
    });
    env.client.objects.set('/apis/example.com/v1', list('Fleet', ['fleets', 'fleets/scale']));
    env.client.objects.set('/apis/batch/v1', list('Job', ['jobs', 'jobs/status']));
    env.client.objects.set('/apis/example.com/v1/namespaces/demo/fleets/f/scale', {
      metadata: { ...meta('f'), namespace: 'demo' },
      spec: { replicas: 7 },
    });
    const controller = new DisruptionController(env.context, env.informers);
    env.informers.pods.replace(pods);
    env.informers.podDisruptionBudgets.replace(budgets);
    env.run(controller);
    return env;
  }
  const statusOf = (writes: readonly Write[]) => (writes.at(-1)?.body as PodDisruptionBudget | undefined)?.status;

  it.each<[string, Facts['owner'], readonly ReplicaSet[], number]>([
    ['a replica set', SET, [set()], 4],
    ['its deployment', SET, [set('web')], 10],
    ['a custom kind', { apiVersion: 'example.com/v1', kind: 'Fleet', name: 'f' }, [], 7],
  ])('takes the number of pods from %s', async (_what, owner, sets, wanted) => {
    const pods = ['a', 'b'].map((name) => podOf(name, owner === undefined ? {} : { owner }));
    const env = start([makeBudget({ maxUnavailable: 1 })], pods, sets);
    await settle();
    expect(statusOf(env.client.writes)).toMatchObject({
      expectedPods: wanted,
      desiredHealthy: wanted - 1,
      currentHealthy: 2,
      observedGeneration: 1,
    });
    expect(env.events).toEqual([]);
  });

  it.each<[string, NonNullable<Facts['owner']>, string]>([
    [
      'a kind without a scale',
      { apiVersion: 'batch/v1', kind: 'Job', name: 'j' },
      'jobs.batch does not implement the scale subresource',
    ],
    ['an unknown kind', { apiVersion: 'x/v1', kind: 'Y', name: 'y' }, 'no matches for kind "Y" in version "x/v1"'],
    [
      'an owner that is gone',
      { apiVersion: 'example.com/v1', kind: 'Fleet', name: 'g' },
      'found no controllers for pod "a"',
    ],
  ])('allows nothing where it cannot count: %s', async (_what, owner, message) => {
    const env = start([makeBudget({ maxUnavailable: 1 })], [podOf('a', { owner })]);
    await settle();
    expect(statusOf(env.client.writes)).toMatchObject({
      disruptionsAllowed: 0,
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message }],
    });
    const why = `Failed to calculate the number of expected pods: ${message}`;
    expect(env.events).toEqual([`guard CalculateExpectedPodCountFailed: ${why}`]);
  });

  it('counts pods without a controller where a number is enough, and warns where it is not', async () => {
    const enough = start([makeBudget({ minAvailable: 1 })], [podOf('a'), podOf('b')]);
    await settle();
    expect(statusOf(enough.client.writes)).toMatchObject({ expectedPods: 2, disruptionsAllowed: 1 });
    expect(enough.events).toEqual([]);
    const not = start([makeBudget({ minAvailable: '50%' })], [podOf('a')]);
    await settle();
    expect(statusOf(not.client.writes)).toMatchObject({ expectedPods: 0, disruptionsAllowed: 0 });
    expect(not.events[0]).toMatch(/^guard UnmanagedPods: Pods selected by this PodDisruptionBudget \(selector: &Label/);
  });

  it('reports no pods, and pods of two budgets', async () => {
    const none = start([makeBudget({ minAvailable: 1 })], []);
    await settle();
    expect(none.events).toEqual(['guard NoPods: No matching pods found']);
    const env = start([makeBudget({ minAvailable: 1 }), makeBudget({ minAvailable: 1 }, undefined, 'other')], []);
    env.informers.pods.upsert(podOf('a'));
    await settle();
    expect(env.events).toContain(
      'a MultiplePodDisruptionBudgets: Pod "demo"/"a" matches multiple PodDisruptionBudgets.  Chose "guard" arbitrarily.',
    );
  });

  it('reports a pod that was evicted and stays, when its time is over', async () => {
    const status = { currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1 };
    const budget = makeBudget({ minAvailable: 1 }, { ...status, disruptedPods: { a: ago(100) } });
    const env = start([budget], [podOf('a')]);
    await settle();
    expect(statusOf(env.client.writes)).toMatchObject({ currentHealthy: 0, disruptedPods: { a: ago(100) } });
    await env.clock.advance(20_001);
    expect(env.events).toEqual(["a NotDeleted: Pod was expected by PDB demo/guard to be deleted but it wasn't"]);
    expect(statusOf(env.client.writes)).toMatchObject({ currentHealthy: 1 });
  });

  it('leaves a budget that another has changed to the next sync', async () => {
    const env = start([makeBudget({ minAvailable: 1 })], [podOf('a')]);
    env.client.failures.push(apiError(409, 'Conflict'));
    await settle();
    expect(env.client.writes).toEqual([]);
    await env.clock.advance(5);
    expect(statusOf(env.client.writes)).toMatchObject({ currentHealthy: 1 });
  });

  it('takes back the target condition of a pod that was not deleted', async () => {
    const env = start([], [podOf('a', { target: 60 })]);
    await env.clock.advance(59_000);
    expect(env.client.writes).toEqual([]);
    await env.clock.advance(1000);
    expect(env.client.writes[0]).toMatchObject({
      path: '/api/v1/namespaces/demo/pods/a/status',
      body: { status: { conditions: [{ type: 'DisruptionTarget', status: 'False' }] } },
    });
  });
});
