import { describe, expect, it } from 'vitest';
import { decideClaim, decideVolume } from '../../../../../controlplane/controllers/volume-binder/decide.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../../../../controlplane/storage/objects.ts';
import { claimRef, makeClaim, makeClass, makeVolume } from '../../../../support/storage-objects.ts';

interface World {
  readonly volumes?: readonly PersistentVolume[];
  readonly classes?: readonly StorageClass[];
  readonly waitingPods?: readonly string[];
}
const BOUND = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };
const LATER = makeClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' });

/** The decision in one line. */
function claimDecision(claim: PersistentVolumeClaim, { volumes = [], classes = [], waitingPods = [] }: World): string {
  const find = (name: string) => volumes.find((volume) => volume.metadata.name === name);
  const decision = decideClaim(claim, { volumes, volume: find, classes, waitingPods });
  switch (decision.kind) {
    case 'bind':
      return `bind ${decision.volume.metadata.name}`;
    case 'assign-class':
      return `assign-class ${decision.name}`;
    case 'provision':
      return `provision ${decision.provisioner}: ${decision.event.reason}`;
    default:
      return decision.event === undefined
        ? decision.kind
        : `${decision.kind}: ${decision.event.reason}: ${decision.event.message}`;
  }
}

describe('a claim', () => {
  const isDefault = { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };
  const cases: readonly [string, PersistentVolumeClaim, World, string][] = [
    ['is bound to a volume that fits', makeClaim('c'), { volumes: [makeVolume('v')] }, 'bind v'],
    [
      'is bound rather than provisioned for',
      makeClaim('c'),
      { volumes: [makeVolume('v')], classes: [makeClass('fast')] },
      'bind v',
    ],
    [
      'asks its class’s provisioner where none fits',
      makeClaim('c'),
      { classes: [makeClass('fast')] },
      'provision csi.test: ExternalProvisioning',
    ],
    [
      'of a class that is not there waits and says so',
      makeClaim('c'),
      {},
      'wait: ProvisioningFailed: storageclass.storage.k8s.io "fast" not found',
    ],
    [
      'of no class waits for a volume',
      makeClaim('c', { storageClassName: '' }),
      {},
      'wait: FailedBinding: no persistent volumes available for this claim and no storage class is set',
    ],
    [
      'from before there was a default class gets it',
      { ...makeClaim('c'), spec: { accessModes: ['ReadWriteOnce'] } },
      { classes: [makeClass('b', {}, isDefault)] },
      'assign-class b',
    ],
    [
      'whose volumes are made by hand waits in silence',
      makeClaim('c'),
      { classes: [makeClass('fast', { provisioner: 'kubernetes.io/no-provisioner' })] },
      'wait',
    ],
    [
      'of a plugin that is not built in waits and says so',
      makeClaim('c'),
      { classes: [makeClass('fast', { provisioner: 'kubernetes.io/aws-ebs' })] },
      'wait: ProvisioningFailed: no volume plugin matched name: kubernetes.io/aws-ebs',
    ],
    [
      'waits for its first consumer',
      makeClaim('c'),
      { classes: [LATER], volumes: [makeVolume('v')] },
      'wait: WaitForFirstConsumer: waiting for first consumer to be created before binding',
    ],
    [
      'waits for the pod that there is',
      makeClaim('c'),
      { classes: [LATER], waitingPods: ['p'] },
      'wait: WaitForPodScheduled: waiting for pod p to be scheduled',
    ],
    [
      'waits for the pods that there are',
      makeClaim('c'),
      { classes: [LATER], waitingPods: ['p', 'q'] },
      'wait: WaitForPodScheduled: waiting for pods p,q to be scheduled',
    ],
    [
      'is provisioned for once its node is chosen',
      makeClaim('c', {}, { annotations: { 'volume.kubernetes.io/selected-node': 'n' } }),
      { classes: [LATER] },
      'provision csi.test: ExternalProvisioning',
    ],
    [
      'is bound to what the scheduler set aside',
      makeClaim('c'),
      { classes: [LATER], volumes: [makeVolume('v', { claimRef: claimRef(makeClaim('c')) })] },
      'bind v',
    ],
    [
      'on its way out gets nothing',
      makeClaim('c', {}, { deletionTimestamp: 'x' }),
      { volumes: [makeVolume('v')] },
      'wait',
    ],
    ['for a volume that is not there yet waits', makeClaim('c', { volumeName: 'v' }), {}, 'wait'],
    [
      'for a volume by name is bound to it',
      makeClaim('c', { volumeName: 'b' }),
      { volumes: [makeVolume('a'), makeVolume('b')] },
      'bind b',
    ],
    [
      'for a volume by name that does not fit gets the reason',
      makeClaim('c', { volumeName: 'v' }),
      { volumes: [makeVolume('v', { storageClassName: 'x' })] },
      'wait: VolumeMismatch: Cannot bind to requested volume "v": storageClassName does not match',
    ],
    [
      'for a volume by name that another has gets an event',
      makeClaim('c', { volumeName: 'v' }),
      { volumes: [makeVolume('v', { claimRef: claimRef(makeClaim('d')) })] },
      'wait: FailedBinding: volume "v" already bound to a different claim.',
    ],
    [
      'that was bound stays bound',
      makeClaim('c', { volumeName: 'v' }, BOUND),
      { volumes: [makeVolume('v', { claimRef: claimRef(makeClaim('c')) }, {}, 'Bound')] },
      'bind v',
    ],
    [
      'that was bound mends its volume’s memory',
      makeClaim('c', { volumeName: 'v' }, BOUND),
      { volumes: [makeVolume('v')] },
      'bind v',
    ],
    [
      'whose volume is gone is Lost',
      makeClaim('c', { volumeName: 'v' }, BOUND),
      {},
      'lost: ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    ],
    [
      'that has forgotten its volume is Lost',
      makeClaim('c', {}, BOUND),
      {},
      'lost: ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
    ],
    [
      'whose volume is another’s is Lost',
      makeClaim('c', { volumeName: 'v' }, BOUND),
      { volumes: [makeVolume('v', { claimRef: claimRef(makeClaim('d')) })] },
      'lost: ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly',
    ],
  ];
  it.each(cases)('%s', (_what, claim, world, expected) => {
    expect(claimDecision(claim, world)).toBe(expected);
  });
});

describe('a volume', () => {
  const claim = makeClaim('c', { volumeName: 'v' }, BOUND);
  const mine = { claimRef: claimRef(claim) };
  const byProvisioner = { annotations: { 'pv.kubernetes.io/provisioned-by': 'csi.test' } };
  const cases: readonly [string, PersistentVolume, PersistentVolumeClaim | undefined, string][] = [
    ['of nobody is Available', makeVolume('v'), undefined, 'phase Available'],
    [
      'set aside for a claim to come is Available',
      makeVolume('v', { claimRef: { name: 'c', namespace: 'demo' } }),
      undefined,
      'phase Available',
    ],
    ['of a claim that has it is Bound', makeVolume('v', mine), claim, 'phase Bound'],
    ['of a claim that does not know yet wakes the claim', makeVolume('v', mine), makeClaim('c'), 'claim'],
    [
      'that a claim has and that does not know yet wakes the claim',
      makeVolume('v', { claimRef: { name: 'c', namespace: 'demo' } }),
      claim,
      'claim',
    ],
    [
      'whose claim is gone is Released',
      makeVolume('v', { ...mine, persistentVolumeReclaimPolicy: 'Retain' }),
      undefined,
      'phase Released',
    ],
    [
      'whose claim was made anew is Released',
      makeVolume('v', { claimRef: { ...claimRef(claim), uid: 'before' }, persistentVolumeReclaimPolicy: 'Retain' }),
      claim,
      'phase Released',
    ],
    ['that its provisioner will delete is Released', makeVolume('v', mine, byProvisioner), undefined, 'phase Released'],
    ['that nobody can delete has Failed', makeVolume('v', mine), undefined, 'phase Failed: VolumeFailedDelete'],
    [
      'that should be recycled has Failed',
      makeVolume('v', { ...mine, persistentVolumeReclaimPolicy: 'Recycle' }),
      undefined,
      'phase Failed: VolumeFailedRecycle',
    ],
    ['whose claim took another is freed', makeVolume('v', mine), makeClaim('c', { volumeName: 'w' }), 'unbind'],
    [
      'made for a claim that took another is Released',
      makeVolume('v', mine, byProvisioner),
      makeClaim('c', { volumeName: 'w' }),
      'phase Released',
    ],
  ];
  it.each(cases)('%s', (_what, volume, of, expected) => {
    const decision = decideVolume(volume, of);
    const suffix = decision.kind === 'phase' && decision.event !== undefined ? `: ${decision.event.reason}` : '';
    expect(decision.kind === 'phase' ? `phase ${decision.phase}${suffix}` : decision.kind).toBe(expected);
  });
});
