// The rules for Services, in the order in which traffic could fail: no pods, none ready, a port that leads nowhere, the node's proxy,
// a policy, the name.

import type { ServiceFacts } from '../facts.ts';
import type { Finding, RuleGroup } from '../finding.ts';
import { eachPort } from '../parts.ts';
import { opensAnyPort, readyPods, selectedPods, targetPort, vantageName } from '../service-view.ts';
import { list } from '../words.ts';
import { serviceDns } from './service-dns.ts';
import { serviceExternalName } from './service-external-name.ts';
import { serviceNoPods } from './service-no-pods.ts';
import { serviceNotReady } from './service-not-ready.ts';
import { servicePolicy } from './service-policy.ts';
import { servicePort } from './service-port.ts';
import { serviceProxy } from './service-proxy.ts';
import { serviceReady } from './service-ready.ts';
import { serviceWithoutSelector } from './service-without-selector.ts';

export const SERVICE_RULES: readonly RuleGroup<ServiceFacts>[] = [
  [serviceWithoutSelector],
  [serviceNoPods, serviceNotReady],
  [{ each: eachPort, rules: [servicePort] }],
  [{ each: eachPort, rules: [serviceProxy] }],
  [servicePolicy],
  [serviceDns],
  [serviceExternalName, serviceReady],
];

export function unknownService({ service }: ServiceFacts): Finding {
  const { name, namespace } = service.metadata;
  return {
    state: 'broken',
    verdict: 'no rule knows anything about it',
    chain: [],
    commands: [{ command: `kubectl -n ${namespace} describe service ${name}`, why: 'all that the API server knows' }],
  };
}

/** Where each port of the Service leads to a socket that is listened on. */
function listeningPods(facts: ServiceFacts): readonly string[] {
  const pods = readyPods(facts).filter((pod) => {
    const sockets = facts.listening.find((each) => each.pod === pod.metadata.name)?.ports ?? [];
    return (facts.service.spec?.ports ?? []).every((port) =>
      sockets.some(
        (each) => !each.loopback && each.port === targetPort(port, pod) && each.protocol === (port.protocol ?? 'TCP'),
      ),
    );
  });
  if (pods.length === 0 || (facts.service.spec?.ports ?? []).length === 0) return [];
  return [`programs listen on its ports in ${list(pods.map(({ metadata }) => metadata.name).slice(0, 5))}`];
}

export function fineService(facts: ServiceFacts): readonly string[] {
  const { clusterIP, ports } = facts.service.spec ?? {};
  const selected = selectedPods(facts).map(({ metadata }) => metadata.name);
  const ready = readyPods(facts).map(({ metadata, status }) => `${metadata.name} (${status?.podIP ?? 'no address'})`);
  const shown = (ports ?? []).map(
    ({ port, protocol = 'TCP', targetPort = port }) => `${protocol} ${port} → ${targetPort}`,
  );
  return [
    ...(clusterIP === undefined || clusterIP === 'None' ? [] : [`its address is ${clusterIP}`]),
    ...(shown.length === 0 ? [] : [`ports: ${list(shown)}`]),
    ...(selected.length === 0 ? [] : [`selects ${list(selected.slice(0, 5))}`]),
    ...(ready.length === 0 ? [] : [`ready: ${list(ready.slice(0, 5))}`]),
    ...listeningPods(facts),
    ...facts.connects
      // Without a proxy it is not known who has answered.
      .filter(({ isOpen }) => isOpen && facts.proxy?.kind !== 'none' && !opensAnyPort(facts))
      .map(({ address, port }) => `${address}:${port} takes connections from ${vantageName(facts)}`),
    ...(facts.dns?.hops ?? [])
      .filter(({ answer }) => answer.error === undefined)
      .map(
        ({ answer }) => `${answer.name} is ${list(answer.addresses)}, by ${answer.server} from ${vantageName(facts)}`,
      ),
  ];
}
