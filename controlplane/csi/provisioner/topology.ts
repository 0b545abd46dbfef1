// Where a new volume may and should be: the topology requirement of CreateVolume, from the class, the nodes that the
// driver runs on, and the node that the scheduler has chosen; and the node affinity that comes of the answer. Pure.

import { createHash } from 'node:crypto';
import type { TopologySelectorTerm, VolumeNodeAffinity } from 'kubernetes-types/core/v1';
import type { Node } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { CsiNode } from '../../storage/objects.ts';

/** One segment: topology key → value. */
export type Segments = Readonly<Record<string, string>>;

export interface TopologyInput {
  readonly driver: string;
  readonly nodes: readonly Node[];
  readonly csiNodes: readonly CsiNode[];
  /** Where the first consumer will run; undefined for immediate binding. */
  readonly selectedNode?: Node;
  readonly allowedTopologies: readonly TopologySelectorTerm[];
  /** Spreads volumes over segments where no node has been chosen. */
  readonly claimName: string;
}

export interface Requirement {
  readonly requisite: readonly Segments[];
  readonly preferred: readonly Segments[];
}

/** The volume cannot be placed now; it may be later, when nodes or their labels have changed. */
class TopologyError extends Error {
  override name = 'TopologyError';
}

export function topologyKeys(csiNode: CsiNode | undefined, driver: string): readonly string[] {
  return csiNode?.spec.drivers.find((one) => one.name === driver)?.topologyKeys ?? [];
}

/** The node's values for the keys; undefined when one is missing. */
function segmentsOf(node: Node, keys: readonly string[]): Segments | undefined {
  const labels = node.metadata.labels ?? {};
  const entries = keys.map((key) => [key, getOwn(labels, key)] as const);
  return entries.every(([, value]) => value !== undefined) && keys.length > 0
    ? Object.fromEntries(entries.map(([key, value]) => [key, value ?? '']))
    : undefined;
}

function identity(segments: Segments): string {
  return JSON.stringify(Object.entries(segments).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Each once, in a fixed order. */
export function distinct(all: readonly Segments[]): Segments[] {
  const byText = new Map(all.map((segments) => [identity(segments), segments]));
  return [...byText].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, segments]) => segments);
}

/** Every combination of the values that a term allows for its keys. */
export function flattenTerms(terms: readonly TopologySelectorTerm[]): Segments[] {
  return terms.flatMap((term) => {
    let combinations: Segments[] = [{}];
    for (const { key, values } of term.matchLabelExpressions ?? []) {
      combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [key]: value })));
    }
    return combinations;
  });
}

/** Segments of the nodes that run the driver with the same keys as `like` (or as any of them). */
export function clusterSegments(
  driver: string,
  nodes: readonly Node[],
  csiNodes: readonly CsiNode[],
  like?: readonly string[],
): Segments[] {
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  const keys = like ?? csiNodes.map((one) => topologyKeys(one, driver)).find((found) => found.length > 0) ?? [];
  const wanted = [...keys].sort().join();
  const found = csiNodes.flatMap((csiNode): Segments[] => {
    const own = topologyKeys(csiNode, driver);
    const node = byName.get(csiNode.metadata.name);
    if (node === undefined || [...own].sort().join() !== wanted) return [];
    const segments = segmentsOf(node, own);
    return segments === undefined ? [] : [segments];
  });
  return distinct(found);
}

/** Undefined where there is nothing to require. Throws TopologyError where the chosen node cannot be described. */
export function topologyRequirement(input: TopologyInput): Requirement | undefined {
  const { driver, nodes, csiNodes, selectedNode, allowedTopologies, claimName } = input;
  let chosen: Segments | undefined;
  let keys: readonly string[] | undefined;
  if (selectedNode !== undefined) {
    const { name } = selectedNode.metadata;
    keys = topologyKeys(
      csiNodes.find((one) => one.metadata.name === name),
      driver,
    );
    if (keys.length === 0)
      throw new TopologyError(`error generating accessibility requirements: no topology key found on CSINode ${name}`);
    chosen = segmentsOf(selectedNode, keys);
    if (chosen === undefined) {
      throw new TopologyError(
        `error generating accessibility requirements: topology labels from selected node ${name} does not match topology keys from CSINode [${keys.join(' ')}]`,
      );
    }
  }
  const requisite =
    allowedTopologies.length > 0
      ? distinct(flattenTerms(allowedTopologies))
      : clusterSegments(driver, nodes, csiNodes, keys);
  if (requisite.length === 0) return undefined;
  const first = chosen === undefined ? spread(claimName, requisite.length) : indexOf(requisite, chosen);
  if (first === -1) {
    throw new TopologyError(
      `error generating accessibility requirements: selected node '${selectedNode?.metadata.name}' topology '${JSON.stringify(chosen)}' is not in allowed topologies: ${JSON.stringify(requisite)}`,
    );
  }
  return { requisite, preferred: [...requisite.slice(first), ...requisite.slice(0, first)] };
}

/** The segment of the node: it has all of the segment's values. */
function indexOf(segments: readonly Segments[], chosen: Segments): number {
  return segments.findIndex((one) => Object.entries(one).every(([key, value]) => getOwn(chosen, key) === value));
}

function spread(claimName: string, count: number): number {
  return createHash('sha256').update(claimName).digest().readUInt32BE(0) % count;
}

/** The node affinity of a volume that is reachable from these segments; undefined for one reachable from everywhere. */
export function nodeAffinity(accessible: readonly Segments[]): VolumeNodeAffinity | undefined {
  const terms = accessible
    .filter((segments) => Object.keys(segments).length > 0)
    .map((segments) => ({
      matchExpressions: Object.entries(segments)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    }));
  return terms.length === 0 ? undefined : { required: { nodeSelectorTerms: terms } };
}
