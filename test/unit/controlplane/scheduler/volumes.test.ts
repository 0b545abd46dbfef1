import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../../client/types.ts';
import { SchedulerCache } from '../../../../controlplane/scheduler/cache/cache.ts';
import { podInfo } from '../../../../controlplane/scheduler/cache/pod-info.ts';
import { CycleState } from '../../../../controlplane/scheduler/framework/cycle-state.ts';
import { nodeVolumeLimits } from '../../../../controlplane/scheduler/plugins/node-volume-limits.ts';
import { volumeRestrictions } from '../../../../controlplane/scheduler/plugins/volume-restrictions.ts';
import { fitVolumes, podVolumes, type StorageView } from '../../../../controlplane/scheduler/volumes.ts';
import type {
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../../../controlplane/storage/objects.ts';
import { claimRef, makeClaim, makeClass, makeVolume, podWithClaims } from '../../../support/storage-objects.ts';

interface World {
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly volumes?: readonly PersistentVolume[];
  readonly classes?: readonly StorageClass[];
  readonly drivers?: readonly CsiDriver[];
  readonly nodes?: readonly CsiNode[];
  readonly capacities?: readonly CsiStorageCapacity[];
}

function viewOf({
  claims = [],
  volumes = [],
  classes = [],
  drivers = [],
  nodes = [],
  capacities = [],
}: World): StorageView {
  const named =
    <T extends { metadata: { name: string } }>(list: readonly T[]) =>
    (name: string) =>
      list.find(({ metadata }) => metadata.name === name);
  return {
    claim: (key) => claims.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
    volume: named(volumes),
    volumes: () => volumes,
    storageClass: named(classes),
    csiDriver: named(drivers),
    csiNode: named(nodes),
    capacities: () => capacities,
  };
}

const meta = (name: string) => ({ name, uid: `uid-${name}`, resourceVersion: '1' });
const node = (name: string): Node => ({ metadata: { ...meta(name), labels: { host: name } } });
const onlyOn = (name: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [name] }] }] },
  },
});
const LATER = makeClass('fast', { volumeBindingMode: 'WaitForFirstConsumer' });
const LOCAL = makeClass('fast', {
  volumeBindingMode: 'WaitForFirstConsumer',
  provisioner: 'kubernetes.io/no-provisioner',
});
const bound = (name: string, volume: string, spec = {}) =>
  makeClaim(
    name,
    { volumeName: volume, ...spec },
    { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    { phase: 'Bound' },
  );
const selected = (name: string, on: string) =>
  makeClaim(name, {}, { annotations: { 'volume.kubernetes.io/selected-node': on } });

/** The result for the pod on the node, of the plugins in their order: reasons, or the steps in words. */
function verdict(pod: Pod, on: Node, world: World, others: readonly Pod[] = []): string {
  const view = viewOf(world);
  const state = podVolumes(pod, view);
  if (state.kind === 'blocked') return `blocked: ${state.message}`;
  const cache = new SchedulerCache(() => ({}));
  cache.setNode(on);
  for (const other of others) cache.setPod({ ...other, spec: { ...other.spec, nodeName: on.metadata.name } });
  for (const plugin of [volumeRestrictions(view), nodeVolumeLimits(view)]) {
    const cycle = new CycleState();
    if (plugin.preFilter?.(cycle, podInfo(pod), cache).kind !== 'go') continue;
    for (const place of cache.nodes) {
      const rejection = plugin.filter?.(cycle, podInfo(pod), place);
      if (rejection !== undefined) return rejection.reasons.join(', ');
    }
  }
  const { reasons, steps } = fitVolumes(state, on, view);
  if (reasons.length > 0) return reasons.join(', ');
  const words = steps.map((step) =>
    step.kind === 'reserve'
      ? `${step.volume.metadata.name} for ${step.claim.metadata.name}`
      : `provision ${step.claim.metadata.name}`,
  );
  return words.length === 0 ? 'fits' : words.join(', ');
}

const ephemeral = (name: string): Pod => ({
  ...podWithClaims(name, []),
  spec: { containers: [{ name: 'c' }], volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: {} } } }] },
});

