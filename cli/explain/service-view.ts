// Questions that several rules ask about a Service: which pods it selects, which of them are ready, where a port leads. Pure.

import type { ServicePort } from 'kubernetes-types/core/v1';
import { isPodReady } from '../../agent/model/pod-ready.ts';
import type { Pod } from '../../client/types.ts';
import type { ServiceFacts } from './facts.ts';

export function selectorOf({ service }: ServiceFacts): readonly (readonly [string, string])[] {
  return Object.entries(service.spec?.selector ?? {});
}

/** The node whose proxy and network were looked into. */
export function thisNode({ node }: Pick<ServiceFacts, 'node'>): string {
  return node === undefined ? 'this node' : `node ${node}`;
}

export function selectorText(facts: ServiceFacts): string {
  return selectorOf(facts)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

function labelsOf(pod: Pod): ReadonlyMap<string, string> {
  return new Map(Object.entries(pod.metadata.labels ?? {}));
}

/** Requirements of the selector that the pod's labels do not meet. */
export function unmet(facts: ServiceFacts, pod: Pod): readonly (readonly [string, string])[] {
  const labels = labelsOf(pod);
  return selectorOf(facts).filter(([key, value]) => labels.get(key) !== value);
}

export function labelText(pod: Pod, key: string): string {
  const value = labelsOf(pod).get(key);
  return value === undefined ? `no label ${key}` : `${key}=${value}`;
}

/** The pods that it selects and that have not ended. */
export function selectedPods(facts: ServiceFacts): readonly Pod[] {
  if (selectorOf(facts).length === 0) return [];
  return facts.pods.filter(
    (pod) => unmet(facts, pod).length === 0 && pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed',
  );
}

export function readyPods(facts: ServiceFacts): readonly Pod[] {
  return selectedPods(facts).filter(isPodReady);
}

/** Addresses that its EndpointSlices give as ready. A slice without endpoints has null in place of the list. */
export function readyEndpoints({ slices }: ServiceFacts): readonly string[] {
  return slices.flatMap(({ endpoints }) =>
    (endpoints ?? []).flatMap(({ addresses, conditions }) => (conditions?.ready === false ? [] : (addresses ?? []))),
  );
}

/** The addresses inside the cluster; none of a headless Service and of a name. */
export function clusterAddresses({ service: { spec } }: ServiceFacts): readonly string[] {
  if (spec?.type === 'ExternalName') return [];
  return (spec?.clusterIPs ?? [spec?.clusterIP ?? '']).filter((each) => each !== '' && each !== 'None');
}

/** From where connections are made: "pod client", "this machine". */
export function vantageName({ vantage }: ServiceFacts): string {
  return vantage === undefined ? 'this machine' : `pod ${vantage.pod.metadata.name}`;
}

/** Something on the way takes connections to any address and port: that one opens proves nothing. */
export function opensAnyPort({ unusedPort }: ServiceFacts): boolean {
  return unusedPort?.isOpen === true;
}

/** The number in the pod that the port of the Service leads to; undefined: a name that no container of the pod has. */
export function targetPort({ port, targetPort: target = port }: ServicePort, pod: Pod): number | undefined {
  if (typeof target === 'number') return target;
  if (/^\d+$/.test(target)) return Number(target);
  const ports = pod.spec.containers.flatMap(({ ports: own }) => own ?? []);
  return ports.find(({ name }) => name === target)?.containerPort;
}
