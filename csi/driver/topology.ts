// Which nodes a volume can be used from, and whether that meets a requirement. Pure.

import type { Topology, Topology__Output } from '../../proto/gen/csi/v1/Topology.ts';
import type { TopologyRequirement__Output } from '../../proto/gen/csi/v1/TopologyRequirement.ts';
import { invalid } from './errors.ts';
import { TOPOLOGY_KEY } from './names.ts';

export function topologyOf(nodeId: string): Topology {
  return { segments: { [TOPOLOGY_KEY]: nodeId } };
}

/** A node is in a topology when every segment of it is the node's own. */
export function contains(topology: Topology__Output | Topology, nodeId: string): boolean {
  const segments = Object.entries(topology.segments ?? {});
  return segments.every(([key, value]) => key.toLowerCase() === TOPOLOGY_KEY && value === nodeId);
}

/**
 * Whether a volume that `nodes` can use meets a requirement: at least one requisite topology, or, where only preferred
 * ones are given, any node will do. Throws INVALID_ARGUMENT for a requirement that requires nothing.
 */
export function meets(requirement: TopologyRequirement__Output | null | undefined, nodes: readonly string[]): boolean {
  if (requirement === null || requirement === undefined) return true;
  const { requisite, preferred } = requirement;
  if (requisite.length === 0 && preferred.length === 0) {
    throw invalid('accessibility_requirements has neither requisite nor preferred topologies');
  }
  if (requisite.length === 0) return true;
  return requisite.some((topology) => nodes.some((node) => contains(topology, node)));
}
