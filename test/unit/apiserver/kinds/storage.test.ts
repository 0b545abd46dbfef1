import { describe, expect, it } from 'vitest';
import type { ObjectLookup, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { create, lines, lookupOf, NOW, object, row } from './support.ts';

type Fields = Record<string, unknown>;
const STORAGE = 'storage.k8s.io';
const claims = row('persistentvolumeclaims');
const volumes = row('persistentvolumes');
const classes = row('storageclasses', STORAGE);
const drivers = row('csidrivers', STORAGE);
const nodes = row('csinodes', STORAGE);
const attachments = row('volumeattachments', STORAGE);
const capacities = row('csistoragecapacities', STORAGE);

const claimSpec = (more: Fields = {}): Fields => ({
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
  ...more,
});
const volumeSpec = (more: Fields = {}): Fields => ({
  accessModes: ['ReadWriteOnce'],
  capacity: { storage: '1Gi' },
  csi: { driver: 'csi.test', volumeHandle: 'v1' },
  ...more,
});

function storageClass(name: string, more: Fields = {}, metadata: Fields = {}) {
  return {
    group: STORAGE,
    plural: 'storageclasses',
    object: object(classes, { metadata: { name, ...metadata }, provisioner: 'csi.test', ...more }),
  };
}
const isDefault = { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };

function cells(kind: ResourceKind, fields: Fields): unknown[] {
  const { metadata, ...rest } = fields;
  const given = typeof metadata === 'object' && metadata !== null ? metadata : {};
  const made = object(kind, {
    metadata: { creationTimestamp: new Date(NOW - 60_000).toISOString(), ...given },
    ...rest,
  });
  return [...(kind.strategy.table?.row(made, NOW) ?? [])];
}

describe('tables', () => {
  const headers = (kind: ResourceKind): string =>
    (kind.strategy.table?.columns ?? [])
      .map(({ name, priority = 0 }) => (priority > 0 ? `(${name})` : name).toUpperCase())
      .join(', ');
  it.each([
    [
      volumes,
      'NAME, CAPACITY, ACCESS MODES, RECLAIM POLICY, STATUS, CLAIM, STORAGECLASS, VOLUMEATTRIBUTESCLASS, REASON, AGE, (VOLUMEMODE)',
    ],
    [claims, 'NAME, STATUS, VOLUME, CAPACITY, ACCESS MODES, STORAGECLASS, VOLUMEATTRIBUTESCLASS, AGE, (VOLUMEMODE)'],
    [classes, 'NAME, PROVISIONER, RECLAIMPOLICY, VOLUMEBINDINGMODE, ALLOWVOLUMEEXPANSION, AGE'],
    [drivers, 'NAME, ATTACHREQUIRED, PODINFOONMOUNT, STORAGECAPACITY, TOKENREQUESTS, REQUIRESREPUBLISH, MODES, AGE'],
    [nodes, 'NAME, DRIVERS, AGE'],
    [attachments, 'NAME, ATTACHER, PV, NODE, ATTACHED, AGE'],
    [capacities, 'NAME, STORAGECLASSNAME, CAPACITY'],
  ])('$plural', (kind, expected) => {
    expect(headers(kind)).toBe(expected);
    expect(cells(kind, {})).toHaveLength(kind.strategy.table?.columns.length ?? 0);
  });

  it('a bound claim shows its volume and what that has, a waiting one neither', () => {
    const status = { phase: 'Bound', capacity: { storage: '2Gi' }, accessModes: ['ReadWriteMany', 'ReadWriteOnce'] };
    const bound = { spec: claimSpec({ volumeName: 'pv', storageClassName: 'fast', volumeMode: 'Block' }), status };
    expect(cells(claims, bound)).toEqual(['web', 'Bound', 'pv', '2Gi', 'RWO,RWX', 'fast', '<unset>', '60s', 'Block']);
    expect(cells(claims, { spec: claimSpec(), status: { phase: 'Pending' } })).toEqual([
      'web',
      'Pending',
      '',
      '',
      '',
      '',
      '<unset>',
      '60s',
      '<unset>',
    ]);
  });

  it('what is on its way out is Terminating', () => {
    const metadata = { deletionTimestamp: '2025-01-01T00:00:00Z' };
    expect(cells(claims, { metadata, status: { phase: 'Bound' } })[1]).toBe('Terminating');
    expect(cells(volumes, { metadata, status: { phase: 'Released' } })[4]).toBe('Terminating');
  });

  it('a volume shows its claim, its policy and why it failed', () => {
    const spec = volumeSpec({
      claimRef: { namespace: 'demo', name: 'data' },
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'fast',
      volumeMode: 'Filesystem',
      accessModes: ['ReadOnlyMany', 'ReadWriteOncePod'],
    });
    expect(cells(volumes, { spec, status: { phase: 'Failed', reason: 'VolumeFailedDelete' } })).toEqual([
      'web',
      '1Gi',
      'ROX,RWOP',
      'Delete',
      'Failed',
      'demo/data',
      'fast',
      '<unset>',
      'VolumeFailedDelete',
      '60s',
      'Filesystem',
    ]);
  });

  it('the default class is marked', () => {
    expect(cells(classes, { metadata: isDefault, provisioner: 'p', reclaimPolicy: 'Delete' }).slice(0, 4)).toEqual([
      'web (default)',
      'p',
      'Delete',
      '<unset>',
    ]);
  });

  it('a driver shows its modes and the audiences of its tokens', () => {
    const spec = {
      attachRequired: false,
      tokenRequests: [{ audience: 'a' }, { audience: 'b' }],
      volumeLifecycleModes: ['Persistent'],
    };
    expect(cells(drivers, { spec })).toEqual(['web', false, false, false, 'a,b', false, 'Persistent', '60s']);
  });
});

describe('defaults', () => {
  it('a claim is for a filesystem, and is Pending and protected from its first moment', () => {
    const { object: made, errors } = create(claims, { spec: claimSpec(), status: { phase: 'Bound' } });
    expect(errors).toEqual([]);
    expect(made).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });
  });

  it('a volume is kept, is Pending and protected from its first moment', () => {
    const { object: made } = create(volumes, {
      metadata: { creationTimestamp: '2025-01-01T00:00:00Z' },
      spec: volumeSpec(),
    });
    expect(made).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pv-protection'] },
      spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' },
      status: { phase: 'Pending', lastPhaseTransitionTime: '2025-01-01T00:00:00Z' },
    });
  });

  it('a class deletes, and binds at once', () => {
    expect(create(classes, { provisioner: 'csi.test' }).object).toMatchObject({
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
    });
  });

  it('a driver is attached, and for persistent volumes', () => {
    expect(create(drivers, { spec: {} }).object['spec']).toEqual({
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
      requiresRepublish: false,
      seLinuxMount: false,
    });
  });

  it('an attachment is not attached yet, whatever its maker says', () => {
    const spec = { attacher: 'csi.test', nodeName: 'n', source: { persistentVolumeName: 'pv' } };
    expect(create(attachments, { spec, status: { attached: true } }).object['status']).toEqual({ attached: false });
  });

  it('both ways to name a source say the same', () => {
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'from' };
    const { object: made, errors } = create(claims, { spec: claimSpec({ dataSource }) });
    expect(errors).toEqual([]);
    expect(made['spec']).toMatchObject({ dataSource, dataSourceRef: dataSource });
  });
});

