import { describe, expect, it } from 'vitest';
import { overlap, parseIndexes } from '../../../../apiserver/kinds/batch/indexes.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { scheduleError } from '../../../../lib/cron-schedule.ts';
import { create, lines, NOW, row, update } from './support.ts';

type Fields = Record<string, unknown>;
const jobs = row('jobs', 'batch');
const cronjobs = row('cronjobs', 'batch');
const template = (more: Fields = {}): Fields => ({
  spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'work:1' }], ...more },
});
const metadata = { uid: 'u1' };

function job(spec: Fields = {}): KubeObject {
  const { object, errors } = create(jobs, { metadata, spec: { template: template(), ...spec } });
  expect(lines(errors)).toEqual([]);
  return object;
}

const wrongJob = (spec: Fields): string[] =>
  lines(create(jobs, { metadata, spec: { template: template(), ...spec } }).errors);
const wrongCronJob = (spec: Fields, name = 'web'): string[] =>
  lines(
    create(cronjobs, {
      metadata: { name },
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: template() } }, ...spec },
    }).errors,
  );

describe('a job', () => {
  it('gets defaults, labels and a selector of its own', () => {
    const labels = {
      'job-name': 'web',
      'batch.kubernetes.io/job-name': 'web',
      'controller-uid': 'u1',
      'batch.kubernetes.io/controller-uid': 'u1',
    };
    expect(job()).toMatchObject({
      spec: {
        completions: 1,
        parallelism: 1,
        backoffLimit: 6,
        completionMode: 'NonIndexed',
        suspend: false,
        manualSelector: false,
        podReplacementPolicy: 'TerminatingOrFailed',
        selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u1' } },
        template: { metadata: { labels } },
      },
      status: {},
    });
    expect(job({ parallelism: 3 })['spec']).not.toHaveProperty('completions');
  });

  it('of indexes that may fail one by one tries as often as it takes', () => {
    const spec = { completionMode: 'Indexed', completions: 2, backoffLimitPerIndex: 1 };
    expect(job(spec)).toMatchObject({ spec: { backoffLimit: 2_147_483_647 } });
  });

  const policy = (rule: Fields): Fields => ({ podFailurePolicy: { rules: [rule] } });
  const success = (rule: Fields): Fields => ({
    completionMode: 'Indexed',
    completions: 5,
    successPolicy: { rules: [rule] },
  });
  it.each<[Fields, string]>([
    [{ parallelism: -1 }, 'spec.parallelism: Invalid value: -1: must be greater than or equal to 0'],
    [
      { completionMode: 'Some' },
      'spec.completionMode: Unsupported value: "Some": supported values: "NonIndexed", "Indexed"',
    ],
    [
      { completionMode: 'Indexed', parallelism: 1 },
      'spec.completions: Required value: when completion mode is Indexed',
    ],
    [
      { completionMode: 'Indexed', completions: 1, parallelism: 100_001 },
      'spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed',
    ],
    [{ maxFailedIndexes: 1 }, 'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified'],
    [{ maxFailedIndexes: 1 }, 'spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode'],
    [
      { completionMode: 'Indexed', completions: 100_001, parallelism: 10_001, backoffLimitPerIndex: 1 },
      'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
    ],
    [
      { template: template({ restartPolicy: 'Always' }) },
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ],
    [
      {
        ...policy({ action: 'Ignore', onPodConditions: [{ type: 'A' }] }),
        template: template({ restartPolicy: 'OnFailure' }),
      },
      'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
    ],
    [
      policy({ action: 'Ignore' }),
      'spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required',
    ],
    [
      policy({ onPodConditions: [{ type: 'A' }] }),
      'spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
    ],
    [
      policy({ action: 'FailIndex', onPodConditions: [{ type: 'A' }] }),
      'spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
    ],
    [
      policy({ action: 'Count', onExitCodes: { operator: 'In', values: [0] } }),
      'spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator',
    ],
    [
      policy({ action: 'Count', onExitCodes: { operator: 'In', values: [3, 2, 2], containerName: 'x' } }),
      'spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,2,2]: must be ordered',
    ],
    [
      policy({ action: 'Count', onExitCodes: { operator: 'In', values: [3, 2, 2], containerName: 'x' } }),
      'spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2',
    ],
    [
      policy({ action: 'Count', onExitCodes: { operator: 'In', values: [3], containerName: 'x' } }),
      'spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template',
    ],
    [
      {
        ...policy({ action: 'Ignore', onPodConditions: [{ type: 'A' }] }),
        podReplacementPolicy: 'TerminatingOrFailed',
      },
      'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
    ],
    [
      { successPolicy: { rules: [{ succeededCount: 1 }] } },
      'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
    ],
    [
      success({ succeededIndexes: '1,9' }),
      'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "1,9": error parsing succeededIndexes: too large index: "9"',
    ],
    [
      success({ succeededIndexes: '1-2', succeededCount: 3 }),
      'spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)',
    ],
    [{ managedBy: 'x' }, 'spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")'],
    [
      { template: { ...template(), metadata: { labels: { 'job-name': 'other' } } } },
      'spec.template.metadata.labels[job-name]: Invalid value: {"job-name":"other","batch.kubernetes.io/job-name":"web","controller-uid":"u1","batch.kubernetes.io/controller-uid":"u1"}: must be \'web\'',
    ],
    [{ manualSelector: true }, 'spec.selector: Required value'],
  ])('%j', (spec, expected) => {
    const sorted = (text: string): string[] => text.split(/[{},]/).sort();
    expect(wrongJob(spec).map(sorted)).toContainEqual(sorted(expected));
  });
});

