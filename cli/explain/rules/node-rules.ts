// The rules for nodes, in groups as those for pods.

import { timeFault, timeLeft } from '../certificates.ts';
import type { NodeFacts } from '../facts.ts';
import type { Finding, Rule } from '../finding.ts';
import { serverNow } from '../node-view.ts';
import { plural } from '../words.ts';
import { nodeCertificate } from './node-certificate.ts';
import { nodeClock } from './node-clock.ts';
import { nodeCordoned } from './node-cordoned.ts';
import { nodeNotReady } from './node-not-ready.ts';
import { nodePressure } from './node-pressure.ts';
import { nodeReady } from './node-ready.ts';
import { nodeRuntime } from './node-runtime.ts';
import { nodeServer } from './node-server.ts';
import { nodeServingCertificate } from './node-serving-certificate.ts';
import { nodeServingFile } from './node-serving-file.ts';
import { nodeSilent } from './node-silent.ts';

export const NODE_RULES: readonly (readonly Rule<NodeFacts>[])[] = [
  // Between the agent and the API server, then what the agent reports.
  [nodeCertificate, nodeServer, nodeServingFile, nodeSilent],
  [nodeRuntime, nodeNotReady],
  [nodeClock],
  [nodeServingCertificate],
  [nodePressure],
  [nodeCordoned],
  [nodeReady],
];

export function unknownNode({ node }: NodeFacts): Finding {
  const { name } = node.metadata;
  return {
    state: 'broken',
    verdict: 'it has no condition Ready: its agent has registered it and has not reported yet',
    chain: [],
    commands: [{ command: `kubectl describe node ${name}`, why: 'all that the API server knows' }],
  };
}

/** What is all right between the agent and the API server. */
function fineConnection(facts: NodeFacts): readonly string[] {
  const { agent, kubeletApi, clock, isHere } = facts;
  const at = serverNow(facts);
  const client = agent?.certificate;
  const serving = kubeletApi?.certificate;
  const signer = serving?.selfMade === true ? ', made by itself' : '';
  return [
    ...(agent?.attempt?.step === 'answered'
      ? [`its agent’s way to the API server is open (${agent.attempt.server})`]
      : []),
    ...(client !== undefined && timeFault(client, at) === undefined
      ? [`the client certificate of its agent: ${timeLeft(client, at)}`]
      : []),
    ...(serving !== undefined && timeFault(serving, at) === undefined
      ? [`its agent serves at ${kubeletApi?.address}; the certificate there: ${timeLeft(serving, at)}${signer}`]
      : []),
    ...(isHere && clock !== undefined && Math.abs(clock.offsetMs) <= clock.marginMs
      ? ['its clock agrees with the API server’s']
      : []),
  ];
}

export function fineNode(facts: NodeFacts): readonly string[] {
  const { node, pods, runtime } = facts;
  const { allocatable = {}, nodeInfo } = node.status ?? {};
  const own = new Map(Object.entries(allocatable));
  const conditions = (node.status?.conditions ?? []).filter(
    ({ type, status }) => type.endsWith('Pressure') && status === 'False',
  );
  return [
    ...(conditions.length === 0
      ? []
      : [`no ${conditions.map(({ type }) => type.replace('Pressure', '').toLowerCase()).join(', ')} pressure`]),
    ...(runtime?.failure === undefined && runtime !== undefined
      ? [`its container runtime answers (${nodeInfo?.containerRuntimeVersion ?? runtime.endpoint})`]
      : []),
    ...fineConnection(facts),
    `${plural(pods.length, 'pod')}; allocatable: ${own.get('cpu')} cpu, ${own.get('memory')} memory, ${own.get('pods')} pods`,
  ];
}
