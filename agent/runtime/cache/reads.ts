// What CRI's answers say of the runtime: statuses of one object, lists of a pod or of everything. An answer is as old
// as its request: what was learned after that counts more (precedence.ts).

import type { EpochMs } from '../../../lib/clock.ts';
import { invariant } from '../../../lib/invariant.ts';
import type { PodRef, SandboxSnapshot } from '../../ports/runtime.ts';
import { sameExit } from './events.ts';
import type { CacheChange, ListInput, ReadContainer, ReadSandbox, StatusInput } from './inputs.ts';
import { containerVerdict, sandboxVerdict } from './precedence.ts';
import type { ContainerGroup, ContainerRecord, Provenance, RuntimeRecord, SandboxRecord } from './records.ts';
import {
  addContainer,
  addSandbox,
  drop,
  emit,
  isGone,
  makeStale,
  markRead,
  recordsOf,
  type Step,
  setContainer,
  setSandbox,
  source,
} from './step.ts';

type ContainerState = ContainerRecord['snapshot']['state'];

const FULL: readonly ContainerGroup[] = ['identity', 'state', 'details', 'resources'];
const FULL_EXITED: readonly ContainerGroup[] = [...FULL, 'exit'];

/** The change that a worker is woken for; created and unknown are nothing to act on. */
function newsOf(state: ContainerState): CacheChange['type'] | undefined {
  if (state === 'running') return 'started';
  return state === 'exited' ? 'died' : undefined;
}

function stateSeq(record: RuntimeRecord): number {
  return record.sources.get('state')?.seq ?? 0;
}

// ---------------------------------------------------------------- statuses

export function applyStatus(step: Step, input: StatusInput): void {
  const { id, seqBefore } = input;
  if (isGone(step, id, seqBefore)) return;
  const record = step.state.records.get(id);
  const read = input.kind === 'containerStatus' ? input.container : input.sandbox;
  if (read === undefined) {
    if (record !== undefined && record.evidenceSeq <= seqBefore) vanished(step, record);
    return;
  }
  if (input.kind === 'containerStatus') {
    if (input.container === undefined || record?.kind === 'sandbox') return;
    containerStatus(step, record, input.container, seqBefore);
  } else {
    if (input.sandbox === undefined || record?.kind === 'container') return;
    sandboxStatus(step, record, input.sandbox, seqBefore);
  }
}

function containerStatus(
  step: Step,
  known: ContainerRecord | undefined,
  { pod, snapshot: read, status }: ReadContainer,
  seqBefore: number,
): void {
  const from = source(step, 'status', 'ContainerStatus');
  const groups = read.state === 'exited' ? FULL_EXITED : FULL;
  if (known === undefined) {
    // Made by another agent, or before this one started.
    if (pod === undefined) return;
    const record = addContainer(step, pod, read, groups, from);
    takeStatus(record, read.state, seqBefore, status);
    makeStale(step, pod);
    const news = newsOf(read.state);
    if (news !== undefined) emit(step, news, record, read.state === 'exited' ? read.finishedAt : undefined);
    return;
  }
  const was = known.snapshot;
  const exitFrom = known.sources.get('exit')?.from;
  const verdict = containerVerdict(was.state, read.state, seqBefore >= stateSeq(known));
  // An answer older than one that was taken in.
  const stale = verdict === 'agree' && known.statusSeqBefore !== undefined && seqBefore < known.statusSeqBefore;
  if (verdict === 'ignore' || stale) return;
  known.evidenceSeq = Math.max(known.evidenceSeq, seqBefore);
  const announcedAt = known.exitAnnouncedAt;
  // Due since a call of ours, or while one is under way: it shows the outcome of that.
  const own = known.dueSeq > 0 || (known.pending === 'start' && read.state === 'running');
  // ContainerStatus does not say which sandbox it is in.
  setContainer(known, { ...read, sandboxId: was.sandboxId }, groups, from);
  takeStatus(known, read.state, seqBefore, status);
  if (was.state === read.state) {
    if (exitFrom === 'event' && !sameExit(was, read)) emit(step, 'changed', known);
    return;
  }
  if (!own) makeStale(step, known.pod);
  advanced(step, known, announcedAt);
}

