// The reducer, the one place where the cache of the runtime changes: an input goes in (the result of a call of ours, an
// event, a list or status), and lifecycle events for pods' workers come out. The state is changed in place, since it is
// large and has one owner; but the outcome depends on the arguments alone: no I/O, no clock, no randomness.

import type { EpochMs } from '../../../lib/clock.ts';
import { applyCall } from './calls.ts';
import { applyEvent } from './events.ts';
import type { CacheChange, CacheInput } from './inputs.ts';
import { applyList, applyStatus } from './reads.ts';
import type { CacheState } from './records.ts';
import type { Step } from './step.ts';

export interface Reduced {
  readonly cache: CacheState;
  /** In the order in which they happened. */
  readonly changes: readonly CacheChange[];
}

/** `now` in epoch ms, for provenance and for changes that the runtime does not date. */
export function reduce(cache: CacheState, input: CacheInput, now: EpochMs): Reduced {
  cache.seq++;
  const step: Step = { state: cache, seq: cache.seq, now, changes: [] };
  switch (input.kind) {
    case 'callBegan':
    case 'callDone':
    case 'callFailed':
      applyCall(step, input);
      break;
    case 'event':
    case 'stream':
      applyEvent(step, input);
      break;
    case 'containerStatus':
    case 'sandboxStatus':
      applyStatus(step, input);
      break;
    case 'list':
      applyList(step, input);
      break;
  }
  return { cache, changes: step.changes };
}
