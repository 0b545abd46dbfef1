// The values of the downward API, the same for environment variables and for volumes. Pure.

import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { podLevelLimits } from './pod-resources.ts';

/** The fields of metadata that can be referred to one by one; undefined for any other path. */
export function metadataFieldText(pod: Pod, path: string): string | undefined {
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed !== null) {
    const values = keyed[1] === 'labels' ? pod.metadata.labels : pod.metadata.annotations;
    return getOwn(values, keyed[2] ?? '') ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace;
    case 'metadata.uid':
      return pod.metadata.uid;
    default:
      return undefined;
  }
}

export interface ResourceFieldRef {
  readonly containerName?: string;
  readonly resource: string;
  readonly divisor?: string;
}

/** The container a resourceFieldRef names. Throws when the pod has none of that name. */
export function containerNamed(pod: Pod, name: string): Container {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const found = all.find((container) => container.name === name);
  if (found === undefined) throw new Error(`container ${name} not found`);
  return found;
}

const NANO = 1_000_000_000n;

/** What a container may use that has no limit of its own: the pod's limit (KEP-2837), else the node's allocatable. */
function unlimited(pod: Pod, allocatable: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const limits = podLevelLimits(pod);
  const ofPod = ['cpu', 'memory'].flatMap((resource): [string, string][] => {
    const limit = getOwn(limits, resource);
    return limit !== undefined && parseQuantity(limit) !== 0n && Object.hasOwn(allocatable, resource)
      ? [[resource, limit]]
      : [];
  });
  return ofPod.length === 0 ? allocatable : { ...allocatable, ...Object.fromEntries(ofPod) };
}

/**
 * The figure of a resourceFieldRef, divided and rounded up; a limit that is not set is the pod's or the node's allocatable.
 * Throws for a resource that cannot be referred to.
 */
export function containerResourceText(
  pod: Pod,
  container: Container | EphemeralContainer,
  ref: ResourceFieldRef,
  allocatable: Readonly<Record<string, string>>,
): string {
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(ref.resource);
  if (match === null) throw new Error(`unsupported container resource : ${ref.resource}`);
  const [, side, resource = ''] = match;
  const own = side === 'limits' ? container.resources?.limits : container.resources?.requests;
  const fallback = side === 'limits' ? getOwn(unlimited(pod, allocatable), resource) : undefined;
  const amount = parseQuantity(getOwn(own, resource) ?? fallback ?? '0') ?? 0n;
  const divisor = parseQuantity(ref.divisor ?? '1') || NANO;
  // cpu counts in millicores, the rest in whole units, before the division: 100m of cpu by 1 is 1.
  const unit = resource === 'cpu' ? NANO / 1000n : NANO;
  const up = (dividend: bigint, by: bigint): bigint => (dividend + by - 1n) / by;
  return String(up(up(amount, unit), up(divisor, unit)));
}
