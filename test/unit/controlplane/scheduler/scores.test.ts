// The score plugins that look at one node, normalised, and the arithmetic of resources.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import { normalizeByMaximum } from '../../../../controlplane/scheduler/framework/normalize.ts';
import {
  imageLocality,
  imageScore,
  normalizedImage,
} from '../../../../controlplane/scheduler/plugins/image-locality.ts';
import { nodeAffinity } from '../../../../controlplane/scheduler/plugins/node-affinity.ts';
import { nodeResourcesBalancedAllocation } from '../../../../controlplane/scheduler/plugins/node-resources-balanced-allocation.ts';
import { FIT_DEFAULTS, nodeResourcesFit } from '../../../../controlplane/scheduler/plugins/node-resources-fit.ts';
import {
  balancedAllocation,
  leastAllocated,
  mostAllocated,
  requestedToCapacityRatio,
  type ShapePoint,
} from '../../../../controlplane/scheduler/plugins/resource-scoring.ts';
import { taintToleration } from '../../../../controlplane/scheduler/plugins/taint-toleration.ts';
import { cluster, node, on, pod, requests, scored } from './support.ts';

const MB = 1024 * 1024;

describe('normalizeByMaximum', () => {
  it.each<[number[], boolean, number[]]>([
    [[1, 2, 4], false, [25, 50, 100]],
    [[1, 2, 4], true, [75, 50, 0]],
    [[0, 0], false, [0, 0]],
    [[0, 0], true, [100, 100]],
    [[1, 3], false, [33, 100]],
  ])('%j, reversed %s', (scores, reverse, expected) => {
    normalizeByMaximum(scores, reverse);
    expect(scores).toEqual(expected);
  });
});

describe('TaintToleration', () => {
  const avoid = (key: string) => ({ key, effect: 'PreferNoSchedule' });
  const nodes = [
    node('a'),
    node('b', { spec: { taints: [avoid('x')] } }),
    node('c', { spec: { taints: [avoid('x'), avoid('y')] } }),
  ];
  it.each<[string, Partial<Pod['spec']>, Record<string, number>]>([
    ['no tolerations', {}, { a: 100, b: 50, c: 0 }],
    ['one tolerated', { tolerations: [{ key: 'x', operator: 'Exists' }] }, { a: 100, b: 100, c: 0 }],
    [
      'a toleration of another effect does not count',
      { tolerations: [{ key: 'x', operator: 'Exists', effect: 'NoSchedule' }] },
      { a: 100, b: 50, c: 0 },
    ],
  ])('%s', (_what, spec, expected) => {
    expect(scored(taintToleration, pod('p', spec), cluster(nodes))).toEqual(expected);
  });
});

describe('NodeAffinity', () => {
  const preference = (weight: number, key: string) => ({
    weight,
    preference: { matchExpressions: [{ key, operator: 'Exists' }] },
  });
  const spec = {
    affinity: {
      nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [preference(2, 'x'), preference(8, 'y')] },
    },
  };
  const nodes = [node('a'), node('b', { labels: { x: '' } }), node('c', { labels: { x: '', y: '' } })];
  it('adds the weights of terms that match', () => {
    expect(scored(nodeAffinity(), pod('p', spec), cluster(nodes))).toEqual({ a: 0, b: 20, c: 100 });
    expect(scored(nodeAffinity(), pod('p'), cluster(nodes))).toBe(undefined);
  });
});

