import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { create, lines, NOW, row, update } from './support.ts';

type Fields = Record<string, unknown>;
const template = (more: Fields = {}): Fields => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'web:1' }], ...more },
});
const selector = { matchLabels: { app: 'web' } };
const base = { selector, template: template() };

function errorsOf(plural: string, spec: Fields, metadata: Fields = {}): string[] {
  return lines(create(row(plural, 'apps'), { metadata, spec: { ...base, ...spec } }).errors);
}

function stored(plural: string, spec: Fields = {}): KubeObject {
  const { object, errors } = create(row(plural, 'apps'), { spec: { ...base, ...spec } });
  expect(lines(errors)).toEqual([]);
  return object;
}

describe('defaults', () => {
  it.each<[string, Fields, Fields]>([
    [
      'deployments',
      {
        replicas: 1,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
      },
      {},
    ],
    ['replicasets', { replicas: 1 }, { replicas: 0 }],
    [
      'statefulsets',
      {
        replicas: 1,
        podManagementPolicy: 'OrderedReady',
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
        revisionHistoryLimit: 10,
        serviceName: '',
      },
      { availableReplicas: 0, replicas: 0 },
    ],
    [
      'daemonsets',
      {
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
        revisionHistoryLimit: 10,
      },
      { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 },
    ],
  ])('%s', (plural, spec, status) => {
    const made = stored(plural);
    expect(made['spec']).toMatchObject(spec);
    expect(made['status']).toEqual(status);
    expect(made['spec']).toMatchObject({
      template: { spec: { restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', terminationGracePeriodSeconds: 30 } },
    });
  });

  it('a template keeps limits and host ports as they were written', () => {
    const container = {
      name: 'web',
      image: 'web:1',
      ports: [{ containerPort: 80 }],
      resources: { limits: { cpu: '1' } },
    };
    const made = stored('deployments', { template: template({ hostNetwork: true, containers: [container] }) });
    expect(made).toMatchObject({
      spec: { template: { spec: { containers: [{ ports: [{ containerPort: 80, protocol: 'TCP' }] }] } } },
    });
    expect(JSON.stringify(made)).not.toMatch(/requests|hostPort/);
  });

  it('a claim template is a claim', () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    const made = stored('statefulsets', { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec }] });
    expect(made).toMatchObject({
      spec: {
        volumeClaimTemplates: [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            spec: { ...spec, volumeMode: 'Filesystem' },
            status: { phase: 'Pending' },
          },
        ],
      },
    });
  });
});

const UNMATCHED =
  'spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`';
const OTHER = { ...template(), metadata: { labels: { app: 'other' } } };

