// The Service's name leads nowhere, and at which hop: the pod's resolv.conf, the cluster's DNS Service, its endpoints, what they
// answer, and for a Service that is only another name the resolvers of the node.

import type { DnsAnswer, DnsFacts, DnsHop, ServiceFacts } from '../facts.ts';
import type { Cause, Finding, Rule } from '../finding.ts';
import { clusterAddresses, readyEndpoints, readyPods, vantageName } from '../service-view.ts';
import { list } from '../words.ts';

/** c-ares' codes in the words of DNS. */
const MEANINGS: ReadonlyMap<string, string> = new Map([
  ['ENOTFOUND', 'NXDOMAIN: there is no such name'],
  ['ENODATA', 'no address for this name'],
  ['ESERVFAIL', 'SERVFAIL: the server could not find out'],
  ['EREFUSED', 'REFUSED: the server does not answer this client'],
  ['ETIMEOUT', 'no answer in time'],
  ['ECONNREFUSED', 'nothing listens there'],
]);
/** The server, or what is between, is not there; with any other code it has answered. */
const SILENT: ReadonlySet<string> = new Set(['ETIMEOUT', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH']);

function words({ error, addresses }: DnsAnswer): string {
  return error === undefined ? list(addresses) : (MEANINGS.get(error) ?? error);
}

function isSilent({ error }: DnsAnswer): boolean {
  return error !== undefined && SILENT.has(error);
}

function link(text: string, answer: DnsAnswer): Cause {
  return { text, call: { name: `A ${answer.name}`, to: answer.server, answer: words(answer) } };
}

/** What the name has to lead to; empty: not known here. */
function expected(facts: ServiceFacts): readonly string[] {
  const own = clusterAddresses(facts);
  if (own.length > 0) return own;
  const published = readyEndpoints(facts);
  return published.length > 0 ? published : readyPods(facts).flatMap(({ status }) => status?.podIP ?? []);
}

/** A server that does not answer: which part of the way to it is broken. */
function silentServer(
  pod: string,
  { answer, service, endpoints }: DnsHop,
): { verdict: string; links: readonly Cause[] } {
  const first = link(`${pod} has the server ${answer.server} in its resolv.conf`, answer);
  if (service === undefined) {
    return {
      verdict: `the DNS server ${answer.server} of ${pod} does not answer, and no Service has that address`,
      links: [first],
    };
  }
  const behind = endpoints.map((each) => link(`${each.server} is an endpoint of Service ${service}`, each));
  if (endpoints.length === 0) {
    return {
      verdict: `the cluster’s DNS Service ${service} has no ready endpoints`,
      links: [first, { text: `${answer.server} is the address of Service ${service}, which leads to no server` }],
    };
  }
  if (endpoints.every(isSilent)) {
    const servers = list(endpoints.map(({ server }) => server));
    return {
      verdict: `the DNS servers behind Service ${service} do not answer (${servers})`,
      links: [first, ...behind],
    };
  }
  return {
    verdict: `the address ${answer.server} of the DNS Service ${service} leads nowhere, though the server behind it answers`,
    links: [first, ...behind, { text: 'the proxy of the node has to lead from the one to the other' }],
  };
}

/** An ExternalName: the cluster's DNS has to ask the node's resolvers. */
function upstreamFault(pod: string, dns: DnsFacts, { answer }: DnsHop): { verdict: string; links: readonly Cause[] } {
  const links = [
    link(`${pod} asks the cluster’s DNS`, answer),
    ...dns.upstream.map((each) => link('a resolver of the node', each)),
  ];
  const name = dns.upstream[0]?.name ?? dns.name;
  const good = dns.upstream.find(({ error }) => error === undefined);
  if (good !== undefined) {
    return {
      verdict: `the cluster’s DNS does not forward: ${good.server} knows ${name}, ${answer.server} does not`,
      links,
    };
  }
  const silent = dns.upstream.filter(isSilent).map(({ server }) => server);
  if (silent.length > 0) return { verdict: `the node’s resolver ${list(silent)} does not answer for ${name}`, links };
  return { verdict: `the name ${name} is not known upstream: ${dns.upstream.map(words).join('; ')}`, links };
}

function fault(facts: ServiceFacts, dns: DnsFacts): { verdict: string; links: readonly Cause[] } | undefined {
  const pod = vantageName(facts);
  const [hop] = dns.hops;
  if (hop === undefined) return { verdict: `${pod} has no nameserver in its resolv.conf`, links: [] };
  const { answer, service } = hop;
  if (isSilent(answer)) return silentServer(pod, hop);
  if (answer.error !== undefined) {
    if (dns.upstream.length > 0) return upstreamFault(pod, dns, hop);
    const whose = service === undefined ? `the DNS server ${answer.server}` : `the cluster’s DNS (Service ${service})`;
    return {
      verdict: `${whose} does not know ${dns.name}: ${words(answer)}`,
      links: [
        link(`${pod} asks ${answer.server}`, answer),
        { text: 'it watches Services and EndpointSlices, or serves another domain' },
      ],
    };
  }
  const right = expected(facts);
  if (right.length === 0 || answer.addresses.some((each) => right.includes(each))) return undefined;
  return {
    verdict: `DNS leads ${dns.name} to ${list(answer.addresses)}, and the Service is ${list(right.slice(0, 4))}`,
    links: [
      link(`${pod} asks ${answer.server}`, answer),
      { text: 'an older answer that is still cached, or another cluster’s server' },
    ],
  };
}

export const serviceDns: Rule<ServiceFacts> = {
  name: 'service-dns',
  find: (facts): Finding | undefined => {
    const { dns, vantage } = facts;
    if (dns === undefined || vantage === undefined) return undefined;
    const found = fault(facts, dns);
    if (found === undefined) return undefined;
    const { name, namespace } = vantage.pod.metadata;
    return {
      state: 'broken',
      verdict: found.verdict,
      chain: [{ text: `the name ${dns.name} does not lead ${vantageName(facts)} to the Service` }, ...found.links],
      commands: [
        { command: `kubectl -n ${namespace} exec ${name} -- nslookup ${dns.name}`, why: 'the same question by hand' },
        {
          command: 'kubectl -n kube-system get service,endpointslices,pods -l k8s-app=kube-dns',
          why: 'the cluster’s DNS',
        },
      ],
    };
  },
};
