// A port of the Service leads to a port that no container names, or where nothing listens in the pod.

import type { ServiceFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { readyPods, targetPort } from '../service-view.ts';
import { list } from '../words.ts';

export const servicePort: Rule<ServiceFacts> = {
  name: 'service-port',
  find: (facts) => {
    const { name, namespace } = facts.service.metadata;
    const edit = {
      command: `kubectl -n ${namespace} get service ${name} -o jsonpath='{.spec.ports}'`,
      why: 'the ports of the Service: targetPort has to be the one on which the program listens',
    };
    for (const port of facts.service.spec?.ports ?? []) {
      const protocol = port.protocol ?? 'TCP';
      for (const pod of readyPods(facts)) {
        const target = targetPort(port, pod);
        const podName = pod.metadata.name;
        if (target === undefined) {
          const names = pod.spec.containers.flatMap(({ ports }) => (ports ?? []).flatMap((each) => each.name ?? []));
          return {
            state: 'broken',
            verdict: `its port ${port.port} leads to the port named ${port.targetPort}, and no container of pod ${podName} has a port of that name`,
            chain: [
              { text: `the pod is left out of the endpoints of port ${port.port}` },
              { text: `the containers’ ports are called ${names.length === 0 ? 'nothing' : list(names)}` },
            ],
            commands: [edit],
          };
        }
        const listening = facts.listening.find((each) => each.pod === podName)?.ports;
        if (
          listening === undefined ||
          listening.some((each) => each.protocol === protocol && each.port === target && !each.loopback)
        )
          continue;
        const local = listening.find((each) => each.protocol === protocol && each.port === target);
        const others = [
          ...new Set(listening.filter(({ loopback }) => !loopback).map((each) => `${each.protocol} ${each.port}`)),
        ];
        return {
          state: 'broken',
          verdict:
            local === undefined
              ? `its port ${port.port} leads to ${protocol} ${target}, and nothing listens there in pod ${podName}`
              : `its port ${port.port} leads to ${protocol} ${target}, where pod ${podName} listens only on its loopback address`,
          chain: [
            { text: `connections to port ${port.port} of the Service are refused` },
            {
              text:
                others.length === 0
                  ? 'nothing else listens in the pod'
                  : `the pod listens on ${list(others.slice(0, 6))}`,
              call: {
                name: 'the table of sockets',
                to: `the kernel, in the network of pod ${podName}`,
                with: `${protocol} ${target}`,
                answer: local === undefined ? 'no socket listens' : 'a socket listens on loopback',
              },
            },
          ],
          commands: [
            edit,
            ...(local === undefined
              ? []
              : [
                  {
                    command: `kubectl -n ${namespace} logs ${podName}`,
                    why: 'the program has to listen on 0.0.0.0 or [::]',
                  },
                ]),
          ],
        };
      }
    }
    return undefined;
  },
};