describe('what is wrong', () => {
  it.each<[string, Fields, string]>([
    ['deployments', { replicas: -1 }, 'spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
    ['deployments', { selector: undefined }, 'spec.selector: Required value'],
    ['deployments', { selector: {} }, 'spec.selector: Invalid value: {}: empty selector is invalid for deployment'],
    ['deployments', { template: OTHER }, UNMATCHED],
    [
      'deployments',
      { template: {} },
      'spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`',
    ],
    ['deployments', { template: {} }, 'spec.template.spec.containers: Required value'],
    [
      'deployments',
      { selector: { matchExpressions: [{ key: 'app', operator: 'Is' }] } },
      'spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ],
    [
      'deployments',
      { selector: { matchExpressions: [{ key: 'app', operator: 'Is' }] } },
      'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Is"}]}: invalid label selector',
    ],
    [
      'deployments',
      { template: template({ restartPolicy: 'Never' }) },
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ],
    [
      'deployments',
      { template: template({ activeDeadlineSeconds: 5 }) },
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
    ],
    [
      'deployments',
      { strategy: { type: 'Recreate', rollingUpdate: {} } },
      "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ],
    [
      'deployments',
      { strategy: { type: 'Blue' } },
      'spec.strategy: Unsupported value: {"type":"Blue"}: supported values: "Recreate", "RollingUpdate"',
    ],
    [
      'deployments',
      { strategy: { rollingUpdate: { maxSurge: '1x' } } },
      "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"1x\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ],
    [
      'deployments',
      { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } },
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
    ],
    [
      'deployments',
      { strategy: { rollingUpdate: { maxUnavailable: '101%' } } },
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ],
    [
      'deployments',
      { minReadySeconds: 600 },
      'spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds',
    ],
    [
      'deployments',
      { revisionHistoryLimit: -1 },
      'spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
    ],
    ['replicasets', { template: OTHER }, UNMATCHED],
    [
      'replicasets',
      { minReadySeconds: -1 },
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
    ['statefulsets', { selector: {} }, 'spec.selector: Invalid value: {}: empty selector is invalid for statefulset'],
    [
      'statefulsets',
      { podManagementPolicy: 'Any' },
      "spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'",
    ],
    [
      'statefulsets',
      { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } },
      'spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: only allowed for updateStrategy \'RollingUpdate\'',
    ],
    [
      'statefulsets',
      { updateStrategy: { type: 'Any' } },
      'spec.updateStrategy: Invalid value: {"type":"Any"}: must be \'RollingUpdate\' or \'OnDelete\'',
    ],
    [
      'statefulsets',
      { persistentVolumeClaimRetentionPolicy: { whenScaled: 'Keep' } },
      'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Retain", "Delete"',
    ],
    [
      'statefulsets',
      { ordinals: { start: -1 } },
      'spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      'statefulsets',
      { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] },
      'spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required',
    ],
    ['daemonsets', { selector: {} }, 'spec.selector: Invalid value: {}: empty selector is invalid for daemonset'],
    [
      'daemonsets',
      { updateStrategy: { rollingUpdate: { maxSurge: 1 } } },
      'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero',
    ],
    [
      'daemonsets',
      { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } },
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
    ],
    [
      'daemonsets',
      { template: template({ activeDeadlineSeconds: 5 }) },
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported',
    ],
  ])('%s %j', (plural, spec, expected) => {
    expect(errorsOf(plural, spec)).toContain(expected);
  });

  it('a StatefulSet is named as its pods are, the others as objects are', () => {
    expect(errorsOf('statefulsets', {}, { name: 'a.b' })).toEqual([
      'metadata.name: Invalid value: "a.b": must not contain dots',
    ]);
    expect(errorsOf('deployments', {}, { name: 'a.b' })).toEqual([]);
  });

  it('a pod of a StatefulSet may mount what a claim template gives', () => {
    const container = { name: 'web', image: 'web:1', volumeMounts: [{ name: 'data', mountPath: '/data' }] };
    const claim = {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    const spec = { template: template({ containers: [container] }) };
    expect(errorsOf('statefulsets', { ...spec, volumeClaimTemplates: [claim] })).toEqual([]);
    expect(errorsOf('statefulsets', spec)).toEqual([
      'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"',
    ]);
  });

  it('a revision has data', () => {
    const kind = row('controllerrevisions', 'apps');
    expect(lines(create(kind, { revision: -1 }).errors)).toEqual([
      'revision: Invalid value: -1: must be greater than or equal to 0',
      'data: Required value: data is mandatory',
    ]);
    expect(lines(create(kind, { data: [] }).errors)).toEqual([
      'data: Required value: data must be a valid JSON object',
    ]);
  });
});

function change(plural: string, spec: Fields, initial: Fields = {}): string[] {
  const old = stored(plural, initial);
  return lines(
    update(row(plural, 'apps'), old, (draft) => {
      Object.assign(draft['spec'] ?? {}, structuredClone(spec));
    }).errors,
  );
}

describe('updates', () => {
  const both = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'app', operator: 'Exists' }] };
  it.each(['deployments', 'replicasets', 'daemonsets'])('%s keep their selector', (plural) => {
    expect(change(plural, { selector: both })).toEqual([
      `spec.selector: Invalid value: ${JSON.stringify(both)}: field is immutable`,
    ]);
    expect(change(plural, { template: template({ dnsPolicy: 'Default' }) })).toEqual([]);
  });

  it('a StatefulSet keeps all but a few fields', () => {
    expect(change('statefulsets', { serviceName: 'x' })).toEqual([
      "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    ]);
    expect(change('statefulsets', { replicas: 3, minReadySeconds: 2, ordinals: { start: 4 } })).toEqual([]);
  });

  it('a revision keeps its data', () => {
    const kind = row('controllerrevisions', 'apps');
    const old = create(kind, { data: { a: 1 } }).object;
    const { errors } = update(kind, old, (draft) => {
      draft['data'] = { a: 2 };
    });
    expect(lines(errors)).toEqual(['data: Invalid value: {"a":2}: field is immutable']);
  });

  it('a new annotation of a Deployment is a new generation', () => {
    const old = stored('deployments');
    old.metadata.generation = 4;
    const { object } = update(row('deployments', 'apps'), old, (draft) => {
      draft.metadata.annotations = { a: 'b' };
    });
    expect(object.metadata.generation).toBe(5);
  });

  it("a DaemonSet's template generation grows with its template alone", () => {
    const key = 'deprecated.daemonset.template.generation';
    const old = stored('daemonsets');
    expect(old.metadata.annotations).toEqual({ [key]: '1' });
    const next = update(row('daemonsets', 'apps'), old, (draft) => {
      draft['spec'] = { ...base, template: template({ dnsPolicy: 'Default' }) };
      draft.metadata.annotations = {};
    }).object;
    expect(next.metadata.annotations).toEqual({ [key]: '2' });
    const same = update(row('daemonsets', 'apps'), next, (draft) => {
      draft.metadata.labels = { a: 'b' };
    }).object;
    expect(same.metadata.annotations).toEqual({ [key]: '2' });
  });
});