describe('the default class', () => {
  const assigned = (lookup: ObjectLookup, spec: Fields = {}, metadata: Fields = {}): unknown =>
    (create(claims, { metadata, spec: claimSpec(spec) }, lookup).object['spec'] as Fields)['storageClassName'];
  const old = { ...isDefault, creationTimestamp: '2024-01-01T00:00:00Z' };
  const young = { ...isDefault, creationTimestamp: '2024-06-01T00:00:00Z' };

  it.each<[string, ObjectLookup, Fields, Fields, unknown]>([
    ['is given to a claim that names none', lookupOf(storageClass('a'), storageClass('b', {}, isDefault)), {}, {}, 'b'],
    ['is not given where there is none', lookupOf(storageClass('a')), {}, {}, undefined],
    ['leaves a named class alone', lookupOf(storageClass('b', {}, isDefault)), { storageClassName: 'a' }, {}, 'a'],
    [
      'leaves the wish for no class alone',
      lookupOf(storageClass('b', {}, isDefault)),
      { storageClassName: '' },
      {},
      '',
    ],
    [
      'leaves a class in the old annotation alone',
      lookupOf(storageClass('b', {}, isDefault)),
      {},
      { annotations: { 'volume.beta.kubernetes.io/storage-class': 'a' } },
      undefined,
    ],
    ['is the newest of several', lookupOf(storageClass('a', {}, old), storageClass('b', {}, young)), {}, {}, 'b'],
    [
      'is the first by name of several of one age',
      lookupOf(storageClass('b', {}, old), storageClass('a', {}, old)),
      {},
      {},
      'a',
    ],
  ])('%s', (_what, lookup, spec, metadata, expected) => {
    expect(assigned(lookup, spec, metadata)).toBe(expected);
  });
});

