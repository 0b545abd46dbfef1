// Whether a container that has ended may run again: the pod's restartPolicy, a container's own one and its
// restartPolicyRules (KEP-5307). Pure.

import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import type { ContainerSnapshot } from '../ports/runtime.ts';

/** A rule about exit codes: `Restart` when the code is, or is not, among the values. */
export interface ContainerRestartRule {
  readonly action: string;
  readonly exitCodes?: { readonly operator: string; readonly values?: readonly number[] };
}

/** A container with the fields that are newer than the generated types. */
export type RestartableContainer = (Container | EphemeralContainer) & {
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
};

function ruleMatches(rule: ContainerRestartRule, exitCode: number): boolean {
  const codes = rule.exitCodes;
  if (codes === undefined) return false;
  const listed = (codes.values ?? []).includes(exitCode);
  return codes.operator === 'In' ? listed : codes.operator === 'NotIn' && !listed;
}

/** Whether a container that exited with `exitCode` runs again by restartPolicy. */
export function restartsAfterExit(pod: Pod, container: RestartableContainer, exitCode: number): boolean {
  if (container.restartPolicy !== undefined) {
    const rule = container.restartPolicyRules?.find((candidate) => ruleMatches(candidate, exitCode));
    if (rule?.action === 'Restart') return true;
  }
  switch (container.restartPolicy ?? pod.spec.restartPolicy ?? 'Always') {
    case 'Never':
      return false;
    case 'OnFailure':
      return exitCode !== 0;
    default:
      return true;
  }
}

/**
 * Whether a container that a probe has stopped runs again, however it then ends. Rules about exit codes have no say in
 * it: when it is decided, there is none yet.
 */
export function restartsAfterProbe(pod: Pod, container: RestartableContainer): boolean {
  return (container.restartPolicy ?? pod.spec.restartPolicy) !== 'Never';
}

/**
 * An init container that failed runs again unless restartPolicy is Never; one that succeeded never does. A sidecar always
 * does.
 */
export function initRestartsAfterExit(pod: Pod, container: RestartableContainer, exitCode: number): boolean {
  return isSidecar(container) || (exitCode !== 0 && restartsAfterExit(pod, container, exitCode));
}

/**
 * Whether a regular container should be started, given its newest instance: the kubelet's ShouldContainerBeRestarted.
 * Nothing of a pod that is being deleted starts.
 */
export function shouldContainerBeRestarted(
  pod: Pod,
  container: RestartableContainer,
  newest: Pick<ContainerSnapshot, 'state' | 'exitCode'> | undefined,
): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (newest === undefined) return true;
  if (newest.state === 'running') return false;
  if (newest.state === 'exited') return restartsAfterExit(pod, container, newest.exitCode);
  return true;
}
