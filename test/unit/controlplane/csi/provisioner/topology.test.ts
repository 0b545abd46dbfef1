import { describe, expect, it } from 'vitest';
import type { Node } from '../../../../../client/types.ts';
import { placeKey, wantedCapacities } from '../../../../../controlplane/csi/provisioner/capacity.ts';
import {
  flattenTerms,
  nodeAffinity,
  type TopologyInput,
  topologyRequirement,
} from '../../../../../controlplane/csi/provisioner/topology.ts';
import type { CsiNode } from '../../../../../controlplane/storage/objects.ts';
import { makeClass } from '../../../../support/storage-objects.ts';

const node = (name: string, labels: Record<string, string>): Node => ({
  metadata: { name, uid: name, resourceVersion: '1', labels },
});
const csiNode = (name: string, ...topologyKeys: string[]): CsiNode => ({
  metadata: { name, uid: name, resourceVersion: '1' },
  spec: { drivers: [{ name: 'csi.test', nodeID: name, topologyKeys }] },
});
const zones = (...values: string[]) => [{ matchLabelExpressions: [{ key: 'zone', values }] }];

const NODES = [node('n1', { zone: 'a' }), node('n2', { zone: 'b' }), node('n3', { zone: 'b' }), node('bare', {})];
const CSI_NODES = [csiNode('n1', 'zone'), csiNode('n2', 'zone'), csiNode('n3', 'zone'), csiNode('bare')];
const input = (more: Partial<TopologyInput> = {}): TopologyInput => ({
  driver: 'csi.test',
  nodes: NODES,
  csiNodes: CSI_NODES,
  allowedTopologies: [],
  claimName: 'c',
  ...more,
});
const on = (name: string) => {
  const selectedNode = NODES.find(({ metadata }) => metadata.name === name);
  return selectedNode === undefined ? {} : { selectedNode };
};
const A = { zone: 'a' };
const B = { zone: 'b' };

describe('where a volume should be', () => {
  it.each<[string, Partial<TopologyInput>, object | undefined]>([
    ['anywhere that the driver is, first where the pod will be', on('n2'), { requisite: [A, B], preferred: [B, A] }],
    ['the other way round', on('n1'), { requisite: [A, B], preferred: [A, B] }],
    [
      'only where the class allows',
      { ...on('n2'), allowedTopologies: zones('b', 'c') },
      { requisite: [B, { zone: 'c' }], preferred: [B, { zone: 'c' }] },
    ],
    ['nowhere in particular where the driver is on no node', { csiNodes: [] }, undefined],
  ])('%s', (_what, more, expected) => {
    expect(topologyRequirement(input(more))).toEqual(expected);
  });

  it('without a pod is spread by the claim’s name', () => {
    const firsts = ['a', 'b', 'c', 'd', 'e', 'f'].map(
      (claimName) => topologyRequirement(input({ claimName }))?.preferred[0],
    );
    expect(firsts).toContainEqual(A);
    expect(firsts).toContainEqual(B);
  });

  it.each<[string, Partial<TopologyInput>, RegExp]>([
    ['a node without the driver', on('bare'), /no topology key found on CSINode bare/],
    [
      'a node whose labels are missing',
      { selectedNode: node('n1', {}) },
      /does not match topology keys from CSINode \[zone\]/,
    ],
    [
      'a node where the class does not allow it',
      { ...on('n1'), allowedTopologies: zones('b') },
      /is not in allowed topologies/,
    ],
  ])('is not known for %s', (_what, more, expected) => {
    expect(() => topologyRequirement(input(more))).toThrow(expected);
  });

  it('takes every combination that a term allows', () => {
    const term = {
      matchLabelExpressions: [
        { key: 'zone', values: ['a', 'b'] },
        { key: 'rack', values: ['1', '2'] },
      ],
    };
    expect(flattenTerms([term])).toEqual([
      { zone: 'a', rack: '1' },
      { zone: 'a', rack: '2' },
      { zone: 'b', rack: '1' },
      { zone: 'b', rack: '2' },
    ]);
  });
});

describe('node affinity', () => {
  it('has one term per segment, and none for a volume that is everywhere', () => {
    expect(nodeAffinity([A, B])?.required?.nodeSelectorTerms).toEqual([
      { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] },
      { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] },
    ]);
    expect(nodeAffinity([])).toBeUndefined();
    expect(nodeAffinity([{}])).toBeUndefined();
  });
});

describe('capacities', () => {
  it('are asked for classes that bind late, in each segment once', () => {
    const late = makeClass('late', { volumeBindingMode: 'WaitForFirstConsumer' });
    const classes = [
      late,
      makeClass('now'),
      makeClass('other', { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'x' }),
    ];
    const places = wantedCapacities('csi.test', classes, NODES, CSI_NODES);
    expect(places.map(({ storageClass, segments }) => placeKey(storageClass.metadata.name, segments))).toEqual([
      '["late",[["zone","a"]]]',
      '["late",[["zone","b"]]]',
    ]);
  });
});
