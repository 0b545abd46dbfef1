import { describe, expect, test } from 'vitest';
import {
  boundVolumeName,
  type Claim,
  checkBinding,
  checkUse,
  claimReference,
  type PV,
  volumeGroup,
} from '../../../../../agent/volumes/claims.ts';
import { expandedStatus, expandingStatus, expansionDue } from '../../../../../agent/volumes/csi/expansion.ts';
import { pod } from '../support.ts';

const meta = (name: string, more: object = {}) => ({ name, uid: `uid-of-${name}`, resourceVersion: '1', ...more });
const claim = (more: Partial<Claim> = {}): Claim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: meta('data', { namespace: 'demo' }),
  spec: { volumeName: 'pv-1' },
  status: { phase: 'Bound' },
  ...more,
});
const volume = (spec: NonNullable<PV['spec']> = {}): PV => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: meta('pv-1'),
  spec: { claimRef: { name: 'data', namespace: 'demo', uid: 'uid-of-data' }, ...spec },
});
const usual = { name: 'v', persistentVolumeClaim: { claimName: 'data' } };

describe('the claim of a volume', () => {
  test('is the one named, in the pod’s namespace', () => {
    const named = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
    expect(claimReference(pod({}), named)).toEqual({
      namespace: 'demo',
      name: 'data',
      ownedByPod: false,
      readOnly: true,
    });
  });
  test('of a generic ephemeral volume is the pod’s own', () => {
    expect(claimReference(pod({}), { name: 'v', ephemeral: {} })).toMatchObject({ name: 'web-v', ownedByPod: true });
  });
});

describe('a pod may use a claim', () => {
  const reference = claimReference(pod({}), usual);
  test('that is bound', () => {
    expect(boundVolumeName(pod({}), reference, claim())).toBe('pv-1');
  });
  test.each<[string, Claim | undefined, string]>([
    ['that does not exist', undefined, 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'],
    ['that is pending', claim({ status: { phase: 'Pending' } }), 'PVC is not bound'],
    ['that is lost', claim({ status: { phase: 'Lost' } }), 'PVC is not bound'],
    ['that names no volume', claim({ spec: {} }), 'PVC has empty pvc.Spec.VolumeName'],
    [
      'that is going',
      claim({ metadata: { ...meta('data'), namespace: 'demo', deletionTimestamp: 'now' } }),
      'PVC is being deleted',
    ],
  ])('but not one %s', (_, subject, words) => {
    expect(() => boundVolumeName(pod({}), reference, subject)).toThrow(
      new Error(`error processing PVC demo/data: ${words}`),
    );
  });
  test('of an ephemeral volume only when it was made for this pod', () => {
    const own = claimReference(pod({}), { name: 'v', ephemeral: {} });
    const owners = (uid: string) => [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid, controller: true }];
    const of = (uid: string) =>
      claim({ metadata: { ...meta('web-v'), namespace: 'demo', ownerReferences: owners(uid) } });
    expect(boundVolumeName(pod({}), own, of('uid-1'))).toBe('pv-1');
    expect(() => boundVolumeName(pod({}), own, of('uid-2'))).toThrow(
      new Error('PVC demo/web-v was not created for pod demo/web (pod is not owner)'),
    );
    expect(() => boundVolumeName(pod({}), own, claim())).toThrow('pod is not owner');
  });
});

describe('a volume is used for the claim', () => {
  const reference = claimReference(pod({}), usual);
  test('that it is bound to', () => {
    expect(checkBinding(reference, claim(), 'pv-1', volume()).metadata.name).toBe('pv-1');
  });
  test.each<[string, PV | undefined, string]>([
    ['that is not there', undefined, 'failed to fetch PV pv-1 from API server: persistentvolumes "pv-1" not found'],
    [
      'not bound',
      { ...volume(), spec: {} },
      'found PV object pv-1 but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim',
    ],
    [
      'bound to another claim of the name',
      volume({ claimRef: { name: 'data', namespace: 'demo', uid: 'old' } }),
      'found PV object pv-1 but its pv.Spec.ClaimRef.UID old does not point to claim.UID uid-of-data',
    ],
  ])('but not one %s', (_, subject, words) => {
    expect(() => checkBinding(reference, claim(), 'pv-1', subject)).toThrow(
      new Error(`error processing PVC demo/data: ${words}`),
    );
  });
});

test.each([
  [{ 'pv.beta.kubernetes.io/gid': '1234' }, 1234],
  [{ 'pv.beta.kubernetes.io/gid': '0' }, 0],
  [{ 'pv.beta.kubernetes.io/gid': 'staff' }, undefined],
  [{ 'pv.beta.kubernetes.io/gid': '-1' }, undefined],
  [{ other: '1' }, undefined],
  [undefined, undefined],
])('a volume with the annotations %j has its pods in group %s', (annotations, group) => {
  const metadata = { ...volume().metadata, ...(annotations === undefined ? {} : { annotations }) };
  expect(volumeGroup({ ...volume(), metadata })).toBe(group);
});

describe('a volume in', () => {
  const mounted = pod({ containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }] });
  const mapped = pod({ containers: [{ name: 'c', volumeDevices: [{ name: 'v', devicePath: '/dev/v' }] }] });
  test.each([
    ['Filesystem', mounted, undefined],
    [undefined, mounted, undefined],
    ['Block', mapped, undefined],
    ['Block', mounted, 'volume v has volumeMode Block, but is specified in volumeMounts'],
    ['Filesystem', mapped, 'volume v has volumeMode Filesystem, but is specified in volumeDevices'],
  ])('mode %s is refused where it is used the other way', (mode, subject, words) => {
    const check = () => checkUse(subject, usual, mode);
    if (words === undefined) check();
    else expect(check).toThrow(words);
  });
});

describe('a volume is grown', () => {
  const sized = (has: string, more: object = {}) =>
    claim({ status: { phase: 'Bound', capacity: { storage: has }, ...more } });
  const big = volume({ capacity: { storage: '2Gi' } });
  test.each<[string, Claim, PV, string | undefined]>([
    ['when it is larger than what the claim has', sized('1Gi'), big, '2Gi'],
    ['not when it is as large', sized('2048Mi'), big, undefined],
    ['not when it is smaller', sized('3Gi'), big, undefined],
    ['not when nobody knows how large it is', claim(), big, undefined],
    [
      'not when the node has reported it as infeasible',
      sized('1Gi', { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } }),
      big,
      undefined,
    ],
    [
      'also when an agent died over it',
      sized('1Gi', { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } }),
      big,
      '2Gi',
    ],
  ])('%s', (_, subject, found, size) => {
    expect(expansionDue(subject, found)).toBe(size);
  });

  test('and the claim’s status shows it, once', () => {
    expect(expandingStatus(sized('1Gi'))).toEqual({ allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } });
    const already = sized('1Gi', { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } });
    expect(expandingStatus(already)).toBeUndefined();
  });

  test('and then has the size, no condition about it, and its other conditions', () => {
    const conditions = [
      { type: 'FileSystemResizePending', status: 'True' },
      { type: 'Resizing', status: 'True' },
      { type: 'Odd', status: 'True' },
    ];
    expect(expandedStatus(sized('1Gi', { conditions }), '2Gi')).toEqual({
      capacity: { storage: '2Gi' },
      conditions: [{ type: 'Odd', status: 'True' }],
      allocatedResourceStatuses: { storage: null },
    });
  });
});
