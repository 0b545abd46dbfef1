import { describe, expect, it } from 'vitest';
import { finalizerDecision, shouldDelete } from '../../../../../controlplane/csi/provisioner/delete.ts';
import {
  classifyFailure,
  createRequest,
  PROVISIONER_FINALIZER,
  type ProvisionInput,
  persistentVolume,
  shouldProvision,
  splitParameters,
} from '../../../../../controlplane/csi/provisioner/request.ts';
import { type SecretUse, secretReference } from '../../../../../controlplane/csi/shared/secrets.ts';
import type { PersistentVolume, StorageClass } from '../../../../../controlplane/storage/objects.ts';
import { makeClaim, makeClass, makeVolume } from '../../../../support/storage-objects.ts';

const ASKED = { 'volume.kubernetes.io/storage-provisioner': 'csi.test' };
const input = (more: Partial<ProvisionInput> = {}): ProvisionInput => ({
  claim: makeClaim('c'),
  storageClass: makeClass('fast', { parameters: { 'csi.storage.k8s.io/fstype': 'xfs', kind: 'sparse' } }),
  driver: 'csi.test',
  singleNodeModes: false,
  secrets: {},
  ...more,
});

describe('shouldProvision', () => {
  const later: Partial<StorageClass> = { volumeBindingMode: 'WaitForFirstConsumer' };
  it.each([
    ['a claim that was given to the driver', makeClaim('c', {}, { annotations: ASKED }), makeClass('fast'), true],
    [
      'the older annotation will do',
      makeClaim('c', {}, { annotations: { 'volume.beta.kubernetes.io/storage-provisioner': 'csi.test' } }),
      makeClass('fast'),
      true,
    ],
    ['not before it was', makeClaim('c'), makeClass('fast'), false],
    [
      'not for another driver',
      makeClaim('c', {}, { annotations: ASKED }),
      makeClass('fast', { provisioner: 'other' }),
      false,
    ],
    ['not without a class', makeClaim('c', {}, { annotations: ASKED }), undefined, false],
    ['not when it has a volume', makeClaim('c', { volumeName: 'v' }, { annotations: ASKED }), makeClass('fast'), false],
    [
      'not on its way out',
      makeClaim('c', {}, { annotations: ASKED, deletionTimestamp: 'x' }),
      makeClass('fast'),
      false,
    ],
    ['not before its node is chosen', makeClaim('c', {}, { annotations: ASKED }), makeClass('fast', later), false],
    [
      'once its node is chosen',
      makeClaim('c', {}, { annotations: { ...ASKED, 'volume.kubernetes.io/selected-node': 'n' } }),
      makeClass('fast', later),
      true,
    ],
  ])('%s', (_what, claim, storageClass, expected) => {
    expect(shouldProvision(claim, storageClass, 'csi.test')).toBe(expected);
  });
});

describe('CreateVolume', () => {
  it('is asked under a name that is the same at every attempt, with the driver’s own parameters', () => {
    expect(createRequest(input())).toEqual({
      name: 'pvc-uid-c',
      capacity_range: { required_bytes: '1073741824' },
      volume_capabilities: [
        { mount: { fs_type: 'xfs', mount_flags: [] }, access_mode: { mode: 'SINGLE_NODE_WRITER' } },
      ],
      parameters: { kind: 'sparse' },
      secrets: {},
    });
  });

  it('carries mount options, topologies, secrets and what to copy', () => {
    const requisite = [{ zone: 'a' }, { zone: 'b' }];
    const request = createRequest(
      input({
        storageClass: makeClass('fast', { mountOptions: ['noatime'] }),
        requirement: { requisite, preferred: requisite.toReversed() },
        secrets: { key: 'k' },
        cloneOf: 'vol-1',
      }),
    );
    expect(request.volume_capabilities?.[0]?.mount).toEqual({ fs_type: '', mount_flags: ['noatime'] });
    expect(request.accessibility_requirements).toEqual({
      requisite: [{ segments: { zone: 'a' } }, { segments: { zone: 'b' } }],
      preferred: [{ segments: { zone: 'b' } }, { segments: { zone: 'a' } }],
    });
    expect(request.secrets).toEqual({ key: 'k' });
    expect(request.volume_content_source).toEqual({ volume: { volume_id: 'vol-1' } });
  });

  it.each([
    ['ReadWriteOnce', false, 'SINGLE_NODE_WRITER'],
    ['ReadWriteOnce', true, 'SINGLE_NODE_MULTI_WRITER'],
    ['ReadWriteOncePod', false, 'SINGLE_NODE_WRITER'],
    ['ReadWriteOncePod', true, 'SINGLE_NODE_SINGLE_WRITER'],
    ['ReadOnlyMany', true, 'MULTI_NODE_READER_ONLY'],
    ['ReadWriteMany', true, 'MULTI_NODE_MULTI_WRITER'],
  ])('says %s (single-node modes: %s) as %s', (mode, singleNodeModes, expected) => {
    const { volume_capabilities } = createRequest(
      input({ claim: makeClaim('c', { accessModes: [mode] }), singleNodeModes }),
    );
    expect(volume_capabilities?.map((one) => one.access_mode?.mode)).toEqual([expected]);
  });

  it('asks for a block device where the claim does', () => {
    const { volume_capabilities } = createRequest(input({ claim: makeClaim('c', { volumeMode: 'Block' }) }));
    expect(volume_capabilities).toEqual([{ block: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }]);
  });

  it('refuses an unknown reserved parameter', () => {
    expect(() => splitParameters({ 'csi.storage.k8s.io/fstyp': 'x' })).toThrow(
      'found unknown parameter key "csi.storage.k8s.io/fstyp" with reserved namespace csi.storage.k8s.io/',
    );
  });
});

