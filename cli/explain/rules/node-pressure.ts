// The node is short of memory, disk or processes: it takes no new pods that could make it worse, and evicts some.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { crictlCommand } from '../command-text.ts';
import type { NodeFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { list } from '../words.ts';

export const nodePressure: Rule<NodeFacts> = {
  name: 'node-pressure',
  find: ({ node, pods, events, runtime }) => {
    const found = (node.status?.conditions ?? []).filter(
      ({ type, status }) => type.endsWith('Pressure') && status === 'True',
    );
    if (found.length === 0) return undefined;
    const kinds = found.map(({ type }) => type.replace('Pressure', '').replace('PID', 'process ids').toLowerCase());
    const evicted = pods
      .filter(({ status }) => status?.reason === 'Evicted')
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    const event = events.findLast(
      ({ reason }) => reason === 'EvictionThresholdMet' || reason === 'FreeDiskSpaceFailed',
    );
    return {
      state: 'broken',
      verdict: `it is short of ${list(kinds)}`,
      chain: [
        ...found.map(({ type, message, lastTransitionTime }) => {
          const since = parseRfc3339(lastTransitionTime);
          return { text: `${type}: ${message ?? ''}`, ...(since === undefined ? {} : { since }) };
        }),
        ...(event === undefined ? [] : [{ text: event.message, at: event.last }]),
        ...(evicted.length === 0 ? [] : [{ text: `evicted: ${list(evicted.slice(0, 5))}` }]),
      ],
      commands: [
        {
          command: kinds.includes('disk') ? 'df -h /var/lib' : kinds.includes('memory') ? 'free -m' : 'ps -eLf | wc -l',
          why: 'on the node: what is left',
        },
        ...(kinds.includes('disk')
          ? [{ command: crictlCommand(runtime, 'rmi --prune'), why: 'removes images that no container uses' }]
          : []),
      ],
    };
  },
};
