// What the Job controller decides, as tables: sets of indexes, policies, back-off, the end of a job, its pods, its templates.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../../client/types.ts';
import { addFailures, backoffLeftMs, finishedAt } from '../../../../../controlplane/controllers/job/backoff.ts';
import { completed, decideEnd } from '../../../../../controlplane/controllers/job/end.ts';
import { jobFacts } from '../../../../../controlplane/controllers/job/facts.ts';
import { matchFailurePolicy } from '../../../../../controlplane/controllers/job/failure-policy.ts';
import {
  countCommon,
  formatIndexes,
  indexesOf,
  lowestMissing,
  parseIndexes,
  union,
} from '../../../../../controlplane/controllers/job/indexes.ts';
import { planPods } from '../../../../../controlplane/controllers/job/manage.ts';
import { metSuccessPolicy } from '../../../../../controlplane/controllers/job/success-policy.ts';
import { podToCreate } from '../../../../../controlplane/controllers/job/template.ts';
import type { Job, JobStatus } from '../../../../../controlplane/controllers/shared/objects.ts';
import { plusMs } from '../../../../../lib/clock.ts';
import { AT, ago, type Facts, FINALIZER, INDEX, jobPod, makeJob } from './cases.ts';

const NONE: ReadonlySet<string> = new Set();
const podsOf = (facts: readonly Facts[]): Pod[] => facts.map((each, place) => jobPod(`p${place}`, each));
const factsOf = (job: Job, pods: readonly Facts[]) => jobFacts(job, podsOf(pods), NONE);
const indexed = (spec: Partial<Job['spec']>, status?: JobStatus): Job =>
  makeJob({ completionMode: 'Indexed', parallelism: 3, completions: 3, ...spec }, status);

describe('sets of indexes', () => {
  it.each([
    ['', 6, ''],
    ['0,1,2', 6, '0-2'],
    ['0,1', 6, '0,1'],
    ['0-2,5', 6, '0-2,5'],
    ['1,3-5,7', 6, '1,3-5'],
    ['0-9', 3, '0-2'],
    ['a,2,3-b,4', 6, '2,4'],
    ['0-1,2-3', 6, '0-3'],
  ])('%j below %i is %j', (text, completions, wanted) => {
    expect(formatIndexes(parseIndexes(text, completions))).toBe(wanted);
  });

  it.each([
    ['0-2', [3], '0-3'],
    ['0,4', [2], '0,2,4'],
    ['2-4', [0, 1, 3], '0-4'],
    ['', [7, 5], '5,7'],
  ])('%j with %j is %j', (text, more, wanted) => {
    expect(formatIndexes(union(parseIndexes(text, 10), indexesOf(more)))).toBe(wanted);
  });

  it.each([
    ['', 2, [0, 1]],
    ['0-2,4', 3, [3, 5, 6]],
    ['0-6', 3, []],
    ['1', 9, [0, 2, 3, 4, 5, 6]],
  ])('below 7 without %j the lowest %i are %j', (text, count, wanted) => {
    expect(lowestMissing(parseIndexes(text, 7), count, 7)).toEqual(wanted);
  });

  it('knows how many two sets share', () => {
    expect(countCommon(parseIndexes('0-5,8', 10), parseIndexes('4-8', 10))).toBe(3);
  });
});

