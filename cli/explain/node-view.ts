// Questions that several rules ask about a node. Pure.

import type { NodeCondition } from 'kubernetes-types/core/v1';
import { elapsedMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { NodeFacts } from './facts.ts';

export function readyOf({ node }: NodeFacts): NodeCondition | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** Milliseconds since the agent renewed its Lease; undefined where there is none. */
export function silence({ lease, now }: NodeFacts): number | undefined {
  const renewed = parseRfc3339(lease?.spec?.renewTime);
  return renewed === undefined ? undefined : elapsedMs(renewed, now);
}
