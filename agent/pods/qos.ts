// The pod's quality of service class, from its requests and limits. Pure.

import type { Container, Pod } from '../../client/types.ts';
import { compareQuantities } from '../../lib/quantity.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

type Resources = NonNullable<Container['resources']>;
type Amounts = Readonly<Record<string, string>>;

/** Only cpu and memory count. */
const COMPUTE = ['cpu', 'memory'] as const;

function positive(amounts: Amounts | undefined, resource: string): string | undefined {
  const amount = amounts?.[resource];
  return amount !== undefined && compareQuantities(amount, '0') > 0 ? amount : undefined;
}

function isGuaranteed(parts: readonly Resources[]): boolean {
  return parts.every((part) =>
    COMPUTE.every((resource) => {
      const limit = positive(part.limits, resource);
      const request = positive(part.requests, resource);
      // A missing request is defaulted to the limit by the API; the same holds where nothing defaulted it.
      return limit !== undefined && (request === undefined || compareQuantities(request, limit) === 0);
    }),
  );
}

function asksForNothing(part: Resources): boolean {
  return COMPUTE.every(
    (resource) => positive(part.limits, resource) === undefined && positive(part.requests, resource) === undefined,
  );
}

/** A spec with pod-level resources, which are newer than the generated types (KEP-2837). */
type SpecWithResources = Pod['spec'] & { readonly resources?: Resources };

/** The class by spec alone. Pod-level resources, where there are any, stand for the containers'. */
export function computeQosClass(pod: Pod): QosClass {
  const spec: SpecWithResources = pod.spec;
  const parts =
    spec.resources !== undefined && !asksForNothing(spec.resources)
      ? [spec.resources]
      : [...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.resources ?? {});
  if (parts.every(asksForNothing)) return 'BestEffort';
  return isGuaranteed(parts) ? 'Guaranteed' : 'Burstable';
}

/** The class in force: it is fixed at admission, so the one in the status wins. */
export function qosClassOf(pod: Pod): QosClass {
  const fixed = pod.status?.qosClass;
  if (fixed === 'Guaranteed' || fixed === 'Burstable' || fixed === 'BestEffort') return fixed;
  return computeQosClass(pod);
}
