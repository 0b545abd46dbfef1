// Nothing leads from the Service's address to its pods: the node has no proxy, or the proxy has no rule for the address, or one that
// leads elsewhere. Where a connection opens, whatever programmed the kernel did so in its own way, unless any connection opens.

import type { ConnectFact, ProxyFacts, ServiceFacts } from '../facts.ts';
import type { Cause, Command, Finding, Rule } from '../finding.ts';
import {
  clusterAddresses,
  opensAnyPort,
  readyEndpoints,
  readyPods,
  targetPort,
  thisNode,
  vantageName,
} from '../service-view.ts';
import { list, plural } from '../words.ts';

const TABLES: Readonly<Record<ProxyFacts['kind'], string>> = {
  iptables: 'chain KUBE-SERVICES of iptables',
  nftables: 'table kube-proxy of nftables',
  ipvs: 'IPVS',
  none: 'iptables (chain KUBE-SERVICES) and nftables (table kube-proxy)',
};

interface Door {
  readonly address: string;
  readonly port: number;
  readonly protocol: string;
  readonly connect: ConnectFact | undefined;
}

function doors(facts: ServiceFacts): readonly Door[] {
  const ports = facts.service.spec?.ports ?? [];
  return clusterAddresses(facts).flatMap((address) =>
    ports.map(({ port, protocol = 'TCP' }) => ({
      address,
      port,
      protocol,
      connect:
        protocol === 'TCP' ? facts.connects.find((each) => each.address === address && each.port === port) : undefined,
    })),
  );
}

/** The connection that did not open. */
function attempt(facts: ServiceFacts, { address, port, connect }: Door): readonly Cause[] {
  if (connect === undefined) return [];
  const from = vantageName(facts);
  const { unusedPort } = facts;
  if (connect.isOpen && unusedPort !== undefined) {
    return [
      {
        text: `connections from ${from} to the Service’s address open, but so do those to a port that it does not have: something on the way answers for any address`,
        call: {
          name: 'connect',
          to: `${unusedPort.address}:${unusedPort.port}`,
          with: `TCP, from ${from}`,
          answer: unusedPort.answer,
        },
      },
    ];
  }
  return [
    {
      text: `connections from ${from} to the Service’s address do not open`,
      call: { name: 'connect', to: `${address}:${port}`, with: `TCP, from ${from}`, answer: connect.answer },
    },
  ];
}

function finding(facts: ServiceFacts, door: Door, verdict: string, link: string, answer: string): Finding {
  const kind = facts.proxy?.kind ?? 'none';
  const { address, port, protocol } = door;
  return {
    state: 'broken',
    verdict,
    chain: [
      ...attempt(facts, door),
      {
        text: link,
        call: {
          name: 'list rules',
          to: `the kernel of ${thisNode(facts)}`,
          with: `${protocol} ${address}:${port}`,
          answer,
        },
      },
    ],
    commands: [
      kind === 'nftables'
        ? { command: 'nft list table ip kube-proxy', why: 'on the node: the proxy’s rules' }
        : { command: `iptables-save -t nat | grep -F ${address}`, why: 'on the node: the proxy’s rules' },
      {
        command: 'kubectl -n kube-system get pods -o wide -l k8s-app=kube-proxy',
        why: 'whether kube-proxy runs on the node, where the cluster runs it as pods',
      },
    ],
  };
}

/** The verdict where nothing but the proxy is missing: what would answer behind it is part of the sentence. */
function withoutProxy(facts: ServiceFacts, address: string): string {
  const pods = readyPods(facts).length;
  const missing = `no service proxy (kube-proxy) runs on ${thisNode(facts)}, so its address ${address} leads nowhere`;
  if (pods === 0) return `${missing}, though it has ${plural(readyEndpoints(facts).length, 'ready endpoint')}`;
  const checked = facts.listening.length >= pods ? `, and ${pods === 1 ? 'listens' : 'they listen'} on its ports` : '';
  return `${missing}; all else is right: ${plural(pods, 'pod')} ${pods === 1 ? 'is' : 'are'} ready${checked}`;
}

/** Its pods answer by their own addresses. */
function directly(facts: ServiceFacts): readonly Command[] {
  const [port] = (facts.service.spec?.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  const [pod] = readyPods(facts);
  const ip = pod?.status?.podIP;
  const target = port === undefined || pod === undefined ? undefined : targetPort(port, pod);
  if (ip === undefined || target === undefined) return [];
  const host = ip.includes(':') ? `[${ip}]` : ip;
  return [
    {
      command: `curl http://${host}:${target}/`,
      why: 'on the node: the pod itself, without the Service (any client of TCP does)',
    },
  ];
}

/** What is wrong with the rules for one address and port. */
function faultOf(facts: ServiceFacts, proxy: ProxyFacts, door: Door): Finding | undefined {
  const { address, port, protocol, connect } = door;
  const endpoints = readyEndpoints(facts);
  const table = TABLES[proxy.kind];
  if (proxy.kind === 'none') {
    if (connect === undefined) return undefined;
    const fault = finding(
      facts,
      door,
      withoutProxy(facts, address),
      `a proxy keeps its rules in ${table}`,
      'neither is there',
    );
    return { ...fault, commands: [...directly(facts), ...fault.commands] };
  }
  if (proxy.kind === 'ipvs') return undefined;
  const rule = proxy.rules.find((each) => each.address === address && each.port === port && each.protocol === protocol);
  if (rule === undefined) {
    const verdict = `the proxy of ${thisNode(facts)} has no rule for ${protocol} ${address}:${port}`;
    return finding(facts, door, verdict, `rules for Services are in ${table}`, 'no rule has this address and port');
  }
  if (rule.to.length === 0) {
    const verdict = `the proxy of ${thisNode(facts)} refuses ${protocol} ${address}:${port}: its rule has no endpoints`;
    return finding(facts, door, verdict, `the rule is older than the endpoints, or cannot be followed`, 'no endpoints');
  }
  const stale = rule.to.filter(
    (to) => !endpoints.some((each) => to.startsWith(`${each}:`) || to.startsWith(`[${each}]:`)),
  );
  if (stale.length === 0 || endpoints.length === 0 || connect === undefined) return undefined;
  const verdict = `the proxy of ${thisNode(facts)} leads ${protocol} ${address}:${port} to ${list(stale.slice(0, 4))}, which is no endpoint of it any more`;
  return finding(
    facts,
    door,
    verdict,
    `its ready endpoints are ${list(endpoints.slice(0, 4))}`,
    list(rule.to.slice(0, 4)),
  );
}

export const serviceProxy: Rule<ServiceFacts> = {
  name: 'service-proxy',
  find: (facts) => {
    const { proxy } = facts;
    if (proxy === undefined || (readyPods(facts).length === 0 && readyEndpoints(facts).length === 0)) return undefined;
    for (const door of doors(facts)) {
      if (door.connect?.isOpen === true && !opensAnyPort(facts)) continue;
      const found = faultOf(facts, proxy, door);
      if (found !== undefined) return found;
    }
    return undefined;
  },
};