describe('an update of a job', () => {
  const change = (spec: Fields, initial: Fields = {}, status: Fields = {}): string[] =>
    lines(
      update(jobs, { ...job(initial), status }, (draft) => {
        const { template: changed, ...rest } = spec;
        Object.assign(draft['spec'] ?? {}, rest);
        if (changed !== undefined) Object.assign(Reflect.get(draft['spec'] ?? {}, 'template').spec, changed);
      }).errors,
    );
  it('may change how many run at a time, not what runs', () => {
    expect(change({ parallelism: 5, suspend: true, backoffLimit: 2 })).toEqual([]);
    expect(change({ completions: 5 })).toEqual(['spec.completions: Invalid value: 5: field is immutable']);
    expect(change({ completionMode: 'Indexed' })).toEqual([
      'spec.completionMode: Invalid value: "Indexed": field is immutable',
    ]);
    expect(change({ template: { nodeSelector: { a: 'b' } } })[0]).toMatch(/^spec\.template: .*: field is immutable$/);
  });

  it('of indexes scales both numbers together', () => {
    const indexed = { completionMode: 'Indexed', completions: 2, parallelism: 2 };
    expect(change({ completions: 3, parallelism: 3 }, indexed)).toEqual([]);
    expect(change({ completions: 3 }, indexed)).toEqual([
      'spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism',
    ]);
  });

  it('that is suspended and has never run may place it elsewhere', () => {
    const affinity = {
      nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
    };
    const placed = { template: { nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }], affinity } };
    expect(change(placed, { suspend: true })).toEqual([]);
    expect(change({ template: { hostNetwork: true } }, { suspend: true })[0]).toMatch(/field is immutable$/);
    expect(change(placed, { suspend: true }, { startTime: '2025-01-01T00:00:00Z' })[0]).toMatch(/field is immutable$/);
  });
});

