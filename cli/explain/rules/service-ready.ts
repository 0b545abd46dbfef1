// The Service has ready endpoints, and as far as can be seen something listens on its ports.

import type { ServiceFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { clusterAddresses, opensAnyPort, readyEndpoints, readyPods, selectedPods, thisNode } from '../service-view.ts';
import { plural } from '../words.ts';

/** No proxy was found, and connections open all the same. */
const unexplained = (facts: ServiceFacts): Cause => ({
  text: `${thisNode(facts)} has no rules of a proxy, and connections to the Service’s address open: something else takes them, such as eBPF or a transparent proxy of the network`,
});

/** Only TCP shows whether something takes connections. */
const untried = (facts: ServiceFacts): Cause => ({
  text: `no service proxy (kube-proxy) runs on ${thisNode(facts)}, so its address leads nowhere from there, unless something else takes it, such as eBPF: without a TCP port that cannot be tried`,
});

export const serviceReady: Rule<ServiceFacts> = {
  name: 'service-ready',
  find: (facts) => {
    const count = readyPods(facts).length;
    const endpoints = readyEndpoints(facts).length;
    if (count === 0 && endpoints === 0) return undefined;
    const selected = selectedPods(facts).length;
    const some = selected > count ? ` (of ${selected} that it selects)` : '';
    const checked = facts.listening.length > 0 ? ', and they listen on its ports' : '';
    const unpublished = count > 0 && endpoints === 0 && facts.slices.length === 0;
    const isUnexplained =
      facts.proxy?.kind === 'none' && !opensAnyPort(facts) && facts.connects.some(({ isOpen }) => isOpen);
    const isUntried = facts.proxy?.kind === 'none' && clusterAddresses(facts).length > 0 && facts.connects.length === 0;
    const what = count === 0 ? 'endpoint' : 'ready pod';
    return {
      state: 'ready',
      verdict: `${plural(Math.max(count, endpoints), what)}${some} can answer${checked}`,
      chain: [
        ...(isUnexplained ? [unexplained(facts)] : []),
        ...(isUntried ? [untried(facts)] : []),
        ...(unpublished
          ? [
              {
                text: 'there is no EndpointSlice: no endpoints controller runs here, as in the lab, and proxies and DNS servers learn of pods from nothing else',
              },
            ]
          : []),
      ],
      commands: [],
    };
  },
};