describe('the failure policy', () => {
  const exits = (action: string, operator: string, values: number[], containerName?: string) => ({
    action,
    onExitCodes: { operator, values, ...(containerName === undefined ? {} : { containerName }) },
    onPodConditions: [],
  });
  const disrupted = (action: string) => ({ action, onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] });
  const failed = { phase: 'Failed', ended: 1 };
  const code5 = 'Container c for pod demo/p failed with exit code 5 matching FailJob rule at index';
  it.each<[string, Parameters<typeof matchFailurePolicy>[0], Facts, object]>([
    ['none', undefined, failed, { counts: true }],
    ['no rule matches', { rules: [exits('FailJob', 'In', [2])] }, failed, { counts: true }],
    ['In', { rules: [exits('FailJob', 'In', [5])] }, { ...failed, exit: 5 }, { counts: true, failsJob: `${code5} 0` }],
    [
      'NotIn',
      { rules: [exits('FailJob', 'NotIn', [4])] },
      { ...failed, exit: 5 },
      { counts: true, failsJob: `${code5} 0` },
    ],
    [
      'not a container that succeeded',
      { rules: [exits('Ignore', 'NotIn', [4])] },
      { ...failed, exit: 0 },
      { counts: true },
    ],
    ['not one that runs', { rules: [exits('Ignore', 'NotIn', [4])] }, { phase: 'Failed' }, { counts: true }],
    ['not another container', { rules: [exits('Ignore', 'In', [1], 'other')] }, failed, { counts: true }],
    ['the container', { rules: [exits('Ignore', 'In', [1], 'c')] }, failed, { counts: false }],
    [
      'the first rule that matches',
      { rules: [exits('Count', 'In', [9]), exits('Ignore', 'In', [5]), exits('FailJob', 'In', [5])] },
      { ...failed, exit: 5 },
      { counts: false },
    ],
    [
      'Count before FailJob',
      { rules: [exits('Count', 'In', [1]), exits('FailJob', 'In', [1])] },
      failed,
      { counts: true },
    ],
    ['FailIndex', { rules: [exits('FailIndex', 'In', [1])] }, failed, { counts: true, failsIndex: true }],
    [
      'an unknown action',
      { rules: [exits('Other', 'In', [1]), exits('Ignore', 'In', [1])] },
      failed,
      { counts: false },
    ],
    [
      'a condition that is ignored',
      { rules: [disrupted('Ignore')] },
      { ...failed, condition: 'DisruptionTarget' },
      { counts: false },
    ],
    [
      'a condition that fails the job',
      { rules: [disrupted('FailJob')] },
      { ...failed, condition: 'DisruptionTarget' },
      {
        counts: true,
        failsJob: 'Pod demo/p has condition DisruptionTarget matching FailJob rule at index 0',
      },
    ],
    ['another condition', { rules: [disrupted('Ignore')] }, { ...failed, condition: 'Other' }, { counts: true }],
  ])('%s', (_what, policy, pod, wanted) => {
    expect(matchFailurePolicy(policy, jobPod('p', pod))).toEqual(wanted);
  });
});

describe('the success policy', () => {
  it.each<[string, { succeededIndexes?: string; succeededCount?: number }[], string, string | undefined]>([
    ['nothing has succeeded', [{ succeededCount: 1 }], '', undefined],
    ['a count', [{ succeededCount: 2 }], '0,5', 'Matched rules at index 0'],
    ['too few', [{ succeededCount: 3 }], '0,5', undefined],
    ['all of some indexes', [{ succeededIndexes: '1-2' }], '0-3', 'Matched rules at index 0'],
    ['not all', [{ succeededIndexes: '1-2' }], '0-1', undefined],
    ['a count of some', [{ succeededIndexes: '1-4', succeededCount: 2 }], '0,2,4', 'Matched rules at index 0'],
    ['too few of some', [{ succeededIndexes: '1-4', succeededCount: 2 }], '0,2,7', undefined],
    ['the second rule', [{ succeededIndexes: '9' }, { succeededCount: 1 }], '0', 'Matched rules at index 1'],
    ['a rule that cannot be read', [{ succeededIndexes: 'x', succeededCount: 0 }], '0', undefined],
  ])('%s', (_what, rules, succeeded, wanted) => {
    expect(metSuccessPolicy({ rules }, 10, parseIndexes(succeeded, 10))).toBe(wanted);
  });
});