describe('the PersistentVolume', () => {
  const answer = {
    capacity_bytes: '2147483648',
    volume_id: 'vol-9',
    volume_context: { a: 'b' },
    content_source: null,
    accessible_topology: [{ segments: { zone: 'a', host: 'n' } }],
  };
  const make = (more: Partial<ProvisionInput> = {}) => persistentVolume(input(more), answer, 'me');

  it('says what was made, for whom, and who will delete it', () => {
    expect(make()).toMatchObject({
      metadata: {
        name: 'pvc-uid-c',
        annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.test' },
        finalizers: [PROVISIONER_FINALIZER],
      },
      spec: {
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteOnce'],
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'demo', name: 'c', uid: 'uid-c' },
        csi: {
          driver: 'csi.test',
          volumeHandle: 'vol-9',
          fsType: 'xfs',
          volumeAttributes: { a: 'b', 'storage.kubernetes.io/csiProvisionerIdentity': 'me' },
        },
        storageClassName: 'fast',
        persistentVolumeReclaimPolicy: 'Delete',
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: 'host', operator: 'In', values: ['n'] },
                  { key: 'zone', operator: 'In', values: ['a'] },
                ],
              },
            ],
          },
        },
      },
    });
  });

  it('has the size that was asked for where the driver does not say', () => {
    const unknown = { ...answer, capacity_bytes: '0', accessible_topology: [] };
    const made = persistentVolume(input(), unknown, 'me');
    expect(made).toMatchObject({ spec: { capacity: { storage: '1Gi' } } });
    expect(made).not.toHaveProperty('spec.nodeAffinity');
  });

  it('has no filesystem on a block device, and no finalizer where it is to be kept', () => {
    const made = make({
      claim: makeClaim('c', { volumeMode: 'Block' }),
      storageClass: makeClass('fast', { reclaimPolicy: 'Retain', parameters: { 'csi.storage.k8s.io/fstype': 'xfs' } }),
    });
    expect(made).not.toHaveProperty('spec.csi.fsType');
    expect(made).not.toHaveProperty('metadata.finalizers');
    expect(made).toMatchObject({ spec: { volumeMode: 'Block', persistentVolumeReclaimPolicy: 'Retain' } });
  });

  it('names the secrets of every later call', () => {
    const uses: SecretUse[] = [
      'provisioner',
      'controller-publish',
      'node-stage',
      'node-publish',
      'controller-expand',
      'node-expand',
    ];
    const parameters = Object.fromEntries(
      uses.flatMap((use) => [
        [`csi.storage.k8s.io/${use}-secret-name`, use],
        [`csi.storage.k8s.io/${use}-secret-namespace`, 'keys'],
      ]),
    );
    const named = (name: string) => ({ name, namespace: 'keys' });
    expect(make({ storageClass: makeClass('fast', { parameters }) })).toMatchObject({
      metadata: {
        annotations: {
          'volume.kubernetes.io/provisioner-deletion-secret-name': 'provisioner',
          'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'keys',
        },
      },
      spec: {
        csi: {
          controllerPublishSecretRef: named('controller-publish'),
          nodeStageSecretRef: named('node-stage'),
          nodePublishSecretRef: named('node-publish'),
          controllerExpandSecretRef: named('controller-expand'),
          nodeExpandSecretRef: named('node-expand'),
        },
      },
    });
  });
});

