// The report: PodStatus from the pod, what was observed and what is going on. computePodStatus is pure; writing it is
// the status manager's part.

import type { Pod, PodStatus } from '../../client/types.ts';
import { type EpochMs, epochMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sortPodIPs } from '../model/pod-ips.ts';
import { podQOSClass } from '../model/pod-resources.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import type { ProbeResults } from '../ports/probes.ts';
import type { PodSnapshot } from '../ports/runtime.ts';
import { computeConditions } from './conditions.ts';
import {
  computeContainerStatuses,
  endedContainerStatuses,
  type ReportedContainerStatus,
  type WaitingReason,
} from './container-status.ts';
import { limitMessages } from './message-limits.ts';
import { computePhase, isTerminalPhase } from './phase.ts';
import { type ResizeReport, resizeField } from './resize/resize-status.ts';
import { podSandboxChanged } from './sandbox-changed.ts';

export interface PodStatusFacts {
  readonly pod: Pod;
  /** As the runtime calls itself ("containerd", "cri-o"): ids are written with it. */
  readonly runtimeName: string;
  readonly snapshot: PodSnapshot;
  readonly probes: ProbeResults;
  /** The status last computed here or, after a restart of the agent, read from the API. */
  readonly previous: PodStatus | undefined;
  /** Addresses of the node, primary first. */
  readonly hostIPs: readonly string[];
  /** Why a container's start waits or failed, by container name. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Names of containers that run again regardless of restartPolicy: they were stopped for it, or are being started. */
  readonly restarting?: ReadonlySet<string>;
  /** No container of the pod runs, and none will be started again. */
  readonly over: boolean;
  /** The agent ends the pod for a reason of its own (eviction, deadline, admission): it is Failed, and this is why. */
  readonly failure?: PodEnd;
  /** The state of a resize of the pod. */
  readonly resize?: ResizeReport | undefined;
  /** Epoch ms. */
  readonly now: EpochMs;
}

/** Addresses of the pod, primary first. They stay reported after the sandbox is gone. */
export function podIPsOf({ pod, snapshot, previous, hostIPs }: PodStatusFacts): readonly string[] {
  if (pod.spec.hostNetwork === true) return hostIPs;
  const current = snapshot.sandboxes.find((sandbox) => sandbox.state === 'ready')?.ips ?? [];
  if (current.length > 0) return sortPodIPs(current, hostIPs);
  return (previous?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));
}

/** Init containers have the order of their spec, all others that of their names. */
function sortedByName(statuses: readonly ReportedContainerStatus[]): ReportedContainerStatus[] {
  return [...statuses].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function anyRunning(statuses: readonly ReportedContainerStatus[]): boolean {
  return statuses.some((status) => status.state?.running !== undefined);
}

function statusesOf(facts: PodStatusFacts) {
  const { pod, previous, over } = facts;
  const { spec } = pod;
  const regular = computeContainerStatuses(facts, 'container', spec.containers, previous?.containerStatuses);
  const init = computeContainerStatuses(facts, 'init', spec.initContainers ?? [], previous?.initContainerStatuses);
  const ephemeral = computeContainerStatuses(
    facts,
    'ephemeral',
    spec.ephemeralContainers ?? [],
    previous?.ephemeralContainerStatuses,
  );
  const now = over ? endedContainerStatuses(regular, init) : { regular, init };
  return { regular: now.regular, init: now.init, ephemeral };
}

export function computePodStatus(facts: PodStatusFacts): PodStatus {
  const { pod, snapshot, previous, hostIPs, now } = facts;
  // What has succeeded cannot fail any more, whatever comes over it before it is gone.
  const failure = previous?.phase === 'Succeeded' ? undefined : facts.failure;
  const { regular, init, ephemeral } = statusesOf(facts);
  // One that the runtime does not list any more is reported as terminated, and may well run; one whose start failed after it began
  // is reported as waiting, and runs until it is stopped.
  const runs = snapshot.containers.some(({ state }) => state === 'unknown' || state === 'running');
  const alive = runs || anyRunning(regular) || anyRunning(init) || anyRunning(ephemeral);
  let phase = computePhase({ ...facts, regular, init, previous: previous?.phase });
  // The readiness conditions change before the phase, which waits for the last container.
  const conditionPhase = failure?.unreadyAtOnce === true ? 'Failed' : phase;
  if (failure !== undefined) phase = 'Failed';
  // Someone may take a terminal phase as "its resources are free": never say so while a container still runs, or may yet.
  const before = previous?.phase;
  if (
    (alive || !facts.over) &&
    isTerminalPhase(phase) &&
    (before === undefined || before === 'Pending' || before === 'Running')
  ) {
    phase = before ?? 'Pending';
  }
  const sandboxReady = podSandboxChanged(pod, snapshot).kind === 'keep';
  const ips = podIPsOf(facts);
  const samePhase = previous !== undefined && previous.phase === phase;
  // Why the pod is Failed is reported with that phase, not before.
  const ended = isTerminalPhase(phase) ? failure : undefined;
  const reason = ended?.reason ?? (samePhase ? previous.reason : undefined);
  const message = ended?.message ?? (samePhase ? previous.message : undefined);
  const startTime = previous?.startTime ?? pod.status?.startTime ?? rfc3339(epochMs(now));
  const { generation } = pod.metadata;
  // What has ended is not resized any more.
  const resize = isTerminalPhase(phase) ? undefined : facts.resize;
  const resizing = resizeField(resize);
  return limitMessages(pod.spec, {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase,
    conditions: computeConditions({
      pod,
      phase: isTerminalPhase(phase) ? phase : conditionPhase,
      regular,
      init,
      sandboxReady,
      previous,
      disruption: ended?.disruption,
      resize,
      now,
    }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(hostIPs[0] === undefined ? {} : { hostIP: hostIPs[0], hostIPs: hostIPs.map((ip) => ({ ip })) }),
    ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    startTime,
    ...(init.length === 0 ? {} : { initContainerStatuses: init }),
    containerStatuses: sortedByName(regular),
    qosClass: podQOSClass(pod),
    ...(resizing === undefined ? {} : { resize: resizing }),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: sortedByName(ephemeral) }),
  });
}

/** The status of a pod that the node refuses to run: Failed, with the reason, and nothing else. */
export function rejectedStatus(pod: Pod, refusal: WaitingReason, now: EpochMs): PodStatus {
  const { generation } = pod.metadata;
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase: 'Failed',
    reason: refusal.reason,
    message: `Pod was rejected: ${refusal.message}`,
    qosClass: podQOSClass(pod),
    startTime: pod.status?.startTime ?? rfc3339(epochMs(now)),
  };
}
