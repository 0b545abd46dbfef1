// The pod conditions that the kubelet owns: PodReadyToStartContainers, Initialized, Ready, ContainersReady and
// PodScheduled, with its reasons and messages. Conditions of other writers are carried along untouched. Pure.

import type { Container, ContainerStatus, Pod, PodCondition, PodStatus } from '../../client/types.ts';
import { type EpochMs, epochMs } from '../../lib/clock.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import { TERMINATION_BY_KUBELET } from '../model/disruption.ts';
import type { PodEnd } from '../ports/pod-end.ts';
import { goList } from './format.ts';
import type { PodPhase } from './phase.ts';
import { type ResizeReport, resizeConditions } from './resize/resize-status.ts';

/** Condition types that only the kubelet writes. */
export const OWNED_CONDITIONS: ReadonlySet<string> = new Set([
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'PodResizePending',
  'PodResizeInProgress',
]);

/** DisruptionTarget has many writers; only the reasons that the kubelet sets are its own. */
export function isOwnedCondition({ type, reason }: PodCondition): boolean {
  return OWNED_CONDITIONS.has(type) || (type === DISRUPTION_TARGET && reason === TERMINATION_BY_KUBELET);
}

const DISRUPTION_TARGET = 'DisruptionTarget';

export interface ConditionFacts {
  readonly pod: Pod;
  readonly phase: PodPhase;
  readonly regular: readonly ContainerStatus[];
  readonly init: readonly ContainerStatus[];
  /** The pod has the sandbox it needs, with its network. */
  readonly sandboxReady: boolean;
  readonly previous: PodStatus | undefined;
  /** Why the node itself ended the pod, if it did: becomes DisruptionTarget. */
  readonly disruption?: PodEnd['disruption'] | undefined;
  readonly resize?: ResizeReport | undefined;
  /** Epoch ms. */
  readonly now: EpochMs;
}

type Verdict = {
  readonly status: 'True' | 'False';
  readonly reason?: string;
  readonly message?: string;
  /** Where that is not the generation of the pod as it is now. */
  readonly observedGeneration?: number;
};

function messageOf(unknown: readonly string[], word: string, bad: readonly string[]): string {
  const parts: string[] = [];
  if (unknown.length > 0) parts.push(`containers with unknown status: ${goList(unknown)}`);
  if (bad.length > 0) parts.push(`containers with ${word} status: ${goList(bad)}`);
  return parts.join(', ');
}

function sort(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  good: (status: ContainerStatus, container: Container) => boolean,
): { unknown: string[]; bad: string[] } {
  const unknown: string[] = [];
  const bad: string[] = [];
  for (const container of containers) {
    const status = statuses.find((candidate) => candidate.name === container.name);
    if (status === undefined) unknown.push(container.name);
    else if (!good(status, container)) bad.push(container.name);
  }
  return { unknown, bad };
}

function initialized({ pod, phase, regular, init }: ConditionFacts): Verdict {
  const containers = pod.spec.initContainers ?? [];
  const { unknown, bad } = sort(containers, init, (status, container) =>
    isSidecar(container) ? status.started === true : status.ready,
  );
  if (phase === 'Succeeded' && unknown.length === 0) return { status: 'True', reason: 'PodCompleted' };
  // A regular container that has been started proves it, even where a sidecar is being restarted.
  const begun = regular.some(({ state }) => state?.running !== undefined || state?.terminated !== undefined);
  if (begun) return { status: 'True' };
  const message = messageOf(unknown, 'incomplete', bad);
  return message === '' ? { status: 'True' } : { status: 'False', reason: 'ContainersNotInitialized', message };
}

function containersReady({ pod, phase, regular, init }: ConditionFacts): Verdict {
  const containers = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
  const { unknown, bad } = sort(containers, [...init, ...regular], (status) => status.ready);
  if (phase === 'Succeeded' && unknown.length === 0) return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const message = messageOf(unknown, 'unready', bad);
  return message === '' ? { status: 'True' } : { status: 'False', reason: 'ContainersNotReady', message };
}

function ready(facts: ConditionFacts, ofContainers: Verdict): Verdict {
  if (ofContainers.status !== 'True') return ofContainers;
  const messages = (facts.pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const gate = (facts.pod.status?.conditions ?? []).find((condition) => condition.type === conditionType);
    if (gate === undefined) {
      return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`];
    }
    if (gate.status === 'True') return [];
    return [`the status of pod readiness gate "${conditionType}" is not "True", but ${gate.status}`];
  });
  if (messages.length === 0) return { status: 'True' };
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: messages.join(', ') };
}

/** Every condition of the pod, in the kubelet's order; a transition time moves only when the status changes. */
export function computeConditions(facts: ConditionFacts): PodCondition[] {
  const { pod, previous, now } = facts;
  const ofContainers = containersReady(facts);
  const verdicts: readonly (readonly [string, Verdict])[] = [
    ['PodReadyToStartContainers', { status: facts.sandboxReady ? 'True' : 'False' }],
    ['Initialized', initialized(facts)],
    ['Ready', ready(facts, ofContainers)],
    ['ContainersReady', ofContainers],
    ['PodScheduled', { status: 'True' }],
    ...(facts.disruption === undefined
      ? []
      : [[DISRUPTION_TARGET, { status: 'True', ...facts.disruption }] satisfies [string, Verdict]]),
    ...resizeConditions(facts.resize),
  ];
  const known = [...(previous?.conditions ?? []), ...(pod.status?.conditions ?? [])];
  const { generation } = pod.metadata;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const owned = verdicts.map(([type, verdict]): PodCondition => {
    const before = known.find((condition) => condition.type === type);
    const since = before?.status === verdict.status ? before.lastTransitionTime : undefined;
    return { type, ...observed, ...verdict, lastTransitionTime: since ?? rfc3339(epochMs(now)) };
  });
  const written = new Set(verdicts.map(([type]) => type));
  const others = (pod.status?.conditions ?? []).filter(({ type }) => !OWNED_CONDITIONS.has(type) && !written.has(type));
  return [...others, ...owned];
}
