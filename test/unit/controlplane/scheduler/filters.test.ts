// The filter plugins that look at one node: each with its cases, in the words of the FailedScheduling event.

import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../../../client/types.ts';
import type { Plugin } from '../../../../controlplane/scheduler/framework/plugin.ts';
import { nodeAffinity } from '../../../../controlplane/scheduler/plugins/node-affinity.ts';
import { nodeName } from '../../../../controlplane/scheduler/plugins/node-name.ts';
import { nodePorts } from '../../../../controlplane/scheduler/plugins/node-ports.ts';
import { FIT_DEFAULTS, nodeResourcesFit } from '../../../../controlplane/scheduler/plugins/node-resources-fit.ts';
import { nodeUnschedulable } from '../../../../controlplane/scheduler/plugins/node-unschedulable.ts';
import { taintToleration } from '../../../../controlplane/scheduler/plugins/taint-toleration.ts';
import { volumeRestrictions } from '../../../../controlplane/scheduler/plugins/volume-restrictions.ts';
import { volumeZone } from '../../../../controlplane/scheduler/plugins/volume-zone.ts';
import { makeClaim, makeVolume, podWithClaims } from '../../../support/storage-objects.ts';
import { cluster, filtered, inZone, type NodeParts, node, noStorage, on, pod, requests } from './support.ts';

const port = (hostPort: number, hostIP?: string, protocol?: string): Partial<Pod['spec']> => ({
  containers: [
    {
      name: 'c',
      ports: [
        { containerPort: 80, hostPort, ...(hostIP === undefined ? {} : { hostIP }), ...(protocol ? { protocol } : {}) },
      ],
    },
  ],
});
const terms = (...nodeSelectorTerms: object[]): Partial<Pod['spec']> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const named = (...values: string[]) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values }] });
const labelled = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, values }],
});
const volumes = (...list: object[]): Partial<Pod['spec']> => ({
  volumes: list.map((source, index) => ({ name: `v${index}`, ...source })),
});

const UNSCHEDULABLE = 'node(s) were unschedulable (UnschedulableAndUnresolvable)';
const TAKEN = "node(s) didn't have free ports for the requested pod ports (Unschedulable)";
const NO_MATCH = "node(s) didn't match Pod's node affinity/selector (UnschedulableAndUnresolvable)";
const DISK = 'node(s) had no available disk (Unschedulable)';
const gpu = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };
const taintMessage = (key: string, value = '') =>
  `node(s) had untolerated taint {${key}: ${value}} (UnschedulableAndUnresolvable)`;
const restrictions = volumeRestrictions(noStorage());
const gce = (pdName: string, readOnly = false) => volumes({ gcePersistentDisk: { pdName, readOnly } });
const rbd = (monitors: string[], image: string, readOnly = false) => volumes({ rbd: { monitors, image, readOnly } });

type Case = [
  what: string,
  plugin: Plugin,
  spec: Partial<Pod['spec']>,
  parts: NodeParts,
  expected: string,
  others?: readonly Pod[],
];

