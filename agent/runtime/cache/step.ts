// What every input does to the cache's records is made of these few operations. They change the state that they are
// given and nothing else: no I/O, no clock, no randomness.

import type { EpochMs, MonotonicMs } from '../../../lib/clock.ts';
import { invariant } from '../../../lib/invariant.ts';
import type { ContainerSnapshot, PodRef, SandboxSnapshot } from '../../ports/runtime.ts';
import type { CacheChange } from './inputs.ts';
import type {
  CacheState,
  ContainerGroup,
  ContainerRecord,
  PodEntry,
  Provenance,
  RuntimeRecord,
  SandboxGroup,
  SandboxRecord,
  SourceKind,
} from './records.ts';

/** One input being applied. */
export interface Step {
  readonly state: CacheState;
  /** The input's own number. */
  readonly seq: number;
  /** Epoch ms. */
  readonly now: EpochMs;
  readonly changes: CacheChange[];
}

export function source({ seq, now }: Step, from: SourceKind, what: string): Provenance {
  return { from, what, at: now, seq };
}

export function emit({ changes, now }: Step, type: CacheChange['type'], record: RuntimeRecord, at?: EpochMs): void {
  changes.push({ type, id: record.id, kind: record.kind, pod: record.pod, at: at ?? now });
}

function entryOf({ state }: Step, pod: PodRef): PodEntry {
  const known = state.pods.get(pod.uid);
  if (known !== undefined) return known;
  const entry: PodEntry = { pod, ids: new Set(), read: undefined, staleSeq: 0 };
  state.pods.set(pod.uid, entry);
  return entry;
}

/** The next observation of the pod reads it as a whole. */
export function makeStale(step: Step, pod: PodRef): void {
  entryOf(step, pod).staleSeq = step.seq;
}

/** A complete read of the pod has been taken in. */
export function markRead(step: Step, pod: PodRef, seqBefore: number, beganAt: MonotonicMs): void {
  const entry = entryOf(step, pod);
  if (entry.read === undefined || entry.read.seqBefore <= seqBefore) entry.read = { seqBefore, beganAt };
}

function add(step: Step, record: RuntimeRecord): void {
  invariant(record.pod.uid !== '', 'a record names its pod', () => ({ id: record.id, kind: record.kind }));
  step.state.records.set(record.id, record);
  step.state.removed.delete(record.id);
  entryOf(step, record.pod).ids.add(record.id);
}

/** What a record of either kind begins with. */
function newRecord<Id extends string>(step: Step, pod: PodRef, id: Id) {
  return {
    id,
    pod,
    evidenceSeq: step.seq,
    statusSeqBefore: undefined,
    dueSeq: 0,
    pending: undefined,
    exitAnnouncedAt: undefined,
  };
}

export function addSandbox(
  step: Step,
  pod: PodRef,
  snapshot: SandboxSnapshot,
  groups: readonly SandboxGroup[],
  from: Provenance,
): SandboxRecord {
  const record: SandboxRecord = {
    kind: 'sandbox',
    ...newRecord(step, pod, snapshot.id),
    snapshot,
    sources: new Map(groups.map((group) => [group, from])),
    config: undefined,
  };
  add(step, record);
  return record;
}

export function addContainer(
  step: Step,
  pod: PodRef,
  snapshot: ContainerSnapshot,
  groups: readonly ContainerGroup[],
  from: Provenance,
): ContainerRecord {
  const record: ContainerRecord = {
    kind: 'container',
    ...newRecord(step, pod, snapshot.id),
    snapshot,
    sources: new Map(groups.map((group) => [group, from])),
    statusState: undefined,
    status: undefined,
    oomKilled: false,
  };
  add(step, record);
  return record;
}

/** It is gone from the runtime. Answers to what was requested before say nothing of it any more. */
export function drop(step: Step, id: string): void {
  const record = step.state.records.get(id);
  step.state.removed.set(id, step.seq);
  if (record === undefined) return;
  step.state.records.delete(id);
  step.state.pods.get(record.pod.uid)?.ids.delete(id);
}

/** Whether `id` was removed after the input `seqBefore`: what answers a request from then does not bring it back. */
export function isGone({ state }: Step, id: string, seqBefore: number): boolean {
  const removed = state.removed.get(id);
  return removed !== undefined && removed > seqBefore;
}

export function recordsOf(state: CacheState, uid: string): RuntimeRecord[] {
  const records: RuntimeRecord[] = [];
  for (const id of state.pods.get(uid)?.ids ?? []) {
    const record = state.records.get(id);
    if (record !== undefined) records.push(record);
  }
  return records;
}

export function containersOf(state: CacheState, uid: string): ContainerRecord[] {
  return recordsOf(state, uid).filter((record) => record.kind === 'container');
}

export function containersIn(state: CacheState, sandbox: SandboxRecord): ContainerRecord[] {
  return containersOf(state, sandbox.pod.uid).filter(({ snapshot }) => snapshot.sandboxId === sandbox.snapshot.id);
}

/** Changes a container's snapshot; every change of one goes through here. */
export function setContainer(
  record: ContainerRecord,
  snapshot: ContainerSnapshot,
  groups: readonly ContainerGroup[],
  from: Provenance,
): void {
  const was = record.snapshot;
  invariant(was.state !== 'exited' || snapshot.state === 'exited', 'a container that has exited stays exited', () => ({
    id: record.id,
    state: snapshot.state,
    from: `${from.from} ${from.what}`,
  }));
  record.snapshot = snapshot;
  for (const group of groups) record.sources.set(group, from);
  if (snapshot.state === 'exited') {
    record.exitAnnouncedAt = undefined;
    record.pending = undefined;
  }
  const exit = record.sources.get('exit');
  invariant(
    exit === undefined || (snapshot.state === 'exited' && snapshot.finishedAt > 0),
    'a container whose exit is known has exited, and at a time',
    () => ({ id: record.id, state: snapshot.state, finishedAt: snapshot.finishedAt, exit: exit?.what }),
  );
}

export function setSandbox(
  record: SandboxRecord,
  snapshot: SandboxSnapshot,
  groups: readonly SandboxGroup[],
  from: Provenance,
): void {
  record.snapshot = snapshot;
  for (const group of groups) record.sources.set(group, from);
  if (snapshot.state === 'notReady') record.exitAnnouncedAt = undefined;
}
