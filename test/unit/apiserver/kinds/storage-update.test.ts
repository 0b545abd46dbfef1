import { describe, expect, it } from 'vitest';
import { atOnce } from '../../../../apiserver/admission/steps.ts';
import type { KubeObject, ObjectLookup, ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { admission, attributes, create, lines, lookupOf, type Outcome, object, row, update } from './support.ts';

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

/** An update with its admission, as the registry runs it. */
function admitUpdate(stored: KubeObject, change: (draft: KubeObject) => void, lookup: ObjectLookup): Outcome {
  const draft = structuredClone(stored);
  change(draft);
  atOnce(admission(lookup).validate(attributes(claims, 'UPDATE', draft, stored)));
  return { object: draft, errors: [] };
}

const request = (draft: KubeObject, storage: string): void => {
  Object.assign(draft, { spec: { ...(draft['spec'] as Fields), resources: { requests: { storage } } } });
};

describe('what never changes', () => {
  const stored = (kind: ResourceKind, fields: Fields): KubeObject => {
    const { object: made, errors } = create(kind, fields);
    expect(errors).toEqual([]);
    return made;
  };
  const claim = (phase: string, spec: Fields = {}, status: Fields = {}): KubeObject => ({
    ...stored(claims, { spec: claimSpec({ storageClassName: 'fast', ...spec }) }),
    status: { phase, ...status },
  });
  const set = (fields: Fields) => (draft: KubeObject) => {
    Object.assign(draft, { spec: { ...(draft['spec'] as Fields), ...fields } });
  };
  const FIXED =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

  it.each<[string, KubeObject, (draft: KubeObject) => void, string[]]>([
    ['a controller may bind a claim', claim('Pending'), set({ volumeName: 'pv' }), []],
    ['nobody may bind it elsewhere', claim('Bound', { volumeName: 'pv' }), set({ volumeName: 'other' }), [FIXED]],
    [
      'a bound claim may ask for more',
      claim('Bound', { volumeName: 'pv' }, { capacity: { storage: '1Gi' } }),
      (d) => request(d, '2Gi'),
      [],
    ],
    ['a claim that waits may not', claim('Pending'), (d) => request(d, '2Gi'), [FIXED]],
    [
      'a claim may not ask for less than it has',
      claim('Bound', { volumeName: 'pv' }, { capacity: { storage: '1Gi' } }),
      (d) => request(d, '512Mi'),
      ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
    ],
    [
      'a growth that failed may be taken back, above what there is',
      claim(
        'Bound',
        { volumeName: 'pv', resources: { requests: { storage: '4Gi' } } },
        { capacity: { storage: '1Gi' } },
      ),
      (d) => request(d, '2Gi'),
      [],
    ],
    ['modes stay', claim('Bound', { volumeName: 'pv' }), set({ accessModes: ['ReadWriteMany'] }), [FIXED]],
    [
      'the volume mode stays',
      claim('Pending'),
      set({ volumeMode: 'Block' }),
      [FIXED, 'volumeMode: Invalid value: "Block": field is immutable'],
    ],
    ['the class stays', claim('Pending'), set({ storageClassName: 'slow' }), [FIXED]],
  ])('%s', (_what, before, change, expected) => {
    expect(lines(update(claims, before, change).errors)).toEqual(expected);
  });

  it('a claim without a class may be given one later', () => {
    const before = { ...stored(claims, { spec: claimSpec() }), status: { phase: 'Pending' } };
    expect(update(claims, before, set({ storageClassName: 'late' })).errors).toEqual([]);
  });

  it('the status of a claim is not for those who write the claim', () => {
    const { object: after } = update(
      volumes,
      { ...stored(volumes, { spec: volumeSpec() }), status: { phase: 'Bound' } },
      (draft) => {
        draft['status'] = { phase: 'Failed' };
      },
    );
    expect(after['status']).toEqual({ phase: 'Failed' });
    // The registry puts the old status back for kinds with a status subresource.
    expect(volumes.subresources).toContain('status');
    expect(claims.subresources).toContain('status');
  });

  it.each<[string, Fields, Fields, string[]]>([
    [
      'a volume’s source',
      {},
      { csi: { driver: 'csi.test', volumeHandle: 'v2' } },
      ['spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation'],
    ],
    ['a volume’s mode', {}, { volumeMode: 'Block' }, ['volumeMode: Invalid value: "Block": field is immutable']],
  ])('%s stays', (_what, before, change, expected) => {
    expect(lines(update(volumes, stored(volumes, { spec: volumeSpec(before) }), set(change)).errors)).toEqual(expected);
  });

  it('a volume may get a secret that it lacked, and another policy, size and claim', () => {
    const secret = { name: 's', namespace: 'demo' };
    const csi = { driver: 'csi.test', volumeHandle: 'v1', controllerExpandSecretRef: secret };
    const change = {
      csi,
      persistentVolumeReclaimPolicy: 'Delete',
      capacity: { storage: '2Gi' },
      claimRef: { namespace: 'demo', name: 'data' },
    };
    expect(update(volumes, stored(volumes, { spec: volumeSpec() }), set(change)).errors).toEqual([]);
  });

  it.each<[string, ResourceKind, Fields, Fields, string[]]>([
    [
      'a class’s provisioner',
      classes,
      { provisioner: 'a' },
      { provisioner: 'b' },
      ['provisioner: Forbidden: updates to provisioner are forbidden.'],
    ],
    [
      'a class’s parameters',
      classes,
      { provisioner: 'a' },
      { parameters: { x: 'y' } },
      ['parameters: Forbidden: updates to parameters are forbidden.'],
    ],
    [
      'a class’s policy',
      classes,
      { provisioner: 'a' },
      { reclaimPolicy: 'Retain' },
      ['reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.'],
    ],
    [
      'a class’s binding mode',
      classes,
      { provisioner: 'a' },
      { volumeBindingMode: 'WaitForFirstConsumer' },
      ['volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable'],
    ],
    [
      'a driver’s need to be attached',
      drivers,
      { spec: {} },
      { spec: { attachRequired: false } },
      ['spec.attachedRequired: Invalid value: false: field is immutable'],
    ],
    [
      'an attachment',
      attachments,
      { spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'a' } } },
      { spec: { attacher: 'd', nodeName: 'm', source: { persistentVolumeName: 'a' } } },
      [expect.stringMatching(/^spec: Invalid value: .*: field is immutable$/)],
    ],
    [
      'a capacity’s class',
      capacities,
      { storageClassName: 'a' },
      { storageClassName: 'b' },
      ['storageClassName: Invalid value: "b": field is immutable'],
    ],
    [
      'a driver’s name for a node',
      nodes,
      { spec: { drivers: [{ name: 'd', nodeID: 'x' }] } },
      { spec: { drivers: [{ name: 'd', nodeID: 'y' }] } },
      [expect.stringMatching(/^spec\.drivers: Invalid value: .*: field is immutable$/)],
    ],
  ])('%s stays', (_what, kind, before, change, expected) => {
    const { errors } = update(kind, stored(kind, before), (draft) => Object.assign(draft, change));
    expect(lines(errors)).toEqual(expected);
  });

  it('a class may begin to allow growth, a node may gain and lose drivers and room', () => {
    const more = update(classes, stored(classes, { provisioner: 'a' }), (draft) =>
      Object.assign(draft, { allowVolumeExpansion: true }),
    );
    expect(more.errors).toEqual([]);
    const node = stored(nodes, { spec: { drivers: [{ name: 'd', nodeID: 'x', allocatable: { count: 1 } }] } });
    const drivers = [
      { name: 'd', nodeID: 'x', allocatable: { count: 2 } },
      { name: 'e', nodeID: 'x' },
    ];
    expect(update(nodes, node, (draft) => Object.assign(draft, { spec: { drivers } })).errors).toEqual([]);
    expect(update(nodes, node, (draft) => Object.assign(draft, { spec: { drivers: [] } })).errors).toEqual([]);
  });
});

describe('growing a claim', () => {
  const growing = (phase: string, allowed: boolean | undefined): (() => Outcome) => {
    const before = { ...create(claims, { spec: claimSpec({ storageClassName: 'fast' }) }).object, status: { phase } };
    const lookup = lookupOf(storageClass('fast', allowed === undefined ? {} : { allowVolumeExpansion: allowed }));
    return () => admitUpdate(before, (draft) => request(draft, '2Gi'), lookup);
  };
  it('is for bound claims', () => {
    expect(growing('Pending', true)).toThrow('Only bound persistent volume claims can be expanded');
  });
  it.each([false, undefined])('is for classes that allow it (allowVolumeExpansion: %s)', (allowed) => {
    expect(growing('Bound', allowed)).toThrow('only dynamically provisioned pvc can be resized');
  });
  it('passes where it is allowed, and other updates are not asked', () => {
    expect(growing('Bound', true)().errors).toEqual([]);
    const before = { ...create(claims, { spec: claimSpec() }).object, status: { phase: 'Pending' } };
    expect(admitUpdate(before, () => undefined, lookupOf()).errors).toEqual([]);
  });
});
