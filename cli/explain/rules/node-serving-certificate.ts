// The serving certificate of the agent (port 10250) has expired, is not valid yet, or the API server does not accept who has signed
// it. kubectl logs, exec and port-forward go that way.

import { rfc3339 } from '../../../lib/rfc3339.ts';
import { timeFault } from '../certificates.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { serverNow } from '../node-view.ts';

const WHAT_FAILS = 'kubectl logs, exec, attach and port-forward go from the API server to the agent’s server';

export const nodeServingCertificate: Rule<NodeFacts> = {
  name: 'node-serving-certificate',
  find: (facts) => {
    const { kubeletApi } = facts;
    const certificate = kubeletApi?.certificate;
    if (kubeletApi === undefined || certificate === undefined) return undefined;
    const { throughServer = '', address } = kubeletApi;
    const isRefused = /x509|certificate/i.test(throughServer);
    const fault =
      timeFault(certificate, serverNow(facts)) ??
      (certificate.signedByCa === false && isRefused ? `is signed by another CA (${certificate.issuer})` : undefined);
    if (fault === undefined) return undefined;
    const { subject, issuer, notBefore, notAfter } = certificate;
    return {
      state: 'broken',
      verdict: `the serving certificate of its agent ${fault}`,
      chain: [
        { text: `${WHAT_FAILS}: an API server that checks its certificate refuses it` },
        {
          text: `the certificate is for ${subject}, by ${issuer}`,
          call: {
            name: 'TLS handshake',
            to: address,
            answer: `valid from ${rfc3339(notBefore)} to ${rfc3339(notAfter)}`,
          },
        },
        ...(throughServer === ''
          ? []
          : [{ text: 'the API server called it', call: { name: 'GET healthz', to: address, answer: throughServer } }]),
      ],
      commands: [
        {
          command: `openssl s_client -connect ${address} </dev/null | openssl x509 -noout -subject -issuer -dates`,
          why: 'the certificate that it shows',
        },
        { command: 'kubectl get csr', why: 'requests for serving certificates that wait for approval' },
      ],
    };
  },
};
