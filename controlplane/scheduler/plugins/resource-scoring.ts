// Scores of a node by how much of its resources would be requested: LeastAllocated, MostAllocated and
// RequestedToCapacityRatio of NodeResourcesFit, and the balance of NodeResourcesBalancedAllocation. Whole numbers, rounded
// down as upstream's integers are. Pure.

import type { NodeInfo } from '../cache/node-info.ts';
import type { PodInfo } from '../cache/pod-info.ts';
import { MAX_NODE_SCORE } from '../framework/plugin.ts';

export interface ResourceWeight {
  readonly name: string;
  readonly weight: number;
}

/** One resource of a node, with the pod on it: cpu in millicores, others in whole units. */
export interface Usage {
  readonly allocatable: number;
  readonly requested: number;
  readonly weight: number;
}

export interface ShapePoint {
  /** 0…100 % */
  readonly utilization: number;
  /** 0…10 */
  readonly score: number;
}

/**
 * `nonZero`: containers without requests count with a share. Extended resources that the pod does not request are left out, and so is what
 * the node does not have.
 */
export function usages(
  pod: PodInfo,
  node: NodeInfo,
  resources: readonly ResourceWeight[],
  nonZero: boolean,
): readonly Usage[] {
  return resources.flatMap(({ name, weight }) => {
    const native = name === 'cpu' || name === 'memory';
    const [podAmounts, nodeAmounts] =
      native && nonZero ? [pod.nonZero, node.nonZeroRequested] : [pod.requests, node.requested];
    const wanted = podAmounts.amountOf(name);
    if (!native && name !== 'ephemeral-storage' && wanted === 0) return [];
    const allocatable = node.allocatable.amountOf(name);
    return allocatable === 0 ? [] : [{ allocatable, requested: nodeAmounts.amountOf(name) + wanted, weight }];
  });
}

function weighted(of: readonly Usage[], score: (usage: Usage) => number): number {
  let [sum, weights] = [0, 0];
  for (const usage of of) {
    sum += score(usage) * usage.weight;
    weights += usage.weight;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}

export function leastAllocated(of: readonly Usage[]): number {
  return weighted(of, ({ allocatable, requested }) =>
    requested > allocatable ? 0 : Math.trunc(((allocatable - requested) * MAX_NODE_SCORE) / allocatable),
  );
}

export function mostAllocated(of: readonly Usage[]): number {
  return weighted(of, ({ allocatable, requested }) =>
    Math.trunc((Math.min(requested, allocatable) * MAX_NODE_SCORE) / allocatable),
  );
}

/** The line through the points, which are sorted by utilization; level before the first and after the last. */
function onShape(shape: readonly ShapePoint[], utilization: number): number {
  const scaled = (point: ShapePoint): number => (point.score * MAX_NODE_SCORE) / 10;
  for (const [index, point] of shape.entries()) {
    if (utilization > point.utilization) continue;
    const before = shape[index - 1];
    if (before === undefined) return scaled(point);
    const rise = scaled(point) - scaled(before);
    return (
      scaled(before) +
      Math.trunc((rise * (utilization - before.utilization)) / (point.utilization - before.utilization))
    );
  }
  const last = shape.at(-1);
  return last === undefined ? 0 : scaled(last);
}

export function requestedToCapacityRatio(shape: readonly ShapePoint[], of: readonly Usage[]): number {
  let [sum, weights] = [0, 0];
  for (const { allocatable, requested, weight } of of) {
    const score = onShape(shape, requested > allocatable ? 100 : Math.trunc((requested * 100) / allocatable));
    if (score <= 0) continue;
    sum += score * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.round(sum / weights);
}

/** 100 when all resources would be used by the same share, less the more the shares deviate. */
export function balancedAllocation(of: readonly Usage[]): number {
  const shares = of.map(({ allocatable, requested }) => Math.min(1, requested / allocatable));
  const [first = 0, second = 0] = shares;
  let deviation = 0;
  if (shares.length === 2) deviation = Math.abs(first - second) / 2;
  else if (shares.length > 2) {
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    deviation = Math.sqrt(shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / shares.length);
  }
  return Math.trunc((1 - deviation) * MAX_NODE_SCORE);
}
