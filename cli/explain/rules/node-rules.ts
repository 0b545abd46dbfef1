// The rules for nodes, in groups as those for pods.

import type { NodeFacts } from '../facts.ts';
import type { Finding, Rule } from '../finding.ts';
import { nodeCordoned } from './node-cordoned.ts';
import { nodeNotReady } from './node-not-ready.ts';
import { nodePressure } from './node-pressure.ts';
import { nodeReady } from './node-ready.ts';
import { nodeRuntime } from './node-runtime.ts';
import { nodeSilent } from './node-silent.ts';

export const NODE_RULES: readonly (readonly Rule<NodeFacts>[])[] = [
  [nodeRuntime, nodeSilent, nodeNotReady],
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

export function fineNode({ node, pods, runtime }: NodeFacts): readonly string[] {
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
    `${pods.length} pods; allocatable: ${own.get('cpu')} cpu, ${own.get('memory')} memory, ${own.get('pods')} pods`,
  ];
}
