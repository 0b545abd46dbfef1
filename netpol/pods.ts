// Pods, as policies see them: namespace, labels, address, named ports. Pure.

import { isIPv4 } from 'node:net';
import type { Pod } from '../client/types.ts';

export interface PolicyPod {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** IPv4. */
  readonly ip: string;
  readonly nodeName: string;
  /** By name, with the protocol in capitals. */
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly number: number }[];
}

/**
 * Undefined for a pod that no policy selects and no peer means: without an IPv4 address, on the network of its node (its packets are the
 * node's), or ended, when its address may be another pod's.
 */
export function policyPod({ metadata, spec, status }: Pod): PolicyPod | undefined {
  const { phase, podIPs = [], podIP } = status ?? {};
  if (spec.hostNetwork === true || phase === 'Succeeded' || phase === 'Failed') return undefined;
  const ip = [podIP, ...podIPs.map((each) => each.ip)].find((each) => each !== undefined && isIPv4(each));
  if (ip === undefined) return undefined;
  const sidecars = (spec.initContainers ?? []).filter((each) => each.restartPolicy === 'Always');
  const ports = [...spec.containers, ...sidecars].flatMap((each) =>
    (each.ports ?? []).flatMap(({ name, protocol = 'TCP', containerPort }) =>
      name === undefined ? [] : [{ name, protocol, number: containerPort }],
    ),
  );
  const { namespace, labels = {} } = metadata;
  return { namespace, labels, ip, nodeName: spec.nodeName ?? '', ports };
}

/** Pods of one address: of those that overlap for a moment, the one that was made last has it. */
export function policyPods(pods: readonly Pod[]): readonly PolicyPod[] {
  const byAddress = new Map<string, PolicyPod>();
  const madeAt = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
  for (const pod of [...pods].sort((a, b) => (madeAt(a) < madeAt(b) ? -1 : madeAt(a) > madeAt(b) ? 1 : 0))) {
    const seen = policyPod(pod);
    if (seen !== undefined) byAddress.set(seen.ip, seen);
  }
  return [...byAddress.values()];
}
