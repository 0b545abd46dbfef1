// UDP flows that the kernel still translates as before a change: to an endpoint that is gone, or to none though there is one now. TCP
// needs none of this: its connections end by themselves. Pure.

import type { ServicePortMap } from '../backend.ts';

/** A line of /proc/net/nf_conntrack: what the client sent to, and who answers. */
export interface Flow {
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  readonly answerSource: string;
  readonly answerPort: number;
}

const LINE =
  /^ipv4\s+\d+\s+udp\s.*?\bsrc=(\S+) dst=(\S+) sport=(\d+) dport=(\d+) .*?\bsrc=(\S+) dst=\S+ sport=(\d+) dport=\d+/;

export function parseFlows(text: string): readonly Flow[] {
  return text.split('\n').flatMap((line): Flow[] => {
    const [, source, destination, sourcePort, destinationPort, answerSource, answerPort] = LINE.exec(line) ?? [];
    if (source === undefined || destination === undefined || answerSource === undefined) return [];
    return [
      {
        source,
        destination,
        answerSource,
        sourcePort: Number(sourcePort),
        destinationPort: Number(destinationPort),
        answerPort: Number(answerPort),
      },
    ];
  });
}

/** Where UDP to an address and port of a service may be answered from, and to a node port. */
interface Expected {
  readonly byAddress: ReadonlyMap<string, ReadonlySet<string>>;
  readonly byNodePort: ReadonlyMap<number, ReadonlySet<string>>;
}

export function expectedAnswers(portMap: ServicePortMap): Expected {
  const byAddress = new Map<string, ReadonlySet<string>>();
  const byNodePort = new Map<number, ReadonlySet<string>>();
  for (const { port, reachable } of portMap.values()) {
    if (port.protocol !== 'udp') continue;
    // A change of policy, topology or readiness does not cut flows that are there, as with TCP; kube-proxy does the same.
    const endpoints = new Set(reachable.serving);
    for (const ip of [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs]) {
      byAddress.set(`${ip}:${port.number}`, endpoints);
    }
    if (port.nodePort !== 0) byNodePort.set(port.nodePort, endpoints);
  }
  return { byAddress, byNodePort };
}

/** Those to remove. A service without endpoints refuses its packets: its flows need not go. */
export function staleFlows(
  flows: readonly Flow[],
  { byAddress, byNodePort }: Expected,
  nodeIPs: ReadonlySet<string>,
): readonly Flow[] {
  return flows.filter(({ destination, destinationPort, answerSource, answerPort }) => {
    const endpoints =
      byAddress.get(`${destination}:${destinationPort}`) ??
      (nodeIPs.has(destination) ? byNodePort.get(destinationPort) : undefined);
    return endpoints !== undefined && endpoints.size > 0 && !endpoints.has(`${answerSource}:${answerPort}`);
  });
}
