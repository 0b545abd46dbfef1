// The clock of the node is wrong: against the API server's, or by a Lease that was renewed in the future.

import type { NodeFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { silence, symptom } from '../node-view.ts';
import { duration } from '../words.ts';

/** Beyond what NTP leaves and requests take. Certificates, tokens and back-offs begin to suffer. ms */
const LIMIT_MS = 5_000;

const CONSEQUENCES =
  'tokens and certificates look expired or not yet valid, and times of events, logs and back-offs are wrong';

export const nodeClock: Rule<NodeFacts> = {
  name: 'node-clock',
  find: (facts) => {
    const { clock, isHere } = facts;
    const early = -(silence(facts) ?? 0);
    const isOff = isHere && clock !== undefined && Math.abs(clock.offsetMs) - clock.marginMs > LIMIT_MS;
    if (!isOff && early - (clock?.marginMs ?? 0) <= LIMIT_MS) return undefined;
    const offset = isOff ? clock.offsetMs : early;
    const direction = offset > 0 ? 'ahead of' : 'behind';
    const compared: Cause = {
      text: 'the API server sends its time with each response',
      call: {
        name: 'GET /version',
        to: 'the API server',
        answer: `by its Date header this machine is ${duration(Math.abs(offset))} ${direction} it`,
      },
    };
    return {
      state: 'broken',
      verdict: `its clock is ${duration(Math.abs(offset))} ${direction} the API server’s`,
      chain: [
        symptom(facts),
        ...(isOff ? [compared] : []),
        ...(early > LIMIT_MS ? [{ text: `its agent’s lease was renewed ${duration(early)} in the future` }] : []),
        { text: CONSEQUENCES },
      ],
      commands: [
        { command: 'timedatectl status', why: 'on the node: its time, and whether it is synchronized' },
        { command: 'chronyc tracking', why: 'on the node: what chrony measures' },
      ],
    };
  },
};