describe('back-off', () => {
  it.each([
    [0, 0, 0],
    [1, 0, 10],
    [2, 5, 15],
    [7, 0, 600],
    [90, 0, 600],
    [1, 10, 0],
  ])('%i failures, the last %i s ago: %i s to wait', (count, since, wanted) => {
    expect(backoffLeftMs({ count, last: plusMs(AT, -since * 1000) }, AT)).toBe(wanted * 1000);
  });

  const end = (phase: string, ended: number): Facts => ({ phase, ended });
  it.each<[string, number, Facts[], Facts[], object | undefined]>([
    ['nothing new', 2, [], [], { count: 2, last: AT }],
    ['more failures', 2, [], [end('Failed', 9), end('Failed', 4)], { count: 4, last: plusMs(AT, -4000) }],
    ['a success ends it', 2, [end('Succeeded', 3)], [], undefined],
    ['failures before the success do not count', 2, [end('Succeeded', 3)], [end('Failed', 4)], undefined],
    [
      'those after it do',
      2,
      [end('Succeeded', 3), end('Succeeded', 7)],
      [end('Failed', 4), end('Failed', 2), end('Failed', 1)],
      { count: 2, last: plusMs(AT, -1000) },
    ],
  ])('%s', (_what, before, succeeded, failed, wanted) => {
    expect(addFailures({ count: before, last: AT }, podsOf(succeeded), podsOf(failed))).toEqual(wanted);
  });

  it('takes the end of a pod from what says it best', () => {
    const pod = jobPod('p', { phase: 'Failed', ended: 7 });
    expect(finishedAt(pod)).toBe(plusMs(AT, -7000));
    const condition = { type: 'Ready', status: 'False', lastTransitionTime: ago(5) };
    const notReady: Pod = { ...pod, status: { phase: 'Failed', conditions: [condition] } };
    expect(finishedAt(notReady)).toBe(plusMs(AT, -5000));
    const metadata = { ...pod.metadata, deletionTimestamp: ago(0), deletionGracePeriodSeconds: 30 };
    expect(finishedAt({ ...pod, metadata, status: {} })).toBe(plusMs(AT, -30_000));
    expect(finishedAt({ ...pod, status: {} })).toBe(plusMs(AT, -1_000_000));
  });

  it('takes a sidecar’s end for the pod’s', () => {
    const pod = jobPod('p', { phase: 'Succeeded', ended: 7 });
    const [container] = pod.status?.containerStatuses ?? [];
    if (container === undefined) throw new Error('the pod has a container');
    const state = { terminated: { exitCode: 0, finishedAt: ago(2) } };
    const withSidecar: Pod = {
      ...pod,
      spec: { ...pod.spec, initContainers: [{ name: 's', restartPolicy: 'Always' }, { name: 'init' }] },
      status: {
        ...pod.status,
        initContainerStatuses: [
          { ...container, name: 's', state },
          { ...container, name: 'init', state: { terminated: { exitCode: 0, finishedAt: ago(1) } } },
        ],
      },
    };
    expect(finishedAt(withSidecar)).toBe(plusMs(AT, -2000));
  });
});

