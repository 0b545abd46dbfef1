// The status that a pod starts with: Pending, its quality-of-service class, and the condition with the reason why nothing
// schedules it. After that the status is the agent's.

import { getOwn } from '../../../lib/own-property.ts';
import { parseQuantity } from '../../../lib/quantity.ts';
import type { Container, Pod, PodSpec, PodStatus } from '../shapes.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const COUNTED = ['cpu', 'memory'];

type Quantities = { readonly [name: string]: string | undefined } | undefined;

function counted(list: Quantities): Map<string, bigint> {
  const values = new Map<string, bigint>();
  for (const name of COUNTED) {
    const nano = parseQuantity(getOwn(list, name) ?? '0') ?? 0n;
    if (nano > 0n) values.set(name, nano);
  }
  return values;
}

/** Guaranteed: every container limits cpu and memory and requests as much; BestEffort: nothing requests or limits. */
export function qosClassOf(spec: PodSpec): QosClass {
  const own = spec.resources;
  const holders: Pick<Container, 'resources'>[] =
    own !== undefined && (own.requests !== undefined || own.limits !== undefined)
      ? [{ resources: own }]
      : [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
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

export function initialPodStatus(pod: Pod): PodStatus {
  const spec = pod.spec ?? {};
  const status: PodStatus = { phase: 'Pending', qosClass: qosClassOf(spec) };
  if ((spec.schedulingGates ?? []).length > 0) {
    status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  }
  return status;
}
