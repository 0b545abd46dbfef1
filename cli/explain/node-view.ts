// Questions that several rules ask about a node. Pure.

import type { NodeCondition } from 'kubernetes-types/core/v1';
import { type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { NodeFacts } from './facts.ts';
import type { Cause } from './finding.ts';

/** The lease of a node lasts so long, unless it says otherwise. s */
const LEASE_SECONDS = 40;

export function readyOf({ node }: NodeFacts): NodeCondition | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** The present time by the API server's clock; by this machine's where that is not known. */
export function serverNow({ now, clock }: NodeFacts): EpochMs {
  return clock === undefined ? now : plusMs(now, -clock.offsetMs);
}

/** Milliseconds since the agent renewed its Lease, negative for a time that is yet to come; undefined where there is none. */
export function silence(facts: NodeFacts): number | undefined {
  const renewed = parseRfc3339(facts.lease?.spec?.renewTime);
  if (renewed === undefined) return undefined;
  // The agent writes the time of its own machine.
  return elapsedMs(renewed, facts.isHere ? facts.now : serverNow(facts));
}

/** How long the lease lasts. ms */
export function leaseLimit({ lease }: NodeFacts): number {
  return (lease?.spec?.leaseDurationSeconds ?? LEASE_SECONDS) * 1000;
}

/** The first link of a chain: what the API server shows of the node. */
export function symptom(facts: NodeFacts): Cause {
  const ready = readyOf(facts);
  if (ready?.status === 'True') return { text: 'the node is still reported as Ready' };
  const since = parseRfc3339(ready?.lastTransitionTime);
  const text = `the node is not Ready: ${ready?.message ?? 'it has not reported'}`;
  return { text, ...(since === undefined ? {} : { since }) };
}