describe('status', () => {
  it.each<[string, Fields, Fields, string[]]>([
    [
      'deployments',
      { replicas: 1, readyReplicas: 2, availableReplicas: 1 },
      {},
      ['status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas'],
    ],
    [
      'deployments',
      { collisionCount: 1 },
      { collisionCount: 2 },
      ['status.collisionCount: Invalid value: 1: cannot be decremented'],
    ],
    [
      'replicasets',
      { replicas: 2, availableReplicas: 1, fullyLabeledReplicas: -1 },
      {},
      [
        'status.fullyLabeledReplicas: Invalid value: -1: must be greater than or equal to 0',
        'status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas',
      ],
    ],
    [
      'statefulsets',
      { replicas: 1, availableReplicas: 1 },
      {},
      ['status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas'],
    ],
    [
      'daemonsets',
      { numberReady: -1 },
      {},
      ['status.numberReady: Invalid value: -1: must be greater than or equal to 0'],
    ],
  ])('%s %j', (plural, status, before, expected) => {
    const old = { ...stored(plural), status: before };
    const errors = row(plural, 'apps').strategy.validateStatusUpdate?.({ ...old, status }, old) ?? [];
    expect(lines(errors)).toEqual(expected);
  });
});

describe('tables', () => {
  const created = { metadata: { creationTimestamp: new Date(NOW - 60_000).toISOString() } };
  const cells = (plural: string, status: Fields): unknown[] => {
    const made = { ...stored(plural), status };
    Object.assign(made.metadata, created.metadata);
    return [...(row(plural, 'apps').strategy.table?.row(made, NOW) ?? [])];
  };
  it.each<[string, Fields, unknown[]]>([
    ['deployments', { readyReplicas: 1, updatedReplicas: 1 }, ['web', '1/1', 1, 0, '60s', 'web', 'web:1', 'app=web']],
    ['replicasets', { replicas: 1 }, ['web', 1, 1, 0, '60s', 'web', 'web:1', 'app=web']],
    ['statefulsets', {}, ['web', '0/1', '60s', 'web', 'web:1']],
    ['daemonsets', { desiredNumberScheduled: 2 }, ['web', 2, 0, 0, 0, 0, '<none>', '60s', 'web', 'web:1', 'app=web']],
  ])('%s', (plural, status, expected) => {
    expect(cells(plural, status)).toEqual(expected);
    expect(row(plural, 'apps').strategy.table?.columns).toHaveLength(expected.length);
  });

  it('a revision shows who made it', () => {
    const kind = row('controllerrevisions', 'apps');
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'web', uid: 'u', controller: true };
    const made = create(kind, { metadata: { ownerReferences: [owner] }, data: {}, revision: 2 }).object;
    expect(kind.strategy.table?.row(made, NOW).slice(0, 3)).toEqual(['web', 'daemonset.apps/web', 2]);
  });
});
