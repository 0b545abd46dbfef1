import { beforeEach, describe, expect, it } from 'vitest';
import { StatusError } from '../../../../apiserver/errors.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import type { DeleteOptions } from '../../../../apiserver/registry/delete.ts';
import { Registry } from '../../../../apiserver/registry/registry.ts';
import { evictPod } from '../../../../apiserver/registry/subresources/eviction.ts';
import { checkBody } from '../../../../apiserver/schema/decode.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { create, lines, NOW, row, update } from '../kinds/support.ts';
import { ADMISSION } from '../support.ts';

type Fields = Record<string, unknown>;
let registry: Registry;
beforeEach(() => {
  const clock = new VirtualClock();
  const store = new Store(':memory:', { clock, history: { count: 100 } });
  registry = new Registry({ store, clock, kinds: RESOURCE_KINDS, checkBody, admission: ADMISSION });
});

function put(group: string, plural: string, object: KubeObject): void {
  const kind = registry.rowOf(group, plural);
  registry.put(kind, registry.key(kind, 'ns', object.metadata.name ?? ''), object);
}

function pod(status: Fields = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }): void {
  const metadata = { name: 'web', namespace: 'ns', uid: 'u1', labels: { app: 'web' } };
  put('', 'pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: 'n', containers: [] }, status });
}

function budget(status: Fields, spec: Fields = {}, name = 'budget'): void {
  const metadata = { name, namespace: 'ns', generation: 1 };
  put('policy', 'poddisruptionbudgets', {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    status: { observedGeneration: 1, ...status },
  });
}

function evict(options: Partial<DeleteOptions> = {}, body: Fields = { metadata: { name: 'web' } }): void {
  evictPod(registry, 'ns', 'web', body, () => ({ dryRun: false, ...options }));
}

function failure(options: Partial<DeleteOptions> = {}, body?: Fields): StatusError['status'] {
  try {
    evict(options, body);
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new Error('the pod was evicted');
}

const stored = (group: string, plural: string, name: string): Readonly<KubeObject> =>
  registry.get(registry.rowOf(group, plural), 'ns', name).object;
const podNow = (): Readonly<KubeObject> => stored('', 'pods', 'web');
const budgetStatus = (): unknown => stored('policy', 'poddisruptionbudgets', 'budget')['status'];

describe('an eviction', () => {
  it('without a budget marks the pod and deletes it', () => {
    pod();
    evict();
    expect(podNow().metadata.deletionTimestamp).toBeDefined();
    expect(podNow()['status']).toMatchObject({
      conditions: [
        { type: 'Ready' },
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'EvictionByEvictionAPI',
          message: 'Eviction API: evicting',
        },
      ],
    });
  });

  it('takes one disruption from the budget, the last one with its condition', () => {
    pod();
    budget({ disruptionsAllowed: 1 });
    evict();
    expect(budgetStatus()).toMatchObject({
      disruptionsAllowed: 0,
      disruptedPods: { web: expect.any(String) },
      conditions: [{ type: 'DisruptionAllowed', status: 'False', reason: 'InsufficientPods' }],
    });
    expect(podNow().metadata.deletionTimestamp).toBeDefined();
  });

  it('that the budget does not allow is refused, and changes nothing', () => {
    pod();
    budget({ disruptionsAllowed: 0, desiredHealthy: 2, currentHealthy: 2 });
    const [before, podBefore] = [budgetStatus(), podNow()];
    expect(failure()).toMatchObject({
      code: 429,
      reason: 'TooManyRequests',
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      details: {
        causes: [
          {
            reason: 'DisruptionBudget',
            message: 'The disruption budget budget needs 2 healthy pods and has 2 currently',
          },
        ],
      },
    });
    expect([budgetStatus(), podNow()]).toEqual([before, podBefore]);
  });

  it('waits for a budget that has not been processed', () => {
    pod();
    budget({ disruptionsAllowed: 1, observedGeneration: 0 });
    expect(failure()).toMatchObject({
      code: 429,
      details: {
        retryAfterSeconds: 10,
        causes: [{ message: 'The disruption budget budget is still being processed by the server.' }],
      },
    });
  });

  it.each<[string, Fields]>([
    ['is pending', { phase: 'Pending' }],
    ['has succeeded', { phase: 'Succeeded' }],
  ])('of a pod that %s needs no budget', (_what, status) => {
    pod(status);
    budget({ disruptionsAllowed: 0 });
    evict();
    expect(budgetStatus()).toMatchObject({ disruptionsAllowed: 0 });
  });

  it.each<[string, Fields, Fields, boolean]>([
    ['while the others are healthy', { currentHealthy: 2, desiredHealthy: 2 }, {}, true],
    ['while too few are healthy', { currentHealthy: 1, desiredHealthy: 2 }, {}, false],
    ['where the budget always allows it', { desiredHealthy: 2 }, { unhealthyPodEvictionPolicy: 'AlwaysAllow' }, true],
  ])('of a pod that is not ready %s', (_when, status, spec, allowed) => {
    pod({ phase: 'Running' });
    budget({ disruptionsAllowed: 0, ...status }, spec);
    if (allowed) evict();
    else expect(failure().code).toBe(429);
    expect(podNow().metadata.deletionTimestamp !== undefined).toBe(allowed);
  });

  it('of a pod with two budgets is refused', () => {
    pod();
    budget({ disruptionsAllowed: 1 });
    budget({ disruptionsAllowed: 1 }, {}, 'second');
    expect(failure()).toMatchObject({
      code: 500,
      message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    });
  });

  it('passes over the budgets of other pods', () => {
    pod();
    budget({ disruptionsAllowed: 0 }, { selector: { matchLabels: { app: 'other' } } });
    budget({ disruptionsAllowed: 0 }, { selector: undefined }, 'none');
    evict();
    expect(podNow().metadata.deletionTimestamp).toBeDefined();
  });

  it('as a dry run asks the budget and changes nothing', () => {
    pod();
    budget({ disruptionsAllowed: 1 });
    const before = [podNow(), budgetStatus()];
    evict({ dryRun: true });
    expect([podNow(), budgetStatus()]).toEqual(before);
    budget({ disruptionsAllowed: 0 });
    expect(failure({ dryRun: true }).code).toBe(429);
  });

  it.each<[Partial<DeleteOptions>, string]>([
    [
      { uid: 'other' },
      'Operation cannot be fulfilled on Pod "web": the UID in the precondition (other) does not match the UID in record (u1). The object might have been deleted and then recreated',
    ],
    [
      { resourceVersion: '99' },
      'Operation cannot be fulfilled on Pod "web": the ResourceVersion in the precondition (99) does not match the ResourceVersion in record (2). The object might have been modified',
    ],
  ])('with preconditions %j', (options, message) => {
    pod();
    expect(failure(options)).toMatchObject({ code: 409, message });
    expect(podNow().metadata.deletionTimestamp).toBeUndefined();
  });

  it('with the version of now goes through', () => {
    pod();
    evict({ resourceVersion: podNow().metadata.resourceVersion ?? '' });
    expect(podNow().metadata.deletionTimestamp).toBeDefined();
  });

  it('names its pod', () => {
    pod();
    expect(failure({}, { metadata: { name: 'other' } })).toMatchObject({
      code: 400,
      message: 'name in URL does not match name in Eviction object',
    });
    const deleteOptions = { ignoreStoreReadErrorWithClusterBreakingPotential: true };
    expect(failure({}, { metadata: { name: 'web' }, deleteOptions })).toMatchObject({
      code: 422,
      message:
        'Eviction.policy "web" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set for pod eviction, try after removing the option',
    });
  });
});

describe('a budget', () => {
  const kind = row('poddisruptionbudgets', 'policy');
  const wrong = (spec: Fields): string[] => lines(create(kind, { spec }).errors);
  it.each<[Fields, string[]]>([
    [{ minAvailable: 1, selector: { matchLabels: { a: 'b' } } }, []],
    [{ minAvailable: '110%' }, ['spec.minAvailable: Invalid value: "110%": must not be greater than 100%']],
    [{ maxUnavailable: -1 }, ['spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0']],
    [
      { minAvailable: 1, maxUnavailable: 1 },
      [
        'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set',
      ],
    ],
    [
      { unhealthyPodEvictionPolicy: 'No' },
      ['spec.unhealthyPodEvictionPolicy: Unsupported value: "No": supported values: "AlwaysAllow", "IfHealthyBudget"'],
    ],
  ])('%j', (spec, expected) => expect(wrong(spec)).toEqual(expected));

  it('reports conditions that are complete', () => {
    const old = create(kind, { spec: {} }).object;
    const status = { conditions: [{ type: 'A', status: 'Maybe', reason: '1' }], expectedPods: -1 };
    expect(lines(kind.strategy.validateStatusUpdate?.({ ...old, status }, old) ?? [])).toEqual([
      'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
      'status.conditions[0].lastTransitionTime: Required value: must be set',
      expect.stringMatching(/^status\.conditions\[0\]\.reason: Invalid value: "1": a condition reason must start with/),
      'status.expectedPods: Invalid value: -1: must be greater than or equal to 0',
    ]);
    expect(update(kind, old, () => undefined).errors).toEqual([]);
  });

  it('shows what it allows', () => {
    const made = create(kind, { spec: { minAvailable: '50%' } }).object;
    expect(kind.strategy.table?.row(made, NOW)).toEqual(['web', '50%', 'N/A', 0, '<unknown>']);
  });
});
