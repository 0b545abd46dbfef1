// Events as input of the cache. An event may come twice, late, or before the response of the call that caused
// it; the rules of precedence and the records' own state handle that. A change without a call of ours is
// reported, and makes the pod's entry stale: other changes may have happened with it. An exit that a stop of ours causes is reported
// alone.

import type { EpochMs } from '../../../lib/clock.ts';
import type { ContainerSnapshot } from '../../ports/runtime.ts';
import type { EventInput } from './inputs.ts';
import type { ContainerRecord, RuntimeRecord } from './records.ts';
import { drop, emit, makeStale, type Step, setContainer, source } from './step.ts';

type StreamEvent = Extract<EventInput, { readonly kind: 'event' }>;
type Exited = Extract<StreamEvent, { readonly event: 'exited' }>;

export function applyEvent(step: Step, input: EventInput): void {
  const { state, seq } = step;
  if (input.kind === 'stream') {
    // Changes without an open stream are in no event: earlier reads are stale.
    state.staleSeq = seq;
    state.streaming = input.serving;
    return;
  }
  const record = state.records.get(input.id);
  if (input.event === 'removed') {
    removed(step, input.id, record, input.at);
    return;
  }
  if (record === undefined) return;
  if (input.event === 'exited') {
    exited(step, record, input);
    return;
  }
  if (record.kind !== 'container') return;
  if (input.event === 'started') {
    started(step, record, input.at);
    return;
  }
  oomKilled(step, record, input.at);
}

function removed(step: Step, id: string, record: RuntimeRecord | undefined, at: EpochMs): void {
  drop(step, id);
  if (record === undefined || record.pending === 'remove') return;
  makeStale(step, record.pod);
  emit(step, 'removed', record, at);
}

function started(step: Step, record: ContainerRecord, at: EpochMs): void {
  if (record.snapshot.state !== 'created') return;
  const own = record.pending === 'start';
  record.evidenceSeq = step.seq;
  setContainer(
    record,
    { ...record.snapshot, state: 'running', startedAt: at },
    ['state'],
    source(step, 'event', 'started'),
  );
  if (own) return;
  makeStale(step, record.pod);
  emit(step, 'started', record, at);
}

/** A worker that has seen another reason of the exit has to see this one. */
function oomKilled(step: Step, record: ContainerRecord, at: EpochMs): void {
  record.oomKilled = true;
  const { state, reason } = record.snapshot;
  if (state !== 'exited' || reason === 'OOMKilled') return;
  record.dueSeq = step.seq;
  makeStale(step, record.pod);
  emit(step, 'changed', record, at);
}

function exited(step: Step, record: RuntimeRecord, { at, exit, status }: Exited): void {
  if (record.kind === 'sandbox') {
    if (record.snapshot.state === 'notReady') return;
    record.exitAnnouncedAt = at;
    makeStale(step, record.pod);
    return;
  }
  if (status !== undefined) {
    shown(step, record, at, status);
    return;
  }
  if (record.snapshot.state === 'exited') return;
  // Without its message, or before the start was read, it would be half a truth: the status is waited for.
  if (exit === undefined || record.snapshot.state !== 'running' || record.statusState !== 'running') {
    record.exitAnnouncedAt = at;
    makeStale(step, record.pod);
    return;
  }
  if (record.pending !== 'stop') makeStale(step, record.pod);
  const { exitCode, message } = exit;
  // The runtime's own rule for the reason.
  const reason = record.oomKilled ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error';
  const snapshot = { ...record.snapshot, state: 'exited', finishedAt: at, exitCode, reason, message } as const;
  setContainer(record, snapshot, ['state', 'exit'], source(step, 'event', 'exited'));
  record.status = undefined;
  emit(step, 'died', record, at);
}

/** The event brought CRI's own status of the exit along: nothing has to be read. */
function shown(step: Step, record: ContainerRecord, at: EpochMs, status: ContainerSnapshot): void {
  if (status.state !== 'exited' || record.statusState === 'exited') return;
  const { snapshot: before, pending } = record;
  const { sandboxId } = status.sandboxId === '' ? before : status;
  setContainer(
    record,
    { ...status, sandboxId },
    ['identity', 'state', 'exit', 'details', 'resources'],
    source(step, 'event', 'exited with status'),
  );
  record.status = undefined;
  record.statusState = 'exited';
  record.statusSeqBefore = step.seq;
  record.dueSeq = 0;
  if (pending !== 'stop') makeStale(step, record.pod);
  if (before.state !== 'exited') emit(step, 'died', record, at);
  else if (!sameExit(before, status)) emit(step, 'changed', record, at);
}

type Exit = Pick<ContainerSnapshot, 'exitCode' | 'reason' | 'message'>;

/** Whether two statements about an exit show a user the same. */
export function sameExit(a: Exit, b: Exit): boolean {
  return a.exitCode === b.exitCode && a.reason === b.reason && a.message === b.message;
}