const cases: readonly Case[] = [
  ['NodeName: none is named', nodeName, {}, {}, ''],
  ['NodeName: this one', nodeName, { nodeName: 'n' }, {}, ''],
  [
    'NodeName: another',
    nodeName,
    { nodeName: 'm' },
    {},
    "node(s) didn't match the requested node name (UnschedulableAndUnresolvable)",
  ],
  ['NodeUnschedulable: not cordoned', nodeUnschedulable, {}, {}, ''],
  ['NodeUnschedulable: cordoned', nodeUnschedulable, {}, { spec: { unschedulable: true } }, UNSCHEDULABLE],
  [
    'NodeUnschedulable: tolerated',
    nodeUnschedulable,
    { tolerations: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] },
    { spec: { unschedulable: true } },
    '',
  ],
  ['TaintToleration: none', taintToleration, {}, {}, ''],
  ['TaintToleration: one', taintToleration, {}, { spec: { taints: [gpu] } }, taintMessage('gpu', 'yes')],
  [
    'TaintToleration: tolerated',
    taintToleration,
    { tolerations: [{ key: 'gpu', value: 'yes' }] },
    { spec: { taints: [gpu] } },
    '',
  ],
  [
    'TaintToleration: the first that is not tolerated',
    taintToleration,
    { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
    { spec: { taints: [gpu, { key: 'a', effect: 'NoExecute' }, { key: 'b', effect: 'NoSchedule' }] } },
    taintMessage('a'),
  ],
  [
    'TaintToleration: one that only asks to stay away',
    taintToleration,
    {},
    { spec: { taints: [{ ...gpu, effect: 'PreferNoSchedule' }] } },
    '',
  ],
  ['NodeAffinity: no rules', nodeAffinity(), {}, {}, ''],
  ['NodeAffinity: a selector', nodeAffinity(), { nodeSelector: { disk: 'ssd' } }, {}, NO_MATCH],
  [
    'NodeAffinity: a selector that matches',
    nodeAffinity(),
    { nodeSelector: { disk: 'ssd' } },
    { labels: { disk: 'ssd' } },
    '',
  ],
  ['NodeAffinity: a term', nodeAffinity(), terms(labelled('disk', 'In', 'ssd')), { labels: { disk: 'hdd' } }, NO_MATCH],
  [
    'NodeAffinity: any of the terms',
    nodeAffinity(),
    terms(labelled('disk', 'In', 'ssd'), labelled('disk', 'NotIn', 'ssd')),
    { labels: { disk: 'hdd' } },
    '',
  ],
  [
    'NodeAffinity: selector and terms',
    nodeAffinity(),
    { ...terms(labelled('disk', 'Exists')), nodeSelector: { cores: '8' } },
    { labels: { disk: 'hdd', cores: '4' } },
    NO_MATCH,
  ],
  ['NodeAffinity: a term without requirements', nodeAffinity(), terms({}), {}, NO_MATCH],
  [
    'NodeAffinity: the name of the node, and a label it lacks',
    nodeAffinity(),
    terms({ ...named('n'), ...labelled('disk', 'Exists') }),
    {},
    NO_MATCH,
  ],
  [
    'NodeAffinity: what the profile adds',
    nodeAffinity({
      addedAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [labelled('pool', 'In', 'a')] },
      },
    }),
    {},
    { labels: { pool: 'b' } },
    "node(s) didn't match scheduler-enforced node affinity (UnschedulableAndUnresolvable)",
  ],
  ['NodePorts: none wanted', nodePorts, {}, {}, '', [pod('q', port(80))]],
  ['NodePorts: free', nodePorts, port(81), {}, '', [pod('q', port(80))]],
  ['NodePorts: taken', nodePorts, port(80), {}, TAKEN, [pod('q', port(80))]],
  ['NodePorts: another protocol', nodePorts, port(80, undefined, 'UDP'), {}, '', [pod('q', port(80))]],
  ['NodePorts: another address', nodePorts, port(80, '10.0.0.1'), {}, '', [pod('q', port(80, '10.0.0.2'))]],
  ['NodePorts: taken on all addresses', nodePorts, port(80, '10.0.0.1'), {}, TAKEN, [pod('q', port(80))]],
  ['NodeResourcesFit: no requests', nodeResourcesFit(), {}, { allocatable: { cpu: '0' } }, ''],
  [
    'NodeResourcesFit: exactly what is left',
    nodeResourcesFit(),
    requests({ cpu: '3500m' }),
    {},
    '',
    [pod('q', requests({ cpu: '500m' }))],
  ],
  [
    'NodeResourcesFit: one millicore too much',
    nodeResourcesFit(),
    requests({ cpu: '3501m' }),
    {},
    'Insufficient cpu (Unschedulable)',
    [pod('q', requests({ cpu: '500m' }))],
  ],
  [
    'NodeResourcesFit: more than the node has when empty',
    nodeResourcesFit(),
    requests({ cpu: '5' }),
    {},
    'Insufficient cpu (UnschedulableAndUnresolvable)',
  ],
  [
    'NodeResourcesFit: everything that is short',
    nodeResourcesFit(),
    requests({ cpu: '4', memory: '8Gi', 'ephemeral-storage': '1Gi' }),
    { allocatable: { 'ephemeral-storage': '1Gi', pods: '1' } },
    'Too many pods, Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage (Unschedulable)',
    [pod('q', requests({ cpu: '1', memory: '1', 'ephemeral-storage': '1' }))],
  ],
  [
    'NodeResourcesFit: a resource that the node lacks',
    nodeResourcesFit(),
    requests({ 'example.com/gpu': '1' }),
    {},
    'Insufficient example.com/gpu (UnschedulableAndUnresolvable)',
  ],
  [
    'NodeResourcesFit: one that is ignored, and a group that is',
    nodeResourcesFit({
      ...FIT_DEFAULTS,
      ignoredResources: ['example.com/gpu'],
      ignoredResourceGroups: ['example.org'],
    }),
    requests({ 'example.com/gpu': '1', 'example.org/fpga': '1' }),
    {},
    '',
  ],
  [
    'NodeResourcesFit: an overcommitted node takes a pod without requests',
    nodeResourcesFit(),
    {},
    { allocatable: { cpu: '1' } },
    '',
    [pod('q', requests({ cpu: '2' }))],
  ],
  ['VolumeRestrictions: a disk in use', restrictions, gce('d'), {}, DISK, [pod('q', gce('d'))]],
  ['VolumeRestrictions: both read only', restrictions, gce('d', true), {}, '', [pod('q', gce('d', true))]],
  ['VolumeRestrictions: another disk', restrictions, gce('d'), {}, '', [pod('q', gce('e'))]],
  [
    'VolumeRestrictions: a volume that one machine has, even read only',
    restrictions,
    volumes({ awsElasticBlockStore: { volumeID: 'v', readOnly: true } }),
    {},
    DISK,
    [pod('q', volumes({ awsElasticBlockStore: { volumeID: 'v', readOnly: true } }))],
  ],
  [
    'VolumeRestrictions: an image by a common monitor',
    restrictions,
    rbd(['a', 'b'], 'i'),
    {},
    DISK,
    [pod('q', rbd(['b'], 'i'))],
  ],
  [
    'VolumeRestrictions: an image by other monitors',
    restrictions,
    rbd(['a'], 'i'),
    {},
    '',
    [pod('q', rbd(['b'], 'i'))],
  ],
];

