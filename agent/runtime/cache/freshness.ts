// What has to be read before a pod can be shown: nothing, a few statuses, or all of it. Pure.

import { type EpochMs, elapsedMs, type MonotonicMs } from '../../../lib/clock.ts';
import { isFinal } from './precedence.ts';
import type { CacheState, CompleteRead, RuntimeRecord } from './records.ts';

/**
 * Whether the cache is complete for the pod: it was read completely, alone or with everything else, not
 * longer ago than `limitMs`; since then nothing but results of our own calls has changed it; and an event stream is open
 * that would have reported other changes. Statuses may still be due. `monotonicNow` in ms.
 */
export function isFresh(state: CacheState, uid: string, monotonicNow: MonotonicMs, limitMs: number): boolean {
  if (!state.streaming) return false;
  const entry = state.pods.get(uid);
  const staleSeq = Math.max(state.staleSeq, entry?.staleSeq ?? 0);
  const counts = (read: CompleteRead | undefined): boolean =>
    read !== undefined && read.seqBefore >= staleSeq && elapsedMs(read.beganAt, monotonicNow) <= limitMs;
  return counts(entry?.read) || counts(state.read);
}

/**
 * Whether a status has to be read before the record can be returned. `sinceSeq`: the last input before the observation that
 * reads it; what only time can show is read once in each. `now` in epoch ms.
 */
export function isStatusDue(record: RuntimeRecord, sinceSeq: number, now: EpochMs): boolean {
  const readAlready = record.statusSeqBefore !== undefined && record.statusSeqBefore >= sinceSeq;
  const { snapshot } = record;
  if (record.kind === 'sandbox') {
    if (!record.sources.has('network')) return true;
    const { state, hostNetwork, ips } = record.snapshot;
    // A ready sandbox that should have an address and has none may still get one.
    return state === 'ready' && !hostNetwork && ips.length === 0 && !readAlready;
  }
  if (record.statusState === undefined || record.dueSeq > 0) return true;
  if (record.statusState !== snapshot.state) {
    // An exit of an event contains all that CRI does not show yet.
    return record.sources.get('exit')?.from !== 'event';
  }
  return (
    !readAlready && (snapshot.state === 'unknown' || (snapshot.state === 'exited' && !isFinal(record.snapshot, now)))
  );
}
