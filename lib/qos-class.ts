// The quality-of-service class of a pod, from what its containers request and may use. Pure.

import { getOwn } from './own-property.ts';
import { parseQuantity } from './quantity.ts';

export type QOSClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const COUNTED = ['cpu', 'memory'];

type Quantities = { readonly [name: string]: string | undefined } | undefined;

interface Holder {
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities } | undefined;
}

/** Of a pod's spec, what its class depends on. */
export interface QOSSpec extends Holder {
  readonly containers?: readonly Holder[] | undefined;
  readonly initContainers?: readonly Holder[] | undefined;
}

function counted(list: Quantities): Map<string, bigint> {
  const values = new Map<string, bigint>();
  for (const name of COUNTED) {
    const nano = parseQuantity(getOwn(list, name) ?? '0') ?? 0n;
    if (nano > 0n) values.set(name, nano);
  }
  return values;
}

/**
 * Guaranteed: every container limits cpu and memory and requests as much. BestEffort: no container requests or limits either.
 * Burstable: the rest. Resources of the pod as a whole (KEP-2837) count in place of its containers'.
 */
export function computePodQOS(spec: QOSSpec): QOSClass {
  const { requests, limits } = spec.resources ?? {};
  const isPodLevel = Object.keys({ ...requests, ...limits }).length > 0;
  const holders = isPodLevel ? [spec] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  let any = false;
  let guaranteed = holders.length > 0;
  for (const { resources } of holders) {
    const requests = counted(resources?.requests);
    const limits = counted(resources?.limits);
    if (requests.size > 0 || limits.size > 0) any = true;
    for (const name of COUNTED) {
      const limit = limits.get(name);
      if (limit === undefined || (requests.get(name) ?? limit) !== limit) guaranteed = false;
    }
  }
  if (!any) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