describe("a job's status", () => {
  const is = (...types: string[]): Fields => ({ conditions: types.map((type) => ({ type, status: 'True' })) });
  const start = { startTime: '2025-01-01T00:00:00Z' };
  const end = { completionTime: '2025-01-01T00:01:00Z' };
  const done = { ...start, ...end, ...is('SuccessCriteriaMet', 'Complete') };
  const indexed = { completionMode: 'Indexed', completions: 4, backoffLimitPerIndex: 1 };
  it.each<[string, Fields, Fields, Fields, string[]]>([
    ['completes', done, {}, {}, []],
    ['fails', { ...start, ...is('FailureTarget', 'Failed') }, {}, {}, []],
    [
      'completes without a time',
      { ...start, ...is('SuccessCriteriaMet', 'Complete') },
      {},
      {},
      ['status.completionTime: Required value: completionTime is required for Complete jobs'],
    ],
    [
      'completes unmet',
      { ...done, ...is('Complete') },
      {},
      {},
      [
        'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
      ],
    ],
    [
      'runs on',
      start,
      done,
      {},
      [
        'status.conditions: Invalid value: cannot disable the terminal Complete=True condition',
        'status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition',
      ],
    ],
    [
      'unfails',
      { failed: 1 },
      { failed: 2 },
      {},
      ['status.failed: Invalid value: 1: cannot decrease the failed counter'],
    ],
    [
      'is too ready',
      { ready: 2, active: 1 },
      {},
      {},
      ['status.ready: Invalid value: 2: cannot set more ready pods than active'],
    ],
    [
      'forgets its start',
      {},
      start,
      {},
      ['status.startTime: Required value: startTime cannot be removed for unsuspended job'],
    ],
    [
      'counts an index twice',
      { completedIndexes: '0-2', failedIndexes: '2' },
      {},
      indexed,
      ['status.failedIndexes: Invalid value: "2": failedIndexes and completedIndexes overlap at index: 2'],
    ],
    [
      'has active pods at the end',
      { ...done, active: 1 },
      {},
      {},
      ['status.active: Invalid value: 1: active>0 is invalid for finished job'],
    ],
  ])('%s', (_what, status, before, spec, expected) => {
    const old = { ...job(spec), status: before };
    expect(lines(jobs.strategy.validateStatusUpdate?.({ ...old, status }, old) ?? [])).toEqual(expected);
  });
});

describe('indexes', () => {
  it.each<[string, object]>([
    ['', { count: 0 }],
    ['0,2-4', { count: 4 }],
    ['3,1', { wrong: 'non-increasing order, previous: 3, current: 1' }],
    ['4-2', { wrong: 'non-increasing order, previous: 4, current: 2' }],
    ['a', { wrong: 'cannot convert string to integer for index: "a"' }],
    ['9', { wrong: 'too large index: "9"' }],
    [
      '1-2-3',
      {
        wrong:
          'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by \'-\'',
      },
    ],
  ])('"%s"', (text, expected) => expect(parseIndexes(text, 5)).toEqual(expected));

  it('overlap where both have one', () => {
    expect(overlap('0,4-9', '1-3,8', 10)).toBe(8);
    expect(overlap('0,4-9', '1-3', 10)).toBeUndefined();
  });
});

