// What a job's podFailurePolicy makes of a pod that failed: the first rule that matches decides. Pure.

import type {
  PodFailurePolicy,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyOnPodConditionsPattern,
  PodFailurePolicyRule,
} from 'kubernetes-types/batch/v1';
import type { ContainerStatus, Pod } from '../../../client/types.ts';

export interface FailureVerdict {
  /** Whether the failure counts towards the limits. */
  readonly counts: boolean;
  /** The whole index has failed, whatever its limit. */
  readonly failsIndex?: true;
  /** The whole job has failed, for this reason. */
  readonly failsJob?: string;
}

const COUNTS: FailureVerdict = { counts: true };

/** Without a policy, and where no rule matches, a failure counts. */
export function matchFailurePolicy(policy: PodFailurePolicy | undefined, pod: Pod): FailureVerdict {
  for (const [index, rule] of (policy?.rules ?? []).entries()) {
    const why = matchedBy(rule, pod);
    if (why === undefined) continue;
    const verdict = verdictOf(rule.action, `${why} matching ${rule.action} rule at index ${index}`);
    if (verdict !== undefined) return verdict;
  }
  return COUNTS;
}

/** An action that this version does not know is passed over. */
function verdictOf(action: string, message: string): FailureVerdict | undefined {
  if (action === 'Ignore') return { counts: false };
  if (action === 'FailIndex') return { counts: true, failsIndex: true };
  if (action === 'FailJob') return { counts: true, failsJob: message };
  return action === 'Count' ? COUNTS : undefined;
}

/** What of the pod the rule matches, in upstream's words. */
function matchedBy({ onExitCodes, onPodConditions }: PodFailurePolicyRule, pod: Pod): string | undefined {
  const { namespace, name } = pod.metadata;
  if (onExitCodes !== undefined) {
    const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
    const found = exitOf(containerStatuses, onExitCodes) ?? exitOf(initContainerStatuses, onExitCodes);
    if (found === undefined) return undefined;
    return `Container ${found.name} for pod ${namespace}/${name} failed with exit code ${found.code}`;
  }
  const type = conditionOf(pod, onPodConditions ?? []);
  return type === undefined ? undefined : `Pod ${namespace}/${name} has condition ${type}`;
}

/** The first container that failed with an exit code of the rule. One that still runs has none. */
function exitOf(
  statuses: readonly ContainerStatus[],
  { containerName, operator, values }: PodFailurePolicyOnExitCodesRequirement,
): { readonly name: string; readonly code: number } | undefined {
  for (const { name, state } of statuses) {
    const code = state?.terminated?.exitCode ?? 0;
    if (code === 0 || (containerName !== undefined && containerName !== name)) continue;
    const listed = values.includes(code);
    if ((operator === 'In' && listed) || (operator === 'NotIn' && !listed)) return { name, code };
  }
  return undefined;
}

function conditionOf({ status }: Pod, patterns: readonly PodFailurePolicyOnPodConditionsPattern[]): string | undefined {
  return status?.conditions?.find((condition) =>
    patterns.some((pattern) => pattern.type === condition.type && pattern.status === condition.status),
  )?.type;
}