describe('what is refused', () => {
  const unsupported = 'supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"';
  it.each<[string, ResourceKind, Fields, string[]]>([
    [
      'a claim without a mode and a size',
      claims,
      { spec: { resources: {} } },
      [
        'spec.accessModes: Required value: at least 1 access mode is required',
        'spec.resources[storage]: Required value',
      ],
    ],
    [
      'an unknown access mode',
      claims,
      { spec: claimSpec({ accessModes: ['Write'] }) },
      [`spec.accessModes: Unsupported value: "Write": ${unsupported}`],
    ],
    [
      'one pod among many',
      claims,
      { spec: claimSpec({ accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }) },
      ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
    ],
    [
      'a claim for nothing',
      claims,
      { spec: claimSpec({ resources: { requests: { storage: '0' } } }) },
      ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    ],
    [
      'an unknown volume mode',
      claims,
      { spec: claimSpec({ volumeMode: 'Tape' }) },
      ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
    ],
    [
      'a class name that is none',
      claims,
      { spec: claimSpec({ storageClassName: 'A_B' }) },
      [expect.stringMatching(/^spec\.storageClassName: Invalid value: "A_B": a lowercase RFC 1123 subdomain/)],
    ],
    [
      'a source that is no claim',
      claims,
      { spec: claimSpec({ dataSourceRef: { kind: 'Pod', name: 'p' } }) },
      [
        expect.stringContaining('spec.dataSource: Invalid value: "Pod": must be \'PersistentVolumeClaim\''),
        expect.stringContaining('spec.dataSourceRef'),
      ],
    ],
    [
      'a selector without sense',
      claims,
      { spec: claimSpec({ selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }) },
      [expect.stringMatching(/^spec\.selector\.matchExpressions\[0\]\.values: Required value/)],
    ],
    [
      'a volume of nothing',
      volumes,
      { spec: { accessModes: ['ReadWriteOnce'] } },
      [
        'spec.capacity: Required value',
        'spec.capacity: Unsupported value: null: supported values: "storage"',
        'spec: Required value: must specify a volume type',
      ],
    ],
    [
      'a volume of two sources',
      volumes,
      { spec: volumeSpec({ hostPath: { path: '/x' } }) },
      ['spec.csi: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      'a volume with more than storage',
      volumes,
      { spec: volumeSpec({ capacity: { storage: '1Gi', cpu: '1' } }) },
      [expect.stringMatching(/^spec\.capacity: Unsupported value: .*supported values: "storage"$/)],
    ],
    [
      'an empty volume',
      volumes,
      { spec: volumeSpec({ capacity: { storage: '0' } }) },
      ['spec.capacity[storage]: Invalid value: "0": must be greater than zero'],
    ],
    [
      'an unknown policy',
      volumes,
      { spec: volumeSpec({ persistentVolumeReclaimPolicy: 'Burn' }) },
      [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Recycle", "Retain"',
      ],
    ],
    [
      'a local volume that is everywhere',
      volumes,
      { spec: volumeSpec({ csi: undefined, local: { path: '/mnt' } }) },
      ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
    ],
    [
      'an affinity without a term',
      volumes,
      { spec: volumeSpec({ nodeAffinity: { required: { nodeSelectorTerms: [] } } }) },
      ['spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term'],
    ],
    [
      'a path that climbs',
      volumes,
      { spec: volumeSpec({ csi: undefined, hostPath: { path: '/a/../b' } }) },
      ['spec.hostPath.path: Invalid value: "/a/../b": must not contain \'..\''],
    ],
    [
      'an NFS path that is not absolute',
      volumes,
      { spec: volumeSpec({ csi: undefined, nfs: { server: 's', path: 'x' } }) },
      ['spec.nfs.path: Invalid value: "x": must be an absolute path'],
    ],
    [
      'a CSI volume without a handle',
      volumes,
      { spec: volumeSpec({ csi: { driver: 'csi.test', volumeHandle: '' } }) },
      ['spec.csi.volumeHandle: Required value'],
    ],
    [
      'half a secret',
      volumes,
      { spec: volumeSpec({ csi: { driver: 'csi.test', volumeHandle: 'v', nodePublishSecretRef: { name: 's' } } }) },
      ['spec.csi.nodePublishSecretRef.namespace: Required value'],
    ],
    [
      'recycling the root',
      volumes,
      { spec: volumeSpec({ csi: undefined, hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' }) },
      ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
    ],
    ['a class without a provisioner', classes, { provisioner: '' }, ['provisioner: Required value']],
    [
      'a class that recycles',
      classes,
      { provisioner: 'p', reclaimPolicy: 'Recycle' },
      ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
    ],
    [
      'a class that binds some day',
      classes,
      { provisioner: 'p', volumeBindingMode: 'Later' },
      ['volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"'],
    ],
    [
      'a class with too many parameters',
      classes,
      { provisioner: 'p', parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, ''])) },
      ['parameters: Too many: 513: must have at most 512 items'],
    ],
    [
      'a topology that allows nothing',
      classes,
      { provisioner: 'p', allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: [] }] }] },
      ['allowedTopologies[0].matchLabelExpressions[0].values: Required value'],
    ],
    [
      'a topology that says it twice',
      classes,
      { provisioner: 'p', allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'a'] }] }] },
      ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"'],
    ],
    [
      'a driver with a long name',
      drivers,
      { metadata: { name: 'd'.repeat(64) }, spec: {} },
      ['metadata.name: Too long: may not be more than 63 bytes'],
    ],
    [
      'an unknown fsGroupPolicy',
      drivers,
      { spec: { fsGroupPolicy: 'Maybe' } },
      ['spec.fsGroupPolicy: Unsupported value: "Maybe": supported values: "File", "None", "ReadWriteOnceWithFSType"'],
    ],
    [
      'one audience twice',
      drivers,
      { spec: { tokenRequests: [{ audience: 'a' }, { audience: 'a' }] } },
      ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
    ],
    [
      'a token that lives too short',
      drivers,
      { spec: { tokenRequests: [{ audience: 'a', expirationSeconds: 599 }] } },
      ['spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes'],
    ],
    [
      'one driver twice on a node',
      nodes,
      {
        spec: {
          drivers: [
            { name: 'd', nodeID: 'x' },
            { name: 'd', nodeID: 'y' },
          ],
        },
      },
      ['spec.drivers[1].name: Duplicate value: "d"'],
    ],
    [
      'a driver that does not know its node',
      nodes,
      { spec: { drivers: [{ name: 'd', nodeID: '' }] } },
      ['spec.drivers[0].nodeID: Required value'],
    ],
    [
      'a topology key twice',
      nodes,
      { spec: { drivers: [{ name: 'd', nodeID: 'x', topologyKeys: ['zone', 'zone'] }] } },
      ['spec.drivers[0]: Duplicate value: "zone"'],
    ],
    [
      'an attachment of nothing',
      attachments,
      { spec: { attacher: 'd', nodeName: 'n', source: {} } },
      ['spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
    ],
    [
      'an attachment of an unnamed volume',
      attachments,
      { spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: '' } } },
      [
        'spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName',
        expect.stringContaining('spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain'),
      ],
    ],
    [
      'less than no capacity',
      capacities,
      { storageClassName: 'c', capacity: '-1' },
      ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
    ],
  ])('%s', (_what, kind, fields, expected) => {
    expect(lines(create(kind, fields).errors)).toEqual(expected);
  });
});
