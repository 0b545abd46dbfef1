// What a scheduling cycle sees of the cluster. A cycle is synchronous, so that the cache itself is the snapshot: nothing
// changes before the cycle ends.

import type { AffinityIndex } from './affinity-index.ts';
import type { NamespaceLabels, PodSelection } from './affinity-term.ts';
import type { NodeInfo } from './node-info.ts';

export interface Snapshot {
  /** Of all zones in turn. */
  readonly nodes: readonly NodeInfo[];
  get(name: string): NodeInfo | undefined;
  /** The terms of the pods that are placed. */
  readonly affinity: AffinityIndex;
  readonly namespaceLabels: NamespaceLabels;
  /**
   * How many pods of a node all the selections match; counted anew for a node only when that has changed. `terminating`: whether
   * pods that are being deleted count.
   */
  counter(selections: readonly PodSelection[], terminating: boolean): (node: NodeInfo) => number;
  /** How many pods use the claim ("namespace/name"). */
  usesOfClaim(claim: string): number;
  /** How many nodes have the image. */
  nodesWithImage(image: string): number;
}
