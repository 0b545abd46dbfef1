// The messages of an evicted pod, equal to the kubelet's, with quantities as the API prints them. Pure.

import type { Pod } from '../../client/types.ts';
import { formatBytes, quantityValue } from '../../lib/quantity.ts';
import { RESOURCE_OF, type Signal, type StarvedResource, type Threshold, thresholdAmount } from './thresholds.ts';
import type { ContainerUsage, Observations, PodUsage } from './types.ts';

/** status.reason of an evicted pod, and of one refused under pressure; also the event's reason. */
export const EVICTED = 'Evicted';

/** A count as the API prints it: the largest power of 1000 that divides exactly ("12k", "3"). */
export function formatCount(count: number): string {
  let value = Math.trunc(count);
  let suffix = '';
  for (const next of ['k', 'M', 'G', 'T', 'P']) {
    if (value === 0 || value % 1000 !== 0) break;
    value /= 1000;
    suffix = next;
  }
  return `${value}${suffix}`;
}

function isBytes(resource: StarvedResource): boolean {
  return resource === 'memory' || resource === 'ephemeral-storage';
}

/** A configured quantity as the API would print it back: binary sizes in lowest terms, the rest as written. */
export function canonicalQuantity(text: string, amount: number): string {
  return /[KMGTPE]i$/.test(text) ? formatBytes(amount) : text;
}

/** The first threshold on the resource is reported. */
function thresholdMet(resource: StarvedResource, thresholds: readonly Threshold[], observations: Observations): string {
  const threshold = thresholds.find(({ signal }) => RESOURCE_OF[signal] === resource);
  const observed = threshold === undefined ? undefined : observations[threshold.signal];
  if (threshold === undefined || observed === undefined) return '';
  const { value } = threshold;
  const print = isBytes(resource) ? formatBytes : formatCount;
  const quantity =
    value.kind === 'amount'
      ? canonicalQuantity(value.text, value.amount)
      : // A share of a capacity is printed in binary, whatever it counts.
        formatBytes(thresholdAmount(value, observed.capacity));
  return `Threshold quantity: ${quantity}, available: ${print(observed.available)}. `;
}

function usedBytes(container: ContainerUsage, resource: StarvedResource): number | undefined {
  if (resource === 'memory') return container.workingSetBytes;
  if (resource !== 'ephemeral-storage' || container.rootfs === undefined || container.logs === undefined)
    return undefined;
  return container.rootfs.bytes + container.logs.bytes;
}

/** Why a pod is evicted under node pressure, with the containers that use more than they requested. */
export function pressureMessage(
  signal: Signal,
  pod: Pod,
  usage: PodUsage | undefined,
  thresholds: readonly Threshold[],
  observations: Observations,
): string {
  const resource = RESOURCE_OF[signal];
  let message = `The node was low on resource: ${resource}. ${thresholdMet(resource, thresholds, observations)}`;
  const specs = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  for (const container of usage?.containers ?? []) {
    const spec = specs.find(({ name }) => name === container.name);
    const used = usedBytes(container, resource);
    if (spec === undefined || used === undefined) continue;
    const request = bytesOf(spec.resources?.requests?.[resource]);
    if (used <= request.bytes) continue;
    message +=
      `Container ${spec.name} was using ${formatBytes(used)}, request is ${request.text}, ` +
      `has larger consumption of ${resource}. `;
  }
  return message;
}

/** A quantity that the API has accepted, or none. */
export function bytesOf(text: string | undefined): { readonly bytes: number; readonly text: string } {
  if (text === undefined) return { bytes: 0, text: '0' };
  const bytes = quantityValue(text);
  return { bytes, text: canonicalQuantity(text, bytes) };
}
