// The pod's RuntimeClass names a handler that the runtime of its node does not have.

import { crictlCommand } from '../command-text.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { hasStarted, isDeleted, isEnded, isScheduled, lastEvent, timing } from '../pod-view.ts';
import { list } from '../words.ts';

const UNKNOWN_HANDLER =
  /no runtime for "([^"]*)" is configured|(?:unknown|not found) runtime handler "?([^"\s]+)|runtime handler "?([^"\s]+)"? not found/i;

export const runtimeClass: Rule<PodFacts> = {
  name: 'runtime-class',
  find: (facts) => {
    const name = facts.pod.spec.runtimeClassName;
    if (name === undefined || !isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts))
      return undefined;
    const { runtimeClass: lookup } = facts.references;
    const event = lastEvent(facts, ['FailedCreatePodSandBox']);
    if (lookup?.state === 'absent') {
      return {
        state: 'broken',
        verdict: `it names RuntimeClass ${name}, which does not exist`,
        chain: [
          { text: 'the pod has no sandbox, and so no network and no containers', ...timing(event) },
          {
            text: 'the class says which handler of the runtime is meant',
            call: { name: `GET runtimeclasses/${name}`, to: 'the API server', answer: 'not found' },
          },
        ],
        commands: [{ command: 'kubectl get runtimeclass', why: 'the classes that there are' }],
      };
    }
    if (event === undefined || !UNKNOWN_HANDLER.test(event.message)) return undefined;
    const handler = lookup?.state === 'found' ? lookup.value.handler : '';
    const handlers = (facts.runtime?.handlers ?? []).map((each) => (each === '' ? 'the default one' : each));
    return {
      state: 'broken',
      verdict: `RuntimeClass ${name} names handler ${handler}, which the container runtime of node ${facts.pod.spec.nodeName} does not have`,
      chain: [
        { text: 'the pod has no sandbox, and so no network and no containers' },
        {
          text: 'the runtime refuses to make the sandbox',
          call: {
            name: 'RunPodSandbox',
            to: 'the container runtime',
            with: `runtime_handler ${handler}`,
            answer: event.message,
          },
          ...timing(event),
        },
        ...(handlers.length === 0 ? [] : [{ text: `the runtime has ${list(handlers)}` }]),
      ],
      commands: [
        { command: `kubectl get runtimeclass ${name} -o yaml`, why: 'the handler that the class names' },
        { command: crictlCommand(facts.runtime, 'info'), why: 'the handlers that the runtime is configured with' },
      ],
    };
  },
};
