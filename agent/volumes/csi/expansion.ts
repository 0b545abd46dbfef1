// Expansion of a mounted volume: whether it is due, and the claim's status before and after. Pure.

import type { PersistentVolumeClaimCondition } from 'kubernetes-types/core/v1';
import { quantityValue } from '../../../lib/quantity.ts';
import type { Claim, PV } from '../claims.ts';

export type NodeResizeState = 'NodeResizePending' | 'NodeResizeInProgress' | 'NodeResizeInfeasible';

const RESIZE_CONDITIONS: ReadonlySet<string> = new Set([
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
]);

/** The size that the node still has to give the volume, as the PersistentVolume writes it; undefined when it has it. */
export function expansionDue(claim: Claim, volume: PV): string | undefined {
  const wanted = volume.spec?.capacity?.['storage'];
  const has = claim.status?.capacity?.['storage'];
  if (wanted === undefined || has === undefined || quantityValue(wanted) <= quantityValue(has)) return undefined;
  // The node cannot expand it at all; a new request of the user's clears that.
  return claim.status?.allocatedResourceStatuses?.['storage'] === 'NodeResizeInfeasible' ? undefined : wanted;
}

/** The claim's status during the node's expansion; undefined when it is set already. */
export function expandingStatus(claim: Claim): object | undefined {
  if (claim.status?.allocatedResourceStatuses?.['storage'] === 'NodeResizeInProgress') return undefined;
  return { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' satisfies NodeResizeState } };
}

/** The claim's status when the volume has the size. Conditions that are not about it stay. */
export function expandedStatus(claim: Claim, size: string): object {
  return {
    capacity: { storage: size },
    conditions: (claim.status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.has(type)),
    allocatedResourceStatuses: { storage: null },
  };
}

/** The claim's status after a failure; `final` is one that no further try will change. */
export function expansionFailedStatus(claim: Claim, message: string, final: boolean, now: string): object {
  const others = (claim.status?.conditions ?? []).filter(({ type }) => type !== 'NodeResizeError');
  const condition: PersistentVolumeClaimCondition = {
    type: 'NodeResizeError',
    status: 'True',
    lastTransitionTime: now,
    message,
  };
  const state: NodeResizeState = final ? 'NodeResizeInfeasible' : 'NodeResizeInProgress';
  return { conditions: [...others, condition], allocatedResourceStatuses: { storage: state } };
}