describe('secrets', () => {
  const context = { volumeName: 'pv', claim: { name: 'c', namespace: 'demo', annotations: { team: 'blue' } } };
  const of = (use: SecretUse, name: string | undefined, namespace: string | undefined) =>
    secretReference(
      use,
      {
        ...(name === undefined ? {} : { [`csi.storage.k8s.io/${use}-secret-name`]: name }),
        ...(namespace === undefined ? {} : { [`csi.storage.k8s.io/${use}-secret-namespace`]: namespace }),
      },
      context,
    );
  const dollar = (token: string): string => `$\{${token}}`;

  it.each([
    ['plain', 'node-stage', 'key', 'keys', { name: 'key', namespace: 'keys' }],
    ['of the volume', 'provisioner', `${dollar('pv.name')}-key`, 'keys', { name: 'pv-key', namespace: 'keys' }],
    ['of the claim', 'provisioner', dollar('pvc.name'), dollar('pvc.namespace'), { name: 'c', namespace: 'demo' }],
    [
      'of the claim’s annotation',
      'node-publish',
      dollar("pvc.annotations['team']"),
      'keys',
      { name: 'blue', namespace: 'keys' },
    ],
  ] as const)('%s', (_what, use, name, namespace, expected) => {
    expect(of(use, name, namespace)).toEqual(expected);
  });

  it.each([
    ['only a name', 'node-stage', 'key', undefined, /Both must be specified/],
    [
      'an annotation that the deletion could not read',
      'provisioner',
      dollar("pvc.annotations['team']"),
      'keys',
      /invalid tokens/,
    ],
    ['a claim’s name for a namespace', 'node-stage', 'key', dollar('pvc.name'), /invalid tokens/],
    ['an annotation that is not there', 'node-stage', dollar("pvc.annotations['x']"), 'keys', /invalid tokens/],
  ] as const)('refuses %s', (_what, use, name, namespace, expected) => {
    expect(() => of(use, name, namespace)).toThrow(expected);
  });

  it('are none where none is named', () => {
    expect(of('node-stage', undefined, undefined)).toBeUndefined();
  });
});

describe('a failure', () => {
  it.each([
    ['INVALID_ARGUMENT', true, 'final'],
    ['OUT_OF_RANGE', false, 'final'],
    ['INTERNAL', false, 'final'],
    ['RESOURCE_EXHAUSTED', false, 'final'],
    ['RESOURCE_EXHAUSTED', true, 'reschedule'],
    ['DEADLINE_EXCEEDED', true, 'background'],
    ['UNAVAILABLE', false, 'background'],
    ['ABORTED', false, 'background'],
    ['CANCELLED', false, 'background'],
  ])('%s (another node could be chosen: %s) is %s', (code, movable, expected) => {
    expect(classifyFailure(code, movable)).toBe(expected);
  });
});

describe('deleting', () => {
  const ours = { annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.test' } };
  const retained = { ...ours, finalizers: [PROVISIONER_FINALIZER] };
  const retain = { persistentVolumeReclaimPolicy: 'Retain' };
  it.each<[string, PersistentVolume, boolean]>([
    ['a released volume of ours', makeVolume('v', {}, ours, 'Released'), true],
    ['not one that is bound', makeVolume('v', {}, ours, 'Bound'), false],
    ['not one to keep', makeVolume('v', retain, ours, 'Released'), false],
    ['not one made by hand', makeVolume('v', {}, {}, 'Released'), false],
    ['not another driver’s', makeVolume('v', { csi: { driver: 'other', volumeHandle: 'x' } }, ours, 'Released'), false],
    [
      'one that was deleted while no claim had it',
      makeVolume('v', {}, { ...retained, deletionTimestamp: 'x' }, 'Available'),
      true,
    ],
    [
      'not one that was deleted while a claim has it',
      makeVolume('v', {}, { ...retained, deletionTimestamp: 'x' }, 'Bound'),
      false,
    ],
    [
      'not one that has been deleted behind its object',
      makeVolume('v', {}, { ...ours, deletionTimestamp: 'x' }, 'Released'),
      false,
    ],
  ])('%s', (_what, volume, expected) => {
    expect(shouldDelete(volume, 'csi.test')).toBe(expected);
  });

  it.each<[string, PersistentVolume, string]>([
    ['is put on a volume that is to be deleted', makeVolume('v', {}, ours), 'add'],
    ['stays there', makeVolume('v', {}, retained), 'keep'],
    ['is taken off one that is to be kept', makeVolume('v', retain, retained), 'remove'],
    ['is not put on what is going away', makeVolume('v', {}, { ...ours, deletionTimestamp: 'x' }), 'keep'],
    ['is no business of ours on another’s', makeVolume('v'), 'keep'],
  ])('the finalizer %s', (_what, volume, expected) => {
    expect(finalizerDecision(volume, 'csi.test')).toBe(expected);
  });
});
