// Nothing leads from the Service's address to its pods: the node has no proxy, or the proxy has no rule for the address, or one that
// leads elsewhere. Where a connection opens, whatever programmed the kernel did so in its own way.

import type { ConnectFact, ProxyFacts, ServiceFacts } from '../facts.ts';
import type { Cause, Finding, Rule } from '../finding.ts';
import { clusterAddresses, readyEndpoints, readyPods, vantageName } from '../service-view.ts';
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
        call: { name: 'list rules', to: 'the kernel of this node', with: `${protocol} ${address}:${port}`, answer },
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

/** What is wrong with the rules for one address and port. */
function faultOf(facts: ServiceFacts, proxy: ProxyFacts, door: Door): Finding | undefined {
  const { address, port, protocol, connect } = door;
  const endpoints = readyEndpoints(facts);
  const count = Math.max(readyPods(facts).length, endpoints.length);
  const table = TABLES[proxy.kind];
  if (proxy.kind === 'none') {
    if (connect === undefined) return undefined;
    const verdict = `this node has no service proxy (kube-proxy): nothing leads from ${address} to its ${plural(count, 'ready endpoint')}`;
    return finding(facts, door, verdict, `a proxy keeps its rules in ${table}`, 'neither is there');
  }
  if (proxy.kind === 'ipvs') return undefined;
  const rule = proxy.rules.find((each) => each.address === address && each.port === port && each.protocol === protocol);
  if (rule === undefined) {
    const verdict = `the proxy of this node has no rule for ${protocol} ${address}:${port}`;
    return finding(facts, door, verdict, `rules for Services are in ${table}`, 'no rule has this address and port');
  }
  if (rule.to.length === 0) {
    const verdict = `the proxy of this node refuses ${protocol} ${address}:${port}: its rule has no endpoints`;
    return finding(facts, door, verdict, `the rule is older than the endpoints, or cannot be followed`, 'no endpoints');
  }
  const stale = rule.to.filter(
    (to) => !endpoints.some((each) => to.startsWith(`${each}:`) || to.startsWith(`[${each}]:`)),
  );
  if (stale.length === 0 || endpoints.length === 0 || connect === undefined) return undefined;
  const verdict = `the proxy of this node leads ${protocol} ${address}:${port} to ${list(stale.slice(0, 4))}, which is no endpoint of it any more`;
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
      if (door.connect?.isOpen === true) continue;
      const found = faultOf(facts, proxy, door);
      if (found !== undefined) return found;
    }
    return undefined;
  },
};