describe('a pod with claims', () => {
  const pod = podWithClaims('p', ['c']);
  const csiNode = (count: number): CsiNode => ({
    metadata: meta('n'),
    spec: { drivers: [{ name: 'csi.test', nodeID: 'n', allocatable: { count } }] },
  });
  const tracked: CsiDriver = { metadata: meta('csi.test'), spec: { storageCapacity: true } };
  const room = (capacity: string, host = 'n', more: Partial<CsiStorageCapacity> = {}): CsiStorageCapacity => ({
    metadata: meta('cap'),
    storageClassName: 'fast',
    nodeTopology: { matchLabels: { host } },
    capacity,
    ...more,
  });
  const exclusive = { accessModes: ['ReadWriteOncePod'] };

  const cases: readonly [string, Pod, World, string, Pod[]?][] = [
    ['without claims goes anywhere', podWithClaims('p', []), {}, 'fits'],
    ['waits for a claim that is not there', pod, {}, 'blocked: persistentvolumeclaim "c" not found'],
    [
      'waits for its own claim to be made',
      ephemeral('p'),
      {},
      'blocked: waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',
    ],
    [
      'does not take another’s claim for its own',
      ephemeral('p'),
      { claims: [makeClaim('p-v')] },
      'blocked: PVC demo/p-v was not created for pod p',
    ],
    [
      'does not use a claim that is going away',
      pod,
      { claims: [makeClaim('c', {}, { deletionTimestamp: 'x' })] },
      'blocked: persistentvolumeclaim "c" is being deleted',
    ],
    [
      'waits for a claim that is bound at once',
      pod,
      { claims: [makeClaim('c')], classes: [makeClass('fast')] },
      'blocked: pod has unbound immediate PersistentVolumeClaims',
    ],
    [
      'waits for a claim on a named volume to be bound',
      pod,
      { claims: [makeClaim('c', { volumeName: 'v' })], classes: [LATER] },
      'blocked: pod has unbound immediate PersistentVolumeClaims',
    ],
    [
      'is rejected for a claim that lost its volume',
      pod,
      { claims: [makeClaim('c', { volumeName: 'v' }, {}, { phase: 'Lost' })] },
      'blocked: persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
    ],
    ['goes where its volume is', pod, { claims: [bound('c', 'v')], volumes: [makeVolume('v', onlyOn('n'))] }, 'fits'],
    [
      'does not go where its volume is not',
      pod,
      { claims: [bound('c', 'v')], volumes: [makeVolume('v', onlyOn('m'))] },
      'node(s) had volume node affinity conflict',
    ],
    ['has a volume made for it', pod, { claims: [makeClaim('c')], classes: [LATER] }, 'provision c'],
    ['waits where its volume is being made', pod, { claims: [selected('c', 'n')], classes: [LATER] }, 'fits'],
    [
      'does not leave the node where its volume is being made',
      pod,
      { claims: [selected('c', 'm')], classes: [LATER] },
      "node(s) didn't find available persistent volumes to bind",
    ],
    [
      'gets a volume that was made by hand',
      pod,
      { claims: [makeClaim('c')], classes: [LOCAL], volumes: [makeVolume('v', onlyOn('n'))] },
      'v for c',
    ],
    [
      'waits for one set aside already',
      pod,
      {
        claims: [makeClaim('c')],
        classes: [LOCAL],
        volumes: [makeVolume('v', { claimRef: claimRef(makeClaim('c')) })],
      },
      'fits',
    ],
    [
      'finds none that the node reaches',
      pod,
      { claims: [makeClaim('c')], classes: [LOCAL], volumes: [makeVolume('v', onlyOn('m'))] },
      "node(s) didn't find available persistent volumes to bind",
    ],
    [
      'gets two volumes for two claims',
      podWithClaims('p', ['c', 'd']),
      { claims: [makeClaim('c'), makeClaim('d')], classes: [LOCAL], volumes: [makeVolume('v'), makeVolume('w')] },
      'v for c, w for d',
    ],
    [
      'does not get one volume for two claims',
      podWithClaims('p', ['c', 'd']),
      { claims: [makeClaim('c'), makeClaim('d')], classes: [LOCAL], volumes: [makeVolume('v')] },
      "node(s) didn't find available persistent volumes to bind",
    ],
    [
      'keeps to the class’s topologies',
      pod,
      {
        claims: [makeClaim('c')],
        classes: [
          makeClass('fast', {
            volumeBindingMode: 'WaitForFirstConsumer',
            allowedTopologies: [{ matchLabelExpressions: [{ key: 'host', values: ['m'] }] }],
          }),
        ],
      },
      "node(s) didn't find available persistent volumes to bind",
    ],
    [
      'fits where the driver has room',
      pod,
      { claims: [makeClaim('c')], classes: [LATER], drivers: [tracked], capacities: [room('5Gi')] },
      'provision c',
    ],
    [
      'does not fit where the driver has too little',
      pod,
      { claims: [makeClaim('c')], classes: [LATER], drivers: [tracked], capacities: [room('1Mi')] },
      'node(s) did not have enough free storage',
    ],
    [
      'does not fit where one volume may not be so large',
      pod,
      {
        claims: [makeClaim('c')],
        classes: [LATER],
        drivers: [tracked],
        capacities: [room('5Gi', 'n', { maximumVolumeSize: '1Mi' })],
      },
      'node(s) did not have enough free storage',
    ],
    [
      'does not fit where the room is elsewhere',
      pod,
      { claims: [makeClaim('c')], classes: [LATER], drivers: [tracked], capacities: [room('5Gi', 'm')] },
      'node(s) did not have enough free storage',
    ],
    [
      'fits under the driver’s limit',
      pod,
      { claims: [bound('c', 'v')], volumes: [makeVolume('v')], nodes: [csiNode(1)] },
      'fits',
    ],
    [
      'does not fit above the driver’s limit',
      pod,
      { claims: [bound('c', 'v'), bound('d', 'w')], volumes: [makeVolume('v'), makeVolume('w')], nodes: [csiNode(1)] },
      'node(s) exceed max volume count',
      [podWithClaims('q', ['d'])],
    ],
    [
      'shares a volume with a pod there',
      pod,
      { claims: [bound('c', 'v')], volumes: [makeVolume('v')], nodes: [csiNode(1)] },
      'fits',
      [podWithClaims('q', ['c'])],
    ],
    [
      'counts a volume still to be made',
      pod,
      { claims: [makeClaim('c'), bound('d', 'w')], volumes: [makeVolume('w')], classes: [LATER], nodes: [csiNode(1)] },
      'node(s) exceed max volume count',
      [podWithClaims('q', ['d'])],
    ],
    [
      'alone has a claim for one pod',
      pod,
      { claims: [bound('c', 'v', exclusive)], volumes: [makeVolume('v')] },
      'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
      [podWithClaims('q', ['c'])],
    ],
  ];
  it.each(cases)('%s', (_what, who, world, expected, others) => {
    expect(verdict(who, node('n'), world, others)).toBe(expected);
  });

  it('matches the small claim first, so that the large volume is left for the large one', () => {
    const claims = [makeClaim('large', { resources: { requests: { storage: '5Gi' } } }), makeClaim('small')];
    const volumes = [makeVolume('v5', { capacity: { storage: '5Gi' } }), makeVolume('v1')];
    const world = { claims, volumes, classes: [LOCAL] };
    expect(verdict(podWithClaims('p', ['large', 'small']), node('n'), world)).toBe('v1 for small, v5 for large');
  });
});
