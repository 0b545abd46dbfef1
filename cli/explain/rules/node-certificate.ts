// The agent has no certificate that the API server accepts: its kubeconfig or a file of it is missing or broken, or the client
// certificate has expired, is not valid yet, or another CA has signed it.

import { rfc3339 } from '../../../lib/rfc3339.ts';
import { timeFault } from '../certificates.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { serverNow, symptom } from '../node-view.ts';

const UNAUTHORIZED = 401;

export const nodeCertificate: Rule<NodeFacts> = {
  name: 'node-certificate',
  find: (facts) => {
    const { agent } = facts;
    if (agent === undefined) return undefined;
    const { kubeconfig, problem, certificate, attempt } = agent;
    const { name } = facts.node.metadata;
    if (problem !== undefined) {
      return {
        state: 'broken',
        verdict: `its agent cannot log in at the API server: ${problem}`,
        chain: [symptom(facts), { text: 'without it the agent does not start', call: readCall(kubeconfig, problem) }],
        commands: [{ command: `ls -l ${kubeconfig}`, why: 'on the node: the agent’s kubeconfig and what it names' }],
      };
    }
    if (certificate === undefined) return undefined;
    const fault =
      timeFault(certificate, serverNow(facts)) ??
      // Servers may accept clients of another CA than the one that has signed their own certificate.
      (certificate.signedByCa === false && attempt?.status === UNAUTHORIZED
        ? `is signed by another CA (${certificate.issuer})`
        : undefined);
    if (fault === undefined) return undefined;
    const { subject, issuer, notBefore, notAfter, place } = certificate;
    return {
      state: 'broken',
      verdict: `the client certificate of its agent ${fault}`,
      chain: [
        symptom(facts),
        ...(attempt === undefined || attempt.step === 'answered'
          ? []
          : [
              {
                text: 'the API server does not accept the agent',
                call: {
                  name: attempt.request,
                  to: attempt.server,
                  with: 'the agent’s client certificate',
                  answer: attempt.answer,
                },
              },
            ]),
        {
          text: `the certificate in ${place} is for ${subject}, by ${issuer}, valid from ${rfc3339(notBefore)} to ${rfc3339(notAfter)}`,
        },
      ],
      commands: [
        {
          command: `kubectl --kubeconfig ${kubeconfig} get node ${name}`,
          why: 'on the node: the same request by hand',
        },
        {
          command: `kubeadm kubeconfig user --org system:nodes --client-name system:node:${name}`,
          why: 'on a control plane of kubeadm’s: a new kubeconfig for the agent (a lab renews its own: nodelet down, nodelet up)',
        },
      ],
    };
  },
};

function readCall(kubeconfig: string, answer: string): { name: string; to: string; with: string; answer: string } {
  return { name: 'read', to: 'the agent’s files', with: kubeconfig, answer };
}