describe('a filter', () => {
  it.each(cases)('%s', (_what, plugin, spec, parts, expected, others = []) => {
    const here = others.map((other) => on('n', other));
    const verdict = expected === '' ? 'n' : `n: ${expected}`;
    expect(filtered(plugin, pod('p', spec), cluster([node('n', parts)], here))).toEqual([verdict]);
  });
});

describe('NodeAffinity and names of nodes', () => {
  it.each<[string, Partial<Pod['spec']>, readonly string[] | undefined]>([
    ['one name', terms(named('a')), ['a']],
    ['names in several terms', terms(named('a'), named('b', 'c')), ['a', 'b', 'c']],
    ['a term without a name', terms(named('a'), labelled('x', 'Exists')), undefined],
  ])('%s', (_what, spec, expected) => {
    const { preFilter } = nodeAffinity();
    let nodes: readonly string[] | undefined;
    const probe: Plugin = {
      name: 'probe',
      preFilter: (state, info, snapshot) => {
        const result = preFilter?.(state, info, snapshot) ?? { kind: 'skip' };
        if (result.kind === 'go' && result.nodes !== undefined) nodes = [...result.nodes];
        return result;
      },
    };
    filtered(probe, pod('p', spec), cluster([]));
    expect(nodes).toEqual(expected);
  });

  it('refuses a pod whose term names two nodes at once', () => {
    const both = { matchFields: [...named('a').matchFields, ...named('b').matchFields] };
    expect(filtered(nodeAffinity(), pod('p', terms(both)), cluster([node('a')]))).toEqual([
      'pod affinity terms conflict (UnschedulableAndUnresolvable)',
    ]);
  });
});

describe('VolumeRestrictions and claims for one pod', () => {
  const claim = makeClaim('c', { accessModes: ['ReadWriteOncePod'] });
  const plugin = volumeRestrictions(noStorage({ claim: (key) => (key === 'demo/c' ? claim : undefined) }));
  const IN_USE =
    'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode (Unschedulable)';
  it('rejects every node while a pod anywhere uses the claim', () => {
    const nodes = [node('a'), node('b')];
    expect(filtered(plugin, podWithClaims('p', ['c']), cluster(nodes))).toEqual(['a', 'b']);
    const cache = cluster(nodes, [podWithClaims('q', ['c'], 'a')]);
    expect(filtered(plugin, podWithClaims('p', ['c']), cache)).toEqual([`a: ${IN_USE}`, `b: ${IN_USE}`]);
  });
});

describe('VolumeZone', () => {
  const bound = makeClaim('c', { volumeName: 'v' });
  const ZONE = 'topology.kubernetes.io/zone';
  const OLD_ZONE = 'failure-domain.beta.kubernetes.io/zone';
  const CONFLICT = 'node(s) had no available volume zone (UnschedulableAndUnresolvable)';
  it.each<[string, Record<string, string>, Node, string]>([
    ['a volume without a zone', {}, node('n', { labels: inZone('a') }), 'n'],
    ['the same zone', { [ZONE]: 'a' }, node('n', { labels: inZone('a') }), 'n'],
    ['another zone', { [ZONE]: 'b' }, node('n', { labels: inZone('a') }), `n: ${CONFLICT}`],
    ['several zones', { [ZONE]: 'b__a' }, node('n', { labels: inZone('a') }), 'n'],
    ['the old label on the volume', { [OLD_ZONE]: 'a' }, node('n', { labels: inZone('a') }), 'n'],
    [
      'a region that the node lacks',
      { 'topology.kubernetes.io/region': 'r' },
      node('n', { labels: inZone('a') }),
      `n: ${CONFLICT}`,
    ],
    ['a cluster without zones', { [ZONE]: 'a' }, node('n'), 'n'],
  ])('%s', (_what, labels, where, expected) => {
    const volume = makeVolume('v', {}, { labels });
    const plugin = volumeZone(noStorage({ claim: () => bound, volume: () => volume }));
    expect(filtered(plugin, podWithClaims('p', ['c']), cluster([where]))).toEqual([expected]);
  });
});