describe('the end of a job', () => {
  const failed: Facts = { phase: 'Failed', ended: 1 };
  const done = (index: number): Facts => ({ phase: 'Succeeded', ended: 1, index });
  const lost = (index: number, failures: number): Facts => ({ ...failed, index, failures });
  const perIndex = { backoffLimitPerIndex: 1, backoffLimit: 2 ** 31 - 1 };
  const ignore = { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [1] }, onPodConditions: [] }] };
  const fail = { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [1] }, onPodConditions: [] }] };
  const index = { rules: [{ action: 'FailIndex', onExitCodes: { operator: 'In', values: [1] }, onPodConditions: [] }] };
  const onFailure = {
    template: { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'c', image: 'i' }] } },
  };
  it.each<[string, Job, Facts[], [string, string] | undefined]>([
    ['goes on', makeJob(), [{}], undefined],
    ['the limit is reached', makeJob({ backoffLimit: 1 }), [failed], undefined],
    ['and passed', makeJob({ backoffLimit: 1 }), [failed, failed], ['FailureTarget', 'BackoffLimitExceeded']],
    ['a limit of none', makeJob({ backoffLimit: 0 }), [failed], ['FailureTarget', 'BackoffLimitExceeded']],
    [
      'with those counted before',
      makeJob({ backoffLimit: 1 }, { failed: 1 }),
      [failed],
      ['FailureTarget', 'BackoffLimitExceeded'],
    ],
    [
      'not twice for one pod',
      makeJob({ backoffLimit: 1 }, { uncountedTerminatedPods: { failed: ['uid-p0'] } }),
      [failed],
      undefined,
    ],
    [
      'a pod that is deleted has failed',
      makeJob({ backoffLimit: 0 }),
      [{ deleted: true }],
      ['FailureTarget', 'BackoffLimitExceeded'],
    ],
    [
      'not where it may still end well',
      makeJob({ backoffLimit: 0, podReplacementPolicy: 'Failed' }),
      [{ deleted: true }],
      undefined,
    ],
    ['a failure that is ignored', makeJob({ backoffLimit: 0, podFailurePolicy: ignore }), [failed], undefined],
    ['one that fails the job', makeJob({ podFailurePolicy: fail }), [failed], ['FailureTarget', 'PodFailurePolicy']],
    [
      'restarts in place',
      makeJob({ ...onFailure, backoffLimit: 3 }),
      [{ restarts: 2 }, { restarts: 1 }],
      ['FailureTarget', 'BackoffLimitExceeded'],
    ],
    ['fewer of them', makeJob({ ...onFailure, backoffLimit: 3 }), [{ restarts: 2 }], undefined],
    [
      'one with a limit of none',
      makeJob({ ...onFailure, backoffLimit: 0 }),
      [{ restarts: 1 }],
      ['FailureTarget', 'BackoffLimitExceeded'],
    ],
    [
      'past its deadline',
      makeJob({ activeDeadlineSeconds: 10 }, { startTime: ago(10) }),
      [{}],
      ['FailureTarget', 'DeadlineExceeded'],
    ],
    ['before it', makeJob({ activeDeadlineSeconds: 10 }, { startTime: ago(9) }), [{}], undefined],
    ['suspended', makeJob({ activeDeadlineSeconds: 10, suspend: true }, { startTime: ago(99) }), [], undefined],
    ['an index has failed, others go on', indexed(perIndex), [lost(0, 1), {}], undefined],
    ['an index may fail again', indexed({ ...perIndex, completions: 1 }), [lost(0, 0)], undefined],
    [
      'all have failed or succeeded',
      indexed(perIndex),
      [lost(0, 1), done(1), done(2)],
      ['FailureTarget', 'FailedIndexes'],
    ],
    [
      'more than may fail',
      indexed({ ...perIndex, maxFailedIndexes: 1 }),
      [lost(0, 1), lost(1, 1)],
      ['FailureTarget', 'MaxFailedIndexesExceeded'],
    ],
    ['as many as may fail', indexed({ ...perIndex, maxFailedIndexes: 1 }), [lost(0, 1)], undefined],
    [
      'FailIndex',
      indexed({ ...perIndex, maxFailedIndexes: 0, podFailurePolicy: index }),
      [lost(0, 0)],
      ['FailureTarget', 'MaxFailedIndexesExceeded'],
    ],
    [
      'failed before',
      indexed({ ...perIndex, maxFailedIndexes: 0 }, { failedIndexes: '1' }),
      [],
      ['FailureTarget', 'MaxFailedIndexesExceeded'],
    ],
    [
      'the success policy',
      indexed({ successPolicy: { rules: [{ succeededIndexes: '0' }] } }),
      [done(0)],
      ['SuccessCriteriaMet', 'SuccessPolicy'],
    ],
    [
      'failure first',
      indexed({ backoffLimit: 0, successPolicy: { rules: [{ succeededIndexes: '0' }] } }),
      [done(0), { ...failed, index: 1 }],
      ['FailureTarget', 'BackoffLimitExceeded'],
    ],
    [
      'what was met stays',
      indexed(
        { backoffLimit: 0 },
        { conditions: [{ type: 'SuccessCriteriaMet', status: 'True', reason: 'SuccessPolicy' }] },
      ),
      [{ ...failed, index: 1 }],
      ['SuccessCriteriaMet', 'SuccessPolicy'],
    ],
    [
      'and what was missed',
      makeJob({}, { conditions: [{ type: 'FailureTarget', status: 'True', reason: 'DeadlineExceeded' }] }),
      [{ phase: 'Succeeded' }],
      ['Failed', 'DeadlineExceeded'],
    ],
  ])('%s', (_what, job, pods, wanted) => {
    const end = decideEnd(factsOf(job, pods), { ...job.status }, AT);
    expect(end === undefined ? undefined : [end.type, end.reason]).toEqual(wanted);
  });

  it.each<[string, Job, Facts[], number, boolean]>([
    ['enough', makeJob(), [{ phase: 'Succeeded' }], 0, true],
    ['enough, and one still runs', makeJob(), [{ phase: 'Succeeded' }], 1, false],
    ['too few', makeJob({ completions: 2 }), [{ phase: 'Succeeded' }], 0, false],
    ['none are wanted', makeJob({ completions: 0 }), [], 0, true],
    ['any, without a number', makeJob({ parallelism: 3 }), [{ phase: 'Succeeded' }, { phase: 'Failed' }], 0, true],
    ['none, without a number', makeJob({ parallelism: 3 }), [{ phase: 'Failed' }], 0, false],
    ['an index twice', indexed({ completions: 2 }), [done(0), done(0)], 0, false],
    ['an index that the job has not', indexed({ completions: 1 }), [done(1)], 0, false],
    [
      'of the status',
      makeJob({ completions: 3 }, { succeeded: 1, uncountedTerminatedPods: { succeeded: ['x'] } }),
      [{ phase: 'Succeeded' }],
      0,
      true,
    ],
  ])('completions: %s', (_what, job, pods, active, wanted) => {
    expect(completed(factsOf(job, pods), active, AT) !== undefined).toBe(wanted);
  });
});

