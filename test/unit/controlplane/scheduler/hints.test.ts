// Which events bring a pod back that a plugin rejected: the plugins' queueing hints.

import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../../client/types.ts';
import { podInfo } from '../../../../controlplane/scheduler/cache/pod-info.ts';
import { type ClusterEvent, nodeChanges, podChanges } from '../../../../controlplane/scheduler/events.ts';
import type { Plugin } from '../../../../controlplane/scheduler/framework/plugin.ts';
import { interPodAffinity } from '../../../../controlplane/scheduler/plugins/inter-pod-affinity.ts';
import { nodeAffinity } from '../../../../controlplane/scheduler/plugins/node-affinity.ts';
import { nodePorts } from '../../../../controlplane/scheduler/plugins/node-ports.ts';
import { nodeResourcesFit } from '../../../../controlplane/scheduler/plugins/node-resources-fit.ts';
import { nodeUnschedulable } from '../../../../controlplane/scheduler/plugins/node-unschedulable.ts';
import { podTopologySpread, SPREAD_DEFAULTS } from '../../../../controlplane/scheduler/plugins/pod-topology-spread.ts';
import { schedulingGates } from '../../../../controlplane/scheduler/plugins/scheduling-gates.ts';
import { taintToleration } from '../../../../controlplane/scheduler/plugins/taint-toleration.ts';
import { volumeBinding } from '../../../../controlplane/scheduler/plugins/volume-binding.ts';
import { makeClaim } from '../../../support/storage-objects.ts';
import { node, noStorage, on, pod, requests } from './support.ts';

const added = (object: Node): ClusterEvent => ({ resource: 'Node', action: 'add', object });
const changed = (old: Node, object: Node): ClusterEvent => ({
  resource: 'Node',
  action: 'update',
  object,
  old,
  changed: nodeChanges(old, object),
});
const came = (object: Pod): ClusterEvent => ({ resource: 'AssignedPod', action: 'add', object: on('n', object) });
const gone = (object: Pod): ClusterEvent => ({ resource: 'AssignedPod', action: 'delete', object: on('n', object) });
const self = (old: Pod, object: Pod): ClusterEvent => ({
  resource: 'Self',
  action: 'update',
  object,
  old,
  changed: podChanges(old, object),
});
const claimed = (name: string): ClusterEvent => ({
  resource: 'PersistentVolumeClaim',
  action: 'add',
  object: makeClaim(name),
});
const taints = (key: string) => node('n', { spec: { taints: [{ key, effect: 'NoSchedule' }] } });
const port = (hostPort: number) => ({ containers: [{ name: 'c', ports: [{ containerPort: 1, hostPort }] }] });
const heartbeat = (one: Node): Node => ({ ...one, status: { ...one.status, images: [{ names: ['other'] }] } });
const spread = podTopologySpread(SPREAD_DEFAULTS, () => undefined);
const topologySpreadConstraints = [
  { topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} },
];
const near = {
  affinity: {
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', labelSelector: {} }] },
  },
};
const binding = volumeBinding(noStorage(), { bind: () => Promise.resolve() });
const claims = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] };

describe('a pod that was rejected by', () => {
  it.each<[string, Plugin, Partial<Pod['spec']>, ClusterEvent, boolean]>([
    ['NodeResourcesFit: a pod has gone', nodeResourcesFit(), requests({ cpu: '1' }), gone(pod('q')), true],
    ['NodeResourcesFit: a pod has come', nodeResourcesFit(), requests({ cpu: '1' }), came(pod('q')), false],
    [
      'NodeResourcesFit: a node that is large enough',
      nodeResourcesFit(),
      requests({ cpu: '4' }),
      added(node('n')),
      true,
    ],
    ['NodeResourcesFit: a node that is too small', nodeResourcesFit(), requests({ cpu: '5' }), added(node('n')), false],
    [
      'NodeResourcesFit: a node has grown',
      nodeResourcesFit(),
      requests({ cpu: '5' }),
      changed(node('n'), node('n', { allocatable: { cpu: '8' } })),
      true,
    ],
    ['NodeResourcesFit: a heartbeat', nodeResourcesFit(), {}, changed(node('n'), heartbeat(node('n'))), false],
    ['NodeResourcesFit: a claim', nodeResourcesFit(), {}, claimed('c'), false],
    ['TaintToleration: the taint is gone', taintToleration, {}, changed(taints('t'), node('n')), true],
    ['TaintToleration: it is another one', taintToleration, {}, changed(taints('t'), taints('u')), false],
    ['TaintToleration: a new node without', taintToleration, {}, added(node('n')), true],
    ['TaintToleration: a new node with one', taintToleration, {}, added(taints('t')), false],
    ['TaintToleration: a pod has gone', taintToleration, {}, gone(pod('q')), false],
    [
      'NodeUnschedulable: it is uncordoned',
      nodeUnschedulable,
      {},
      changed(node('n', { spec: { unschedulable: true } }), node('n')),
      true,
    ],
    [
      'NodeAffinity: a label that it wants',
      nodeAffinity(),
      { nodeSelector: { disk: 'ssd' } },
      changed(node('n'), node('n', { labels: { disk: 'ssd' } })),
      true,
    ],
    [
      'NodeAffinity: another label',
      nodeAffinity(),
      { nodeSelector: { disk: 'ssd' } },
      changed(node('n'), node('n', { labels: { disk: 'hdd' } })),
      false,
    ],
    ['NodePorts: a pod with the port has gone', nodePorts, port(80), gone(pod('q', port(80))), true],
    ['NodePorts: a pod with another has gone', nodePorts, port(80), gone(pod('q', port(81))), false],
    ['InterPodAffinity: a pod to be near to has come', interPodAffinity(), near, came(pod('q')), true],
    ['InterPodAffinity: it only wants to be away, and one has come', interPodAffinity(), {}, came(pod('q')), false],
    ['InterPodAffinity: one has gone', interPodAffinity(), {}, gone(pod('q')), true],
    ['PodTopologySpread: a pod of its namespace has come', spread, { topologySpreadConstraints }, came(pod('q')), true],
    [
      'PodTopologySpread: a node with another taint',
      spread,
      { topologySpreadConstraints },
      changed(node('n'), taints('t')),
      true,
    ],
    ['VolumeBinding: its claim', binding, claims, claimed('c'), true],
    ['VolumeBinding: another claim', binding, claims, claimed('d'), false],
    [
      'SchedulingGates: fewer gates',
      schedulingGates,
      {},
      self(pod('p', { schedulingGates: [{ name: 'a' }] }), pod('p')),
      true,
    ],
    ['SchedulingGates: other labels', schedulingGates, {}, self(pod('p'), pod('p', {}, { a: 'b' })), false],
  ])('%s', (_what, plugin, spec, event, expected) => {
    expect(plugin.worthRetrying?.(event, podInfo(pod('p', spec)))).toBe(expected);
  });
});
