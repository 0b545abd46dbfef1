import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../../client/types.ts';
import {
  attachmentName,
  FORCE_DETACH_MS,
  type NodePlanInput,
  planNode,
} from '../../../../controlplane/controllers/attach-detach/plan.ts';
import { attacherFinalizer, decideAttachment } from '../../../../controlplane/csi/attacher/attacher.ts';
import type { CsiDriver, PersistentVolume, VolumeAttachment } from '../../../../controlplane/storage/objects.ts';
import { monotonicMs } from '../../../../lib/clock.ts';
import { claimRef, makeClaim, makeVolume, podWithClaims } from '../../../support/storage-objects.ts';

const meta = (name: string) => ({ name, uid: `uid-${name}`, resourceVersion: '1' });
const claim = makeClaim(
  'c',
  { volumeName: 'v' },
  { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
  { phase: 'Bound' },
);
const volume = (spec: NonNullable<PersistentVolume['spec']> = {}) =>
  makeVolume('v', { claimRef: claimRef(claim), ...spec }, {}, 'Bound');
const NAME = 'kubernetes.io/csi/csi.test^handle-v';

interface Case {
  readonly pods?: readonly Pod[];
  readonly attachments?: readonly VolumeAttachment[];
  readonly volume?: PersistentVolume;
  readonly driver?: CsiDriver['spec'];
  readonly node?: Node;
  readonly gone?: boolean;
  readonly unwantedMs?: number;
}

const at = (nodeName: string, attached = true, more: Partial<VolumeAttachment['metadata']> = {}): VolumeAttachment => ({
  metadata: { ...meta(attachmentName('handle-v', 'csi.test', nodeName)), ...more },
  spec: { attacher: 'csi.test', nodeName, source: { persistentVolumeName: 'v' } },
  status: { attached },
});
const node = (status: Node['status'] = {}, spec: Node['spec'] = {}): Node => ({ metadata: meta('n'), spec, status });
const READY = { conditions: [{ type: 'Ready', status: 'True' }] };
const LOST = { conditions: [{ type: 'Ready', status: 'Unknown' }] };
const pod = podWithClaims('p', ['c'], 'n');

function plan(given: Case): string {
  const input: NodePlanInput = {
    nodeName: 'n',
    node: given.gone === true ? undefined : (given.node ?? node(READY)),
    pods: given.pods ?? [],
    attachments: given.attachments ?? [],
    view: {
      claim: (key) => (key === 'demo/c' ? claim : undefined),
      volume: (name) => (name === 'v' ? (given.volume ?? volume()) : undefined),
      csiDriver: (name) => (given.driver === undefined ? undefined : { metadata: meta(name), spec: given.driver }),
    },
    unwantedSince: new Map(given.unwantedMs === undefined ? [] : [[at('n').metadata.name, monotonicMs(0)]]),
    now: monotonicMs(given.unwantedMs ?? 0),
  };
  const { attach, detach, waiting, attached, blocked } = planNode(input);
  const words = [
    ...attach.map((one) => `attach ${one.volume.metadata.name}`),
    ...detach.map(() => 'detach'),
    ...waiting.map(() => 'wait'),
    ...attached.map(() => 'attached'),
    ...blocked.map(({ message }) => message.split(' Volume ')[0]),
  ];
  return words.length === 0 ? 'nothing' : words.join(', ');
}

describe('what a node needs attached', () => {
  const cases: readonly [string, Case, string][] = [
    ['a volume of a pod there', { pods: [pod] }, 'attach v'],
    ['once for two pods', { pods: [pod, podWithClaims('q', ['c'], 'n')] }, 'attach v'],
    ['nothing of a pod that has ended', { pods: [{ ...pod, status: { phase: 'Failed' } }] }, 'nothing'],
    ['nothing where the driver does not want it', { pods: [pod], driver: { attachRequired: false } }, 'nothing'],
    ['what the driver wants', { pods: [pod], driver: { attachRequired: true } }, 'attach v'],
    [
      'nothing for a volume that is another claim’s',
      { pods: [pod], volume: volume({ claimRef: claimRef(makeClaim('d')) }) },
      'nothing',
    ],
    [
      'nothing for a volume that is not CSI’s',
      { pods: [pod], volume: { ...volume(), spec: { claimRef: claimRef(claim), hostPath: { path: '/' } } } },
      'nothing',
    ],
    ['nothing on a node that is gone', { pods: [pod], gone: true }, 'nothing'],
    ['what is attached already stays', { pods: [pod], attachments: [at('n')] }, 'attached'],
    ['what is not attached yet is not reported', { pods: [pod], attachments: [at('n', false)] }, 'nothing'],
    [
      'nothing that is attached elsewhere',
      { pods: [pod], attachments: [at('m')] },
      'Multi-Attach error for volume "v"',
    ],
    [
      'what may be on many nodes',
      { pods: [pod], attachments: [at('m')], volume: volume({ accessModes: ['ReadWriteMany'] }) },
      'attach v',
    ],
    ['what nobody wants is taken away', { attachments: [at('n')] }, 'detach'],
    [
      'not while the node uses it',
      { attachments: [at('n')], node: node({ ...READY, volumesInUse: [NAME] }) },
      'wait, attached',
    ],
    [
      'not from a silent node at once',
      { attachments: [at('n')], node: node({ ...LOST, volumesInUse: [NAME] }), unwantedMs: 1000 },
      'wait, attached',
    ],
    [
      'from a silent node in the end',
      { attachments: [at('n')], node: node({ ...LOST, volumesInUse: [NAME] }), unwantedMs: FORCE_DETACH_MS },
      'detach',
    ],
    [
      'never by force from a node that lives',
      { attachments: [at('n')], node: node({ ...READY, volumesInUse: [NAME] }), unwantedMs: FORCE_DETACH_MS },
      'wait, attached',
    ],
    [
      'at once from a node out of service',
      {
        attachments: [at('n')],
        node: node(
          { ...LOST, volumesInUse: [NAME] },
          { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] },
        ),
      },
      'detach',
    ],
    ['at once from a node that is gone', { attachments: [at('n')], gone: true }, 'detach'],
    [
      'what is being detached is not detached again',
      { attachments: [at('n', true, { deletionTimestamp: 'x' })] },
      'nothing',
    ],
  ];
  it.each(cases)('%s', (_what, given, expected) => {
    expect(plan(given)).toBe(expected);
  });

  it('has the name by which kubelets look for it', () => {
    // sha256 of "handledrivernode", as csi_util's getAttachmentName.
    expect(attachmentName('handle', 'driver', 'node')).toBe(
      'csi-fdef298eb16db6fa42906ef1ff09a93a7f3028f8290cc9d71628ff91c237bfa7',
    );
    expect(attachmentName('handle', 'driver', 'n2')).not.toBe(attachmentName('handle', 'driver', 'node'));
  });
});

describe('an attachment', () => {
  const finalizer = attacherFinalizer('csi.test');
  it.each([
    ['is attached', at('n', false), 'attach'],
    ['once', at('n', true), 'done'],
    ['is detached when it is deleted', at('n', true, { deletionTimestamp: 'x', finalizers: [finalizer] }), 'detach'],
    [
      'is detached even if attaching never succeeded: it may have happened',
      at('n', false, { deletionTimestamp: 'x', finalizers: [finalizer] }),
      'detach',
    ],
    ['is let go when it is another’s', at('n', true, { deletionTimestamp: 'x', finalizers: ['other/one'] }), 'done'],
  ] as const)('%s', (_what, one, expected) => {
    expect(decideAttachment(one, finalizer)).toBe(expected);
  });

  it.each([
    ['loop.csi.nodelet', 'external-attacher/loop-csi-nodelet'],
    ['ends.with.dash-', 'external-attacher/ends-with-dash-X'],
  ])('the finalizer of %s is %s', (driver, expected) => {
    expect(attacherFinalizer(driver)).toBe(expected);
  });
});