function takeStatus(
  record: ContainerRecord,
  state: ContainerState,
  seqBefore: number,
  status: ContainerRecord['status'],
): void {
  record.statusState = state;
  record.statusSeqBefore = seqBefore;
  if (seqBefore >= record.dueSeq || state === 'exited') record.dueSeq = 0;
  record.status = state === 'running' ? status : undefined;
}

/** A container's state has changed: reported to the worker, unless it is being started. */
function advanced(step: Step, record: ContainerRecord, announcedAt: EpochMs | undefined): void {
  const { state } = record.snapshot;
  if (state === 'running' && record.pending === 'start') return;
  if (state === 'unknown') {
    // Its exit was reported by an event, and the runtime has no more about it.
    if (announcedAt === undefined) return;
    record.exitAnnouncedAt = undefined;
    emit(step, 'died', record, announcedAt);
    return;
  }
  const news = newsOf(state);
  if (news !== undefined) emit(step, news, record, announcedAt);
}

function sandboxStatus(
  step: Step,
  known: SandboxRecord | undefined,
  { pod, snapshot: read }: ReadSandbox,
  seqBefore: number,
): void {
  const from = source(step, 'status', 'PodSandboxStatus');
  if (known === undefined) {
    if (pod === undefined) return;
    const record = addSandbox(step, pod, read, ['identity', 'state', 'network'], from);
    record.statusSeqBefore = seqBefore;
    makeStale(step, pod);
    emit(step, 'changed', record);
    return;
  }
  if (known.statusSeqBefore !== undefined && seqBefore < known.statusSeqBefore) return;
  known.evidenceSeq = Math.max(known.evidenceSeq, seqBefore);
  known.statusSeqBefore = seqBefore;
  const { state } = known.snapshot;
  const announcedAt = known.exitAnnouncedAt;
  const verdict = sandboxVerdict(state, read.state, seqBefore >= stateSeq(known));
  // Addresses, once known, are the sandbox's for good; a status after its end does not show them any more.
  const network = known.snapshot.ips.length > 0 ? known.snapshot : read;
  const next = { ...read, ips: network.ips, hostNetwork: network.hostNetwork };
  const groups = network === read ? (['identity', 'network'] as const) : (['identity'] as const);
  setSandbox(known, verdict === 'ignore' ? { ...next, state } : next, groups, from);
  if (verdict !== 'take') return;
  known.sources.set('state', from);
  makeStale(step, known.pod);
  emit(step, 'changed', known, announcedAt);
}

/** Gone without a completed call of ours, and without an event. */
function vanished(step: Step, record: RuntimeRecord): void {
  drop(step, record.id);
  if (record.pending === 'remove') return;
  makeStale(step, record.pod);
  if (record.kind === 'sandbox') {
    emit(step, 'changed', record);
    return;
  }
  if (record.snapshot.state === 'running') emit(step, 'died', record, record.exitAnnouncedAt);
  emit(step, 'removed', record);
}

// ---------------------------------------------------------------- lists

export function applyList(step: Step, input: ListInput): void {
  const { seqBefore, beganAt, pod } = input;
  const shown = new Set<string>();
  for (const { pod: owner, snapshot } of input.sandboxes) {
    shown.add(snapshot.id);
    if (!isGone(step, snapshot.id, seqBefore)) listedSandbox(step, input, owner, snapshot);
  }
  for (const item of input.containers) {
    shown.add(item.snapshot.id);
    if (!isGone(step, item.snapshot.id, seqBefore)) listedContainer(step, input, item);
  }
  const candidates = pod === undefined ? [...step.state.records.values()] : recordsOf(step.state, pod.uid);
  for (const record of candidates) {
    if (!shown.has(record.id) && record.evidenceSeq <= seqBefore) vanished(step, record);
  }
  for (const { id, evidenceSeq } of pod === undefined ? step.state.records.values() : recordsOf(step.state, pod.uid)) {
    invariant(
      shown.has(id) || evidenceSeq > seqBefore,
      'no record outlives a complete list that does not show it',
      () => ({
        id,
        evidenceSeq,
        seqBefore,
      }),
    );
  }
  if (pod !== undefined) {
    markRead(step, pod, seqBefore, beganAt);
    return;
  }
  if (step.state.read === undefined || step.state.read.seqBefore <= seqBefore) step.state.read = { seqBefore, beganAt };
  // Removes entries of pods without records; a pod with incomplete records keeps its entry.
  for (const [uid, entry] of step.state.pods) {
    if (entry.ids.size === 0 && entry.staleSeq <= seqBefore) step.state.pods.delete(uid);
  }
}

