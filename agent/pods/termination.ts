// The rules of termination: grace periods, the order of containers, and what is left to do for
// a pod that is to end. Pure; the killer acts on them.

import type { Container, Pod } from '../../client/types.ts';
import { isSidecar } from '../../lib/sidecar.ts';
import type { ContainerId, ContainerSnapshot, PodSnapshot, SandboxSnapshot } from '../ports/runtime.ts';
import type { KillReason } from './pod-action.ts';

/** However little a pod that ends was granted, its preStop hooks may begin. */
const LEAST_GRANTED_SECONDS = 1;

/** The shortest time (s) between TERM and KILL, however little was granted. */
export const MINIMUM_GRACE_SECONDS = 2;

/** The API's default of terminationGracePeriodSeconds. */
const DEFAULT_GRACE_SECONDS = 30;

/**
 * Seconds a container gets to end by itself. A deletion's own period comes first; a failed probe may have one; else
 * the pod's. A node that must have the room grants no more than `granted`.
 */
export function gracePeriodSeconds(
  pod: Pod,
  container: Container | undefined,
  reason: KillReason | 'podEnds',
  granted = Number.POSITIVE_INFINITY,
): number {
  const seconds = Math.min(granted, ownGracePeriodSeconds(pod, container, reason));
  return reason === 'podEnds' ? Math.max(LEAST_GRANTED_SECONDS, seconds) : seconds;
}

function ownGracePeriodSeconds(pod: Pod, container: Container | undefined, reason: KillReason | 'podEnds'): number {
  const { deletionGracePeriodSeconds, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined && deletionGracePeriodSeconds !== undefined) return deletionGracePeriodSeconds;
  const probe =
    reason === 'livenessProbe'
      ? container?.livenessProbe
      : reason === 'startupProbe'
        ? container?.startupProbe
        : undefined;
  return probe?.terminationGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
}

/** Whether an instance has, or may have, a process. */
export function isAlive(container: ContainerSnapshot): boolean {
  return container.state === 'running' || container.state === 'unknown';
}

/** Names of the containers that must be dead before `name` is stopped: sidecars go last, in reverse order. */
export function stopsAfter(pod: Pod, name: string): ReadonlySet<string> {
  const init = pod.spec.initContainers ?? [];
  const index = init.findIndex((container) => container.name === name && isSidecar(container));
  if (index < 0) return new Set();
  const later = init.slice(index + 1).filter(isSidecar);
  return new Set([...pod.spec.containers, ...later].map((container) => container.name));
}

export type TerminationStep =
  /** Stop these; each is not being stopped yet. */
  | { readonly kind: 'kill'; readonly containers: readonly ContainerSnapshot[] }
  /** Something is still being started or stopped: sync again when that is over. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'stopSandboxes'; readonly sandboxes: readonly SandboxSnapshot[] }
  /** No process is left, and no network: the rest may be released. */
  | { readonly kind: 'release' };

export interface TerminationFacts {
  readonly snapshot: PodSnapshot;
  readonly killing: ReadonlySet<ContainerId>;
  /** Starts and sandbox work that were under way when the end began. */
  readonly busy: boolean;
  /** Sandboxes that have been stopped, whatever the runtime shows of them. */
  readonly stopped: ReadonlySet<string>;
}

/** The next step of ending a pod. */
export function computeTermination(facts: TerminationFacts): TerminationStep {
  const alive = facts.snapshot.containers.filter(isAlive);
  const fresh = alive.filter((container) => !facts.killing.has(container.id));
  if (fresh.length > 0) return { kind: 'kill', containers: fresh };
  if (alive.length > 0 || facts.killing.size > 0 || facts.busy) return { kind: 'wait' };
  // A sandbox that is not ready may still have its network: stopping it again costs little and leaks nothing.
  const sandboxes = facts.snapshot.sandboxes.filter((sandbox) => !facts.stopped.has(sandbox.id));
  return sandboxes.length > 0 ? { kind: 'stopSandboxes', sandboxes } : { kind: 'release' };
}
