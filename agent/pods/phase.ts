// The pod's phase, from the statuses of its containers: the kubelet's getPhase, and the rule that a phase never goes
// back. Pure.

import type { ContainerStatus, Pod, PodStatus } from '../../client/types.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { initRestartsAfterExit, restartsAfterExit } from '../model/restart-policy.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

export function isTerminalPhase(phase: string | undefined): phase is 'Succeeded' | 'Failed' {
  return phase === 'Succeeded' || phase === 'Failed';
}

export interface PhaseFacts {
  readonly pod: Pod;
  readonly regular: readonly ContainerStatus[];
  readonly init: readonly ContainerStatus[];
  /** Names of containers that run again regardless of restartPolicy: they were stopped for it, or are being started. */
  readonly restarting?: ReadonlySet<string>;
  /** No container of the pod runs, and none will be started again. */
  readonly over: boolean;
  /** The phase last reported. */
  readonly previous: string | undefined;
}

interface InitTally {
  pending: boolean;
  failed: boolean;
  sidecarPending: boolean;
  sidecarWaiting: boolean;
  sidecarRuns: boolean;
}

function tallyInit({ pod, init }: PhaseFacts): InitTally {
  const tally: InitTally = {
    pending: false,
    failed: false,
    sidecarPending: false,
    sidecarWaiting: false,
    sidecarRuns: false,
  };
  for (const container of pod.spec.initContainers ?? []) {
    const status = init.find((candidate) => candidate.name === container.name);
    const { running, terminated, waiting } = status?.state ?? {};
    const last = status?.lastState?.terminated;
    if (isSidecar(container)) {
      if (running !== undefined) {
        tally.sidecarRuns = true;
        if (status?.started !== true) tally.sidecarPending = true;
      } else if (terminated === undefined && (waiting === undefined || last === undefined)) {
        tally.sidecarPending = true;
        tally.sidecarWaiting = true;
      }
    } else if (terminated !== undefined) {
      if (terminated.exitCode !== 0 && !initRestartsAfterExit(pod, container, terminated.exitCode)) tally.failed = true;
    } else if (waiting !== undefined && last !== undefined) {
      if (last.exitCode !== 0 && !initRestartsAfterExit(pod, container, last.exitCode)) tally.failed = true;
    } else tally.pending = true;
  }
  return tally;
}

function phaseOfContainers(facts: PhaseFacts): PodPhase {
  const { pod, regular } = facts;
  const init = tallyInit(facts);
  if (init.failed) return 'Failed';
  let running = init.sidecarRuns ? 1 : 0;
  let waiting = init.sidecarWaiting ? 1 : 0;
  let unknown = 0;
  let begun = false;
  const ends: { exitCode: number; restarts: boolean }[] = [];
  for (const container of pod.spec.containers) {
    const status = regular.find((candidate) => candidate.name === container.name);
    const end = status?.state?.terminated ?? (status?.state?.waiting && status.lastState?.terminated);
    if (status?.state === undefined) unknown++;
    else if (status.state.running !== undefined) {
      running++;
      begun = true;
    } else if (end !== undefined) {
      begun = true;
      const restarts =
        facts.restarting?.has(container.name) === true || restartsAfterExit(pod, container, end.exitCode);
      ends.push({ exitCode: end.exitCode, restarts });
    } else waiting++;
  }
  if (init.pending || (init.sidecarPending && !begun)) return 'Pending';
  if (waiting > 0) return 'Pending';
  // A pod whose regular containers have exited counts as running until its sidecars have exited as well.
  if (unknown === 0 && running > 0) return 'Running';
  if (unknown === 0 && ends.length > 0) {
    if (!facts.over && ends.some((end) => end.restarts)) return 'Running';
    return ends.every((end) => end.exitCode === 0) ? 'Succeeded' : 'Failed';
  }
  return 'Pending';
}

/**
 * `status` as Running where an earlier agent wrote so: its status may arrive only after the first sync of a
 * pod whose one container has yet to begin again.
 */
export function keepPhase(status: PodStatus, written: PodStatus | undefined): PodStatus {
  return status.phase === 'Pending' && written?.phase === 'Running' ? { ...status, phase: 'Running' } : status;
}

/** The phase to report. Succeeded and Failed are final; Running never becomes Pending. */
export function computePhase(facts: PhaseFacts): PodPhase {
  if (isTerminalPhase(facts.previous)) return facts.previous;
  const phase = phaseOfContainers(facts);
  if (facts.over && !isTerminalPhase(phase)) return 'Failed';
  if (phase === 'Pending' && facts.previous === 'Running') return 'Running';
  return phase;
}