/** Not in the cache before the list: reported to the pod's worker unless the list is its own, or the cache was empty. */
function discovered(step: Step, { pod }: ListInput, record: RuntimeRecord): void {
  if (pod !== undefined || step.state.read === undefined) return;
  makeStale(step, record.pod);
  const news = record.kind === 'sandbox' ? 'changed' : newsOf(record.snapshot.state);
  if (news !== undefined) emit(step, news, record);
}

function listedSandbox(step: Step, input: ListInput, pod: PodRef, listed: SandboxSnapshot): void {
  const from = source(step, 'list', 'ListPodSandbox');
  const known = step.state.records.get(listed.id);
  if (known === undefined) {
    discovered(step, input, addSandbox(step, pod, listed, ['identity', 'state'], from));
    return;
  }
  if (known.kind !== 'sandbox') return;
  known.evidenceSeq = Math.max(known.evidenceSeq, input.seqBefore);
  const { state, ips, hostNetwork } = known.snapshot;
  const verdict = sandboxVerdict(state, listed.state, input.seqBefore >= stateSeq(known));
  if (verdict === 'take' || known.sources.get('identity')?.from === 'call') {
    const next = { ...listed, ips, hostNetwork, state: verdict === 'take' ? listed.state : state };
    const announcedAt = known.exitAnnouncedAt;
    setSandbox(known, next, verdict === 'take' ? ['identity', 'state'] : ['identity'], from);
    if (verdict === 'take') {
      stateDiffers(step, input, known);
      emit(step, 'changed', known, announcedAt);
    }
  }
}

/** A list of everything that shows something else than is known: the events were not complete. */
function stateDiffers(step: Step, { pod }: ListInput, record: RuntimeRecord): void {
  if (pod === undefined) makeStale(step, record.pod);
}

function listedContainer(
  step: Step,
  input: ListInput,
  { pod, snapshot: listed }: ListInput['containers'][number],
): void {
  const from = source(step, 'list', 'ListContainers');
  const known = step.state.records.get(listed.id);
  if (known === undefined) {
    discovered(step, input, addContainer(step, pod, listed, ['identity', 'state'], from));
    return;
  }
  if (known.kind !== 'container') return;
  known.evidenceSeq = Math.max(known.evidenceSeq, input.seqBefore);
  identityFromList(known, listed, from);
  const was = known.snapshot;
  const verdict = containerVerdict(was.state, listed.state, input.seqBefore >= stateSeq(known));
  if (verdict === 'agree') {
    // CRI shows the end now that an event announced: its own words of it are there to be read.
    if (was.state === 'exited' && known.sources.get('exit')?.from === 'event') dueAfterAnnouncement(step, known);
    return;
  }
  if (verdict === 'ignore') return;
  const announcedAt = known.exitAnnouncedAt;
  setContainer(known, { ...was, state: listed.state }, ['state'], from);
  if (listed.state === 'running' && known.pending === 'start') return;
  stateDiffers(step, input, known);
  const news = newsOf(listed.state);
  if (news !== undefined) emit(step, news, known, announcedAt);
}

function dueAfterAnnouncement(step: Step, record: ContainerRecord): void {
  if (record.statusState !== 'exited') record.dueSeq = step.seq;
}

/** A list has the creation time, which our own call lacks, and the sandbox, which a status lacks. */
function identityFromList(record: ContainerRecord, listed: ContainerRecord['snapshot'], from: Provenance): void {
  const { snapshot } = record;
  if (record.sources.get('identity')?.from === 'call') {
    const { sandboxId, name, type, restartCount, hash, createdAt, image } = listed;
    const next = { ...snapshot, sandboxId, name, type, restartCount, hash, createdAt, image };
    setContainer(record, next, ['identity'], from);
  } else if (snapshot.sandboxId !== listed.sandboxId) {
    setContainer(record, { ...snapshot, sandboxId: listed.sandboxId }, [], from);
  }
}