describe('a schedule', () => {
  it.each<[string, string | undefined]>([
    ['*/5 * * * ?', undefined],
    ['0 22 * * 1-5', undefined],
    ['0 0 1,15 jan-MAR sun', undefined],
    ['5/10 * * * *', undefined],
    ['@hourly', undefined],
    ['@every 1h30m', undefined],
    ['@often', 'unrecognized descriptor: @often'],
    ['@every day', 'failed to parse duration @every day: time: invalid duration "day"'],
    ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['5-2 * * * *', 'beginning of range (5) beyond end of range (2): 5-2'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['a * * * *', 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ])('%s', (text, expected) => expect(scheduleError(text)).toBe(expected));
});

describe('a CronJob', () => {
  it('gets defaults, its job template none of a job', () => {
    const { object } = create(cronjobs, {
      spec: { schedule: '@daily', jobTemplate: { spec: { template: template() } } },
    });
    expect(object).toMatchObject({
      spec: { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 },
      status: {},
    });
    expect(Object.keys(Reflect.get(Object(object['spec']), 'jobTemplate').spec)).toEqual(['template']);
  });

  it.each<[Fields, string]>([
    [{ schedule: '' }, 'spec.schedule: Required value'],
    [{ schedule: '1' }, 'spec.schedule: Invalid value: "1": expected exactly 5 fields, found 1: [1]'],
    [
      { schedule: 'TZ=UTC 0 * * * *' },
      'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ],
    [{ timeZone: '' }, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
    [{ timeZone: 'Mars/Base' }, 'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'],
    [{ timeZone: '../etc' }, 'spec.timeZone: Invalid value: "../etc": unknown time zone ../etc'],
    [
      { timeZone: 'LOCAL' },
      'spec.timeZone: Invalid value: "LOCAL": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
    ],
    [
      { concurrencyPolicy: 'Wait' },
      'spec.concurrencyPolicy: Unsupported value: "Wait": supported values: "Allow", "Forbid", "Replace"',
    ],
    [
      { startingDeadlineSeconds: -1 },
      'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      { jobTemplate: { spec: { template: template(), manualSelector: true } } },
      'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
    ],
    [
      { jobTemplate: { spec: { template: template({ restartPolicy: 'Always' }) } } },
      'spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ],
  ])('%j', (spec, expected) => expect(wrongCronJob(spec)).toContain(expected));

  it('has room in its name for what the controller appends', () => {
    const name = 'a'.repeat(53);
    expect(wrongCronJob({}, name)).toEqual([
      `metadata.name: Invalid value: "${name}": must be no more than 52 characters`,
    ]);
    expect(wrongCronJob({ timeZone: 'Europe/Berlin' })).toEqual([]);
  });
});

describe('tables', () => {
  const aged = { metadata: { ...metadata, creationTimestamp: new Date(NOW - 60_000).toISOString() } };
  it('show how far a job is', () => {
    const made = { ...job(), status: { startTime: new Date(NOW - 30_000).toISOString(), succeeded: 0 } };
    Object.assign(made.metadata, aged.metadata);
    expect(jobs.strategy.table?.row(made, NOW)).toEqual([
      'web',
      'Running',
      '0/1',
      '30s',
      '60s',
      'main',
      'work:1',
      'batch.kubernetes.io/controller-uid=u1',
    ]);
    expect(jobs.strategy.table?.columns).toHaveLength(8);
  });

  it('show when a CronJob was due', () => {
    const spec = { schedule: '@daily', jobTemplate: { spec: { template: template() } } };
    const made = create(cronjobs, { ...aged, spec }).object;
    expect(cronjobs.strategy.table?.row(made, NOW)).toEqual([
      'web',
      '@daily',
      '<none>',
      'False',
      0,
      '<none>',
      '60s',
      'main',
      'work:1',
      '<none>',
    ]);
  });
});

describe('ReplicationControllers', () => {
  const controllers = row('replicationcontrollers');
  const labelled = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } };
  it('select by the labels of their template', () => {
    const { object, errors } = create(controllers, { spec: { template: labelled } });
    expect(lines(errors)).toEqual([]);
    expect(object).toMatchObject({
      metadata: { labels: { app: 'web' } },
      spec: { replicas: 1, selector: { app: 'web' } },
      status: { replicas: 0 },
    });
  });

  it.each<[Fields, string[]]>([
    [{}, ['spec.selector: Required value', 'spec.template: Required value']],
    [
      { selector: { app: 'b' }, template: labelled },
      ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'],
    ],
    [
      { template: { ...labelled, spec: { ...labelled.spec, activeDeadlineSeconds: 3 } } },
      [
        'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported',
      ],
    ],
  ])('%j', (spec, expected) => expect(lines(create(controllers, { spec }).errors)).toEqual(expected));

  it('a PodTemplate is validated as any template', () => {
    const templates = row('podtemplates');
    expect(lines(create(templates, {}).errors)).toEqual(['template.spec.containers: Required value']);
    const made = create(templates, { template: labelled }).object;
    expect(templates.strategy.table?.row(made, NOW)).toEqual(['web', 'web', 'web:1', 'app=web']);
  });

  it('a component shows whether it is healthy', () => {
    const components = row('componentstatuses');
    const conditions = [{ type: 'Healthy', status: 'True', message: 'ok' }];
    const made = { apiVersion: 'v1', kind: 'ComponentStatus', metadata: { name: 'etcd-0' }, conditions };
    expect(components.strategy.table?.row(made, NOW)).toEqual(['etcd-0', 'Healthy', 'ok', '']);
  });
});