describe('which pods to create and delete', () => {
  const ended: Facts = { phase: 'Succeeded', ended: 1 };
  const names = (plan: ReturnType<typeof planPods>): unknown =>
    plan.do === 'delete' ? plan.pods.map(({ metadata }) => metadata.name) : plan.do === 'create' ? plan.indexes : plan;
  const three = (count: number): undefined[] => Array.from({ length: count }, () => undefined);
  it.each<[string, Job, Facts[], unknown]>([
    ['the first', makeJob({ parallelism: 2, completions: 5 }), [], three(2)],
    ['no more than are missing', makeJob({ parallelism: 5, completions: 3 }, { succeeded: 1 }), [{}], three(1)],
    ['none while enough run', makeJob({ parallelism: 2, completions: 5 }), [{}, {}], { do: 'nothing' }],
    ['the number without completions', makeJob({ parallelism: 3 }), [{}], three(2)],
    ['none after its first success', makeJob({ parallelism: 3 }), [{}, ended], { do: 'nothing' }],
    ['none where none may run', makeJob({ parallelism: 0, completions: 5 }), [], { do: 'nothing' }],
    [
      'too many',
      makeJob({ parallelism: 1, completions: 5 }),
      [{ ready: true }, { phase: 'Pending', node: '' }],
      ['p1'],
    ],
    [
      'too many to the end',
      makeJob({ parallelism: 3, completions: 2 }, { succeeded: 1 }),
      [{}, { restarts: 2 }],
      ['p1'],
    ],
    ['the younger first', makeJob(), [{ age: 9 }, { age: 5 }], ['p1']],
    ['all of a job that is suspended', makeJob({ suspend: true }), [{}, ended], ['p0']],
    ['one that goes is replaced', makeJob(), [{ deleted: true }], three(1)],
    ['unless it has to end first', makeJob({ podReplacementPolicy: 'Failed' }), [{ deleted: true }], { do: 'nothing' }],
    ['indexes', indexed({}), [{ index: 1 }], [0, 2]],
    ['as many as may run', indexed({ parallelism: 1 }, { completedIndexes: '0' }), [], [1]],
    ['not those that are done', indexed({}, { completedIndexes: '0,1' }), [], [2]],
    ['nor those that have failed', indexed({ backoffLimitPerIndex: 0 }, { failedIndexes: '1' }), [{ index: 0 }], [2]],
    ['an index twice', indexed({}), [{ index: 0, ready: true }, { index: 0 }, { index: 1 }], ['p1']],
    ['one that the job has not', indexed({}), [{ index: 7 }, { index: 0 }], ['p0']],
    ['one without an index', indexed({}), [{ index: 'x' }, { index: 0 }], ['p0']],
    ['fewer indexes', indexed({ parallelism: 1 }), [{ index: 0 }, { index: 1, ready: true }], ['p0']],
    ['an index that ends', indexed({ podReplacementPolicy: 'Failed' }), [{ index: 0, deleted: true }], [1, 2]],
    ['500 at a time', makeJob({ parallelism: 900, completions: 900 }), [], three(500)],
  ])('%s', (_what, job, pods, wanted) => {
    expect(names(planPods(factsOf(job, pods), undefined, AT))).toEqual(wanted);
  });

  it('waits for the back-off, of the job or of each index', () => {
    const once = { count: 1, last: plusMs(AT, -4000) };
    expect(planPods(factsOf(makeJob(), []), once, AT)).toEqual({ do: 'wait', ms: 6000 });
    const job = indexed({ backoffLimitPerIndex: 2, completions: 2 });
    const lost = (index: number, failures: number): Facts => ({ phase: 'Failed', ended: 4, index, failures });
    expect(planPods(factsOf(job, [lost(0, 0)]), once, AT)).toEqual({ do: 'create', indexes: [1] });
    expect(planPods(factsOf(job, [lost(0, 1), lost(1, 0)]), once, AT)).toEqual({ do: 'wait', ms: 6000 });
  });
});

