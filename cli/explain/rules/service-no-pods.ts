// The Service's selector matches no pod; pods that it nearly matches are named.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { labelText, selectedPods, selectorOf, selectorText, unmet } from '../service-view.ts';
import { distance, list } from '../words.ts';

export const serviceNoPods: Rule<ServiceFacts> = {
  name: 'service-no-pods',
  find: (facts) => {
    const selector = selectorOf(facts);
    if (selector.length === 0 || selectedPods(facts).length > 0) return undefined;
    const { name, namespace } = facts.service.metadata;
    const text = selectorText(facts);
    const keys = new Set(selector.map(([key]) => key));
    // One requirement is not met; with only one, the label is there with another value.
    const near = facts.pods.filter(
      (pod) =>
        unmet(facts, pod).length === 1 &&
        (selector.length > 1 || Object.keys(pod.metadata.labels ?? {}).some((key) => keys.has(key))),
    );
    const misses = near
      .map((pod) => {
        const [[key, value] = ['', '']] = unmet(facts, pod);
        const [has, wants] = [labelText(pod, key), `${key}=${value}`];
        return {
          text: `pod ${pod.metadata.name} nearly matches: it has ${has}, the selector wants ${wants}`,
          edits: distance(has, wants),
        };
      })
      .sort((a, b) => a.edits - b.edits)
      .slice(0, 4)
      .map(({ text: miss }) => ({ text: miss }));
    const ended = facts.pods.filter((pod) => unmet(facts, pod).length === 0).map(({ metadata }) => metadata.name);
    return {
      state: 'broken',
      verdict: `it has no endpoints: its selector ${text} matches ${ended.length > 0 ? `only pods that have ended (${list(ended.slice(0, 3))})` : facts.pods.length === 0 ? 'no pod, the namespace has none' : `none of the ${facts.pods.length} pods`}`,
      chain: [
        { text: 'no pod answers at the address of the Service' },
        {
          text: `selector ${text} is compared with the labels of the pods in namespace ${namespace}`,
          call: { name: 'LIST pods', to: 'the API server', with: text, answer: 'none' },
        },
        ...misses,
      ],
      commands: [
        { command: `kubectl -n ${namespace} get pods --show-labels`, why: 'the labels that pods have' },
        {
          command: `kubectl -n ${namespace} get service ${name} -o jsonpath='{.spec.selector}'`,
          why: 'what the Service looks for',
        },
      ],
    };
  },
};
