// The Node's conditions from the node's health, in the kubelet's words (pkg/kubelet/nodestatus/setters.go). Pure.

import type { NodeCondition } from 'kubernetes-types/core/v1';
import { aggregate } from '../../lib/aggregate.ts';
import { cutText, MAX_OUTPUT_BYTES } from '../../lib/cut.ts';
import type { RuntimeConditionSnapshot } from '../ports/runtime.ts';

/** A check of the agent's own that fails. */
export interface FailedCheck {
  readonly name: string;
  readonly message: string;
}

/** What is known of the node's parts at one moment. */
export interface NodeHealth {
  /** Set while the runtime does not answer, or has not yet: the whole sentence. */
  readonly runtimeDown?: string;
  /** What the agent's own checks complain of (PLEG, sync loop): whole sentences, which may change all the time. */
  readonly failedChecks?: readonly FailedCheck[];
  readonly runtime?: RuntimeConditionSnapshot;
  /** The runtime's network condition, and the agent's where it runs CNI; each one that is not ok is reported. */
  readonly networks: readonly RuntimeConditionSnapshot[];
  /** Set while the machine is going down: the whole sentence. */
  readonly shutdown?: string | undefined;
}

/** The node's pressure, by the eviction manager. */
export interface NodePressure {
  readonly memory: boolean;
  readonly disk: boolean;
  readonly pid: boolean;
}

/** Everything that keeps the node from being Ready; empty when it is. */
export function notReadyBecause(health: NodeHealth): readonly string[] {
  const reasons: string[] = [];
  if (health.runtimeDown !== undefined) reasons.push(health.runtimeDown);
  for (const { message } of health.failedChecks ?? []) reasons.push(message);
  if (health.runtime !== undefined && !health.runtime.ok) {
    reasons.push(`container runtime not ready: ${inBrief('RuntimeReady', health.runtime)}`);
  }
  const network = health.networks.find((candidate) => !candidate.ok);
  if (network !== undefined) {
    reasons.push(`container runtime network not ready: ${inBrief('NetworkReady', network)}`);
  }
  if (health.shutdown !== undefined) reasons.push(health.shutdown);
  return reasons;
}

function inBrief(type: string, condition: RuntimeConditionSnapshot): string {
  // The runtime may quote whatever a plugin printed.
  return `${type}=false reason:${condition.reason} message:${cutText(condition.message, MAX_OUTPUT_BYTES)}`;
}

interface ConditionState {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

function conditionStates(health: NodeHealth, pressure: NodePressure): readonly ConditionState[] {
  const because = notReadyBecause(health);
  const pressed = (
    type: string,
    holds: boolean,
    yes: readonly [reason: string, message: string],
    no: readonly [reason: string, message: string],
  ): ConditionState => {
    const [reason, message] = holds ? yes : no;
    return { type, status: holds ? 'True' : 'False', reason, message };
  };
  return [
    pressed(
      'MemoryPressure',
      pressure.memory,
      ['KubeletHasInsufficientMemory', 'kubelet has insufficient memory available'],
      ['KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
    ),
    pressed(
      'DiskPressure',
      pressure.disk,
      ['KubeletHasDiskPressure', 'kubelet has disk pressure'],
      ['KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
    ),
    pressed(
      'PIDPressure',
      pressure.pid,
      ['KubeletHasInsufficientPID', 'kubelet has insufficient PID available'],
      ['KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
    ),
    because.length === 0
      ? { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
      : {
          type: 'Ready',
          status: 'False',
          reason: 'KubeletNotReady',
          message: aggregate(because),
        },
  ];
}

/**
 * The conditions after `known`. The heartbeat is `now` (RFC 3339, seconds); the transition time moves only when a
 * status does. Conditions of other components are left out: a merge keeps them.
 */
export function nextConditions(
  known: readonly NodeCondition[],
  health: NodeHealth,
  pressure: NodePressure,
  now: string,
): NodeCondition[] {
  return conditionStates(health, pressure).map((state) => {
    const before = known.find(({ type }) => type === state.type);
    const same = before?.status === state.status;
    return { ...state, lastHeartbeatTime: now, lastTransitionTime: (same && before.lastTransitionTime) || now };
  });
}

/** The event of a change of status: reason and message. */
export function transitionEvent(condition: NodeCondition, nodeName: string): { reason: string; message: string } {
  const reason =
    condition.type === 'Ready'
      ? condition.status === 'True'
        ? 'NodeReady'
        : 'NodeNotReady'
      : (condition.reason ?? '').replace(/^Kubelet/, 'Node');
  return { reason, message: `Node ${nodeName} status is now: ${reason}` };
}

/**
 * The events of a newly started agent: each pressure condition is recorded as a change from unknown. Readiness is recorded
 * only when it changes.
 */
export function startEvents(
  conditions: readonly NodeCondition[],
  nodeName: string,
): readonly { reason: string; message: string }[] {
  return conditions.filter(({ type }) => type !== 'Ready').map((condition) => transitionEvent(condition, nodeName));
}