describe('templates', () => {
  it('have the finalizer once, and nothing else without indexes', () => {
    const job = makeJob();
    const { template, generateName } = podToCreate(job, undefined, undefined);
    expect(template).toEqual({ ...job.spec.template, metadata: { labels: { job: 'work' }, finalizers: [FINALIZER] } });
    expect(generateName).toBeUndefined();
    const own = { ...job.spec.template, metadata: { finalizers: ['a/b', FINALIZER] } };
    const again = podToCreate({ ...job, spec: { ...job.spec, template: own } }, undefined, undefined);
    expect(again.template.metadata?.finalizers).toEqual(['a/b', FINALIZER]);
  });

  it('tell a pod its index', () => {
    const job = indexed({});
    const own = { name: 'JOB_COMPLETION_INDEX', value: 'mine' };
    const spec = {
      ...job.spec.template.spec,
      containers: [{ name: 'c' }, { name: 'd', env: [own] }],
      initContainers: [{ name: 'i', env: [{ name: 'a', value: 'b' }] }],
    };
    const { template, generateName } = podToCreate(
      { ...job, spec: { ...job.spec, template: { ...job.spec.template, spec } } },
      2,
      undefined,
    );
    const variable = {
      name: 'JOB_COMPLETION_INDEX',
      valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } },
    };
    expect(generateName).toBe('work-2-');
    expect(template.metadata?.labels).toEqual({ job: 'work', [INDEX]: '2' });
    expect(template.metadata?.annotations).toEqual({ [INDEX]: '2' });
    expect(template.spec?.hostname).toBe('work-2');
    expect(template.spec?.containers.map(({ env }) => env)).toEqual([[variable], [own]]);
    expect(template.spec?.initContainers?.map(({ env }) => env)).toEqual([[{ name: 'a', value: 'b' }, variable]]);
  });

  it('cut a long name, so that the index stays', () => {
    const job = indexed({});
    const long = { ...job, metadata: { ...job.metadata, name: 'x'.repeat(63) } };
    expect(podToCreate(long, 123, undefined).generateName).toBe(`${'x'.repeat(53)}-123-`);
  });

  it('count the failures of an index', () => {
    const ignore = { rules: [{ action: 'Ignore', onExitCodes: { operator: 'In', values: [7] }, onPodConditions: [] }] };
    const job = indexed({ backoffLimitPerIndex: 3, podFailurePolicy: ignore });
    const count = (replaced?: Facts): unknown =>
      podToCreate(job, 0, replaced === undefined ? undefined : jobPod('old', replaced)).template.metadata?.annotations;
    const key = 'batch.kubernetes.io/job-index-failure-count';
    expect(count()).toEqual({ [INDEX]: '0', [key]: '0' });
    expect(count({ phase: 'Failed', ended: 1, failures: 1 })).toEqual({ [INDEX]: '0', [key]: '2' });
    expect(count({ phase: 'Failed', ended: 1, failures: 1, exit: 7 })).toEqual({
      [INDEX]: '0',
      [key]: '1',
      'batch.kubernetes.io/job-index-ignored-failure-count': '1',
    });
  });
});
