// Results of our own calls as input of the cache. The worker that made them expects them, so they change
// records without a lifecycle event and leave the pod's entry fresh. A failed call leaves it stale: what a
// deadline or a broken connection cut short may have happened all the same.

import { invariant } from '../../../lib/invariant.ts';
import type { CallInput } from './inputs.ts';
import type { ContainerRecord, SandboxRecord } from './records.ts';
import {
  addContainer,
  addSandbox,
  containersIn,
  containersOf,
  drop,
  isGone,
  makeStale,
  type Step,
  setContainer,
  setSandbox,
  source,
} from './step.ts';

type Began = Extract<CallInput, { readonly kind: 'callBegan' }>;
type Ran = Extract<CallInput, { readonly call: 'RunPodSandbox'; readonly kind: 'callDone' }>;
type Created = Extract<CallInput, { readonly call: 'CreateContainer'; readonly kind: 'callDone' }>;
type Done = Exclude<Extract<CallInput, { readonly kind: 'callDone' }>, Ran | Created>;
type Failed = Extract<CallInput, { readonly kind: 'callFailed' }>;

export function applyCall(step: Step, input: CallInput): void {
  if (input.kind === 'callFailed') {
    failed(step, input);
    return;
  }
  if (input.kind === 'callBegan') {
    began(step, input);
    return;
  }
  if (input.call === 'RunPodSandbox') {
    ranPodSandbox(step, input);
    return;
  }
  if (input.call === 'CreateContainer') {
    createdContainer(step, input);
    return;
  }
  done(step, input);
}

const PENDING = {
  StartContainer: 'start',
  StopContainer: 'stop',
  StopPodSandbox: 'stop',
  RemoveContainer: 'remove',
  RemovePodSandbox: 'remove',
} as const;

function began(step: Step, { call, id }: Began): void {
  const record = step.state.records.get(id);
  if (record === undefined) return;
  record.pending = PENDING[call];
  // The containers in a sandbox go with it.
  if (record.kind !== 'sandbox' || call !== 'RemovePodSandbox') return;
  for (const container of containersIn(step.state, record)) container.pending = 'remove';
}

function ranPodSandbox(step: Step, { seqBefore, pod, sandbox, networkKnown, config }: Ran): void {
  // Its removal was announced before the call was answered.
  if (isGone(step, sandbox.id, seqBefore)) {
    makeStale(step, pod);
    return;
  }
  const from = source(step, 'call', 'RunPodSandbox');
  const known = step.state.records.get(sandbox.id);
  const record = known?.kind === 'sandbox' ? known : addSandbox(step, pod, sandbox, ['identity', 'state'], from);
  record.config = config;
  const { state } = record.snapshot;
  // A runtime may list a sandbox before its network is complete, as not ready: what was read during the call is older than
  // the answer. Whether it has ended since, the next observation reads.
  if (state === 'notReady' && record.sources.get('state')?.from !== 'call') {
    setSandbox(record, { ...record.snapshot, state: 'ready' }, ['state'], from);
    makeStale(step, pod);
  }
  if (!networkKnown || record.sources.has('network')) return;
  const { ips, hostNetwork } = sandbox;
  setSandbox(record, { ...record.snapshot, ips, hostNetwork }, ['network'], from);
}

function createdContainer(step: Step, { seqBefore, pod, container }: Created): void {
  if (isGone(step, container.id, seqBefore)) {
    makeStale(step, pod);
    return;
  }
  const from = source(step, 'call', 'CreateContainer');
  const known = step.state.records.get(container.id);
  if (known?.kind === 'container') {
    // A list or an event came before the answer.
    setContainer(known, { ...known.snapshot, sandboxId: container.sandboxId }, [], from);
    return;
  }
  const older = containersOf(step.state, pod.uid).filter(({ snapshot }) => snapshot.name === container.name);
  invariant(
    older.every(({ snapshot }) => snapshot.restartCount < container.restartCount),
    'a new instance of a container counts more restarts than those before it',
    () => ({ id: container.id, name: container.name, restartCount: container.restartCount, pod: pod.name }),
  );
  addContainer(step, pod, container, ['identity', 'state'], from);
}

function done(step: Step, { call, id }: Done): void {
  const record = step.state.records.get(id);
  if (call === 'RemoveContainer' || call === 'RemovePodSandbox') {
    if (record?.kind === 'sandbox') for (const each of containersIn(step.state, record)) drop(step, each.id);
    drop(step, id);
    return;
  }
  if (record === undefined) return;
  if (record.kind === 'sandbox') {
    if (call === 'StopPodSandbox') stoppedSandbox(step, record);
    return;
  }
  if (call === 'StartContainer') {
    started(step, record);
    return;
  }
  if (call === 'StopContainer') record.pending = undefined;
  // A stop ends a process if there is one; limits are what the runtime made of them: both are in the status.
  if (record.snapshot.state !== 'exited' || call === 'UpdateContainerResources') record.dueSeq = step.seq;
}

function started(step: Step, record: ContainerRecord): void {
  record.pending = undefined;
  record.evidenceSeq = step.seq;
  const { state } = record.snapshot;
  // Otherwise an event or a status came before the answer.
  if (state !== 'created' && state !== 'unknown') return;
  const snapshot = { ...record.snapshot, state: 'running', startedAt: step.now } as const;
  setContainer(record, snapshot, ['state'], source(step, 'call', 'StartContainer'));
}

function stoppedSandbox(step: Step, record: SandboxRecord): void {
  record.pending = undefined;
  for (const container of containersIn(step.state, record)) {
    if (container.snapshot.state !== 'exited') container.dueSeq = step.seq;
  }
  if (record.snapshot.state === 'notReady') return;
  setSandbox(record, { ...record.snapshot, state: 'notReady' }, ['state'], source(step, 'call', 'StopPodSandbox'));
}

function failed(step: Step, { pod, id }: Failed): void {
  makeStale(step, pod);
  const record = id === undefined ? undefined : step.state.records.get(id);
  if (record === undefined) return;
  record.pending = undefined;
  record.dueSeq = step.seq;
  if (record.kind === 'sandbox') for (const each of containersIn(step.state, record)) each.pending = undefined;
}