describe('resources of a node', () => {
  const usage = (requested: number, allocatable: number, weight = 1) => ({ requested, allocatable, weight });
  const SHAPE: readonly ShapePoint[] = [
    { utilization: 0, score: 10 },
    { utilization: 70, score: 5 },
    { utilization: 100, score: 0 },
  ];
  it.each<[string, number, number]>([
    ['least: empty', leastAllocated([usage(0, 10), usage(0, 10)]), 100],
    ['least: half and full', leastAllocated([usage(5, 10), usage(10, 10)]), 25],
    ['least: too much counts as full', leastAllocated([usage(15, 10)]), 0],
    ['least: by weight', leastAllocated([usage(0, 10, 3), usage(10, 10, 1)]), 75],
    ['least: nothing to score by', leastAllocated([]), 0],
    ['most: half and full', mostAllocated([usage(5, 10), usage(10, 10)]), 75],
    ['most: too much counts as full', mostAllocated([usage(15, 10)]), 100],
    ['shape: at its points', requestedToCapacityRatio(SHAPE, [usage(7, 10)]), 50],
    ['shape: between them', requestedToCapacityRatio(SHAPE, [usage(35, 100)]), 75],
    ['shape: after the last', requestedToCapacityRatio(SHAPE, [usage(20, 10)]), 0],
    ['shape: what scores 0 does not count', requestedToCapacityRatio(SHAPE, [usage(10, 10), usage(7, 10)]), 50],
    ['balanced: equal shares', balancedAllocation([usage(5, 10), usage(50, 100)]), 100],
    ['balanced: opposite shares', balancedAllocation([usage(0, 10), usage(10, 10)]), 50],
    ['balanced: three', balancedAllocation([usage(0, 10), usage(5, 10), usage(10, 10)]), 59],
  ])('%s', (_what, score, expected) => {
    expect(score).toBe(expected);
  });

  it('count 100m and 200 MB for a container without requests, but not where shares are balanced', () => {
    const nodes = [node('a', { allocatable: { cpu: '1', memory: `${2000 * MB}` } }), node('b')];
    const cache = cluster(nodes, [on('a', pod('q'))]);
    expect(scored(nodeResourcesFit(), pod('p'), cache)?.['a']).toBe(80);
    expect(scored(nodeResourcesBalancedAllocation(), pod('p'), cache)).toBe(undefined);
    expect(scored(nodeResourcesBalancedAllocation(), pod('p', requests({ cpu: '500m' })), cache)?.['a']).toBe(75);
  });

  it('are scored by the strategy of the profile', () => {
    const cache = cluster([node('a'), node('b')], [on('a', pod('q', requests({ cpu: '2', memory: '4Gi' })))]);
    const incoming = pod('p', requests({ cpu: '1', memory: '2Gi' }));
    const scores = (strategy: 'LeastAllocated' | 'MostAllocated' | 'RequestedToCapacityRatio') =>
      scored(nodeResourcesFit({ ...FIT_DEFAULTS, strategy, shape: SHAPE }), incoming, cache);
    expect(scores('LeastAllocated')).toEqual({ a: 25, b: 75 });
    expect(scores('MostAllocated')).toEqual({ a: 75, b: 25 });
    expect(scores('RequestedToCapacityRatio')).toEqual({ a: 42, b: 83 });
  });

  it('of other kinds count where the pod requests them', () => {
    const resources = [{ name: 'example.com/gpu', weight: 1 }];
    const nodes = [node('a', { allocatable: { 'example.com/gpu': '4' } }), node('b')];
    const plugin = nodeResourcesFit({ ...FIT_DEFAULTS, resources });
    expect(scored(plugin, pod('p', requests({ 'example.com/gpu': '1' })), cluster(nodes))).toEqual({ a: 75, b: 0 });
    expect(scored(plugin, pod('p'), cluster(nodes))).toEqual({ a: 0, b: 0 });
  });
});

describe('ImageLocality', () => {
  it.each<[string, string]>([
    ['busybox', 'busybox:latest'],
    ['busybox:1', 'busybox:1'],
    ['registry:5000/busybox', 'registry:5000/busybox:latest'],
    ['registry:5000/busybox:1', 'registry:5000/busybox:1'],
    ['busybox@sha256:0', 'busybox@sha256:0'],
  ])('%s is %s', (image, expected) => {
    expect(normalizedImage(image)).toBe(expected);
  });

  it.each<[number, number, number]>([
    [0, 1, 0],
    [23 * MB, 1, 0],
    [1000 * MB, 1, 100],
    [5000 * MB, 1, 100],
    [1000 * MB, 2, 49],
  ])('%d bytes for %d containers: %d', (bytes, containers, expected) => {
    expect(imageScore(bytes, containers)).toBe(expected);
  });

  it('prefers a node with the image, the more nodes have it', () => {
    const images = [{ names: ['big:1'], sizeBytes: 1000 * MB }];
    const incoming = pod('p', { containers: [{ name: 'c', image: 'big:1' }] });
    const score = (nodes: Parameters<typeof cluster>[0]) => scored(imageLocality, incoming, cluster(nodes));
    expect(score([node('a', { images }), node('b')])).toEqual({ a: 48, b: 0 });
    expect(score([node('a', { images }), node('b', { images })])).toEqual({ a: 100, b: 100 });
    expect(score([node('a'), node('b')])).toBe(undefined);
  });
});
