// Whether a claim's volume must grow, the claim's status during that, and what a driver's response means. Pure.

import type { PersistentVolumeClaimCondition } from 'kubernetes-types/core/v1';
import {
  bytesOf,
  capacityBytes,
  isBound,
  type PersistentVolume,
  type PersistentVolumeClaim,
  requestedBytes,
} from '../../storage/objects.ts';

/** status.allocatedResourceStatuses["storage"] (KEP-1790). */
export type ResizeStatus =
  | 'ControllerResizeInProgress'
  | 'ControllerResizeInfeasible'
  | 'NodeResizePending'
  | 'NodeResizeInProgress'
  | 'NodeResizeInfeasible';

export type Expansion =
  | { readonly kind: 'none' }
  /** Expand the volume to this many bytes. */
  | { readonly kind: 'expand'; readonly bytes: bigint }
  /** The volume has them; the node has yet to grow what is on it. */
  | { readonly kind: 'node' };

export function decideExpansion(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): Expansion {
  if (volume === undefined || !isBound(claim) || claim.status?.phase !== 'Bound') return { kind: 'none' };
  if (claim.metadata.deletionTimestamp !== undefined || volume.spec?.claimRef?.uid !== claim.metadata.uid) {
    return { kind: 'none' };
  }
  const wanted = requestedBytes(claim);
  if (wanted <= bytesOf(claim.status.capacity?.['storage'])) return { kind: 'none' };
  const status = claim.status.allocatedResourceStatuses?.['storage'];
  // The claim may say so before the cache of volumes does.
  const handedOver = bytesOf(claim.status.allocatedResources?.['storage']) === wanted;
  if (handedOver && status?.startsWith('NodeResize') === true) return { kind: 'node' };
  if (capacityBytes(volume) < wanted) return { kind: 'expand', bytes: wanted };
  // Killed after the volume was expanded: ControllerExpandVolume is idempotent and returns whether the node must expand, too.
  return status === 'ControllerResizeInProgress' ? { kind: 'expand', bytes: wanted } : { kind: 'node' };
}

/** Errors that a retry with the same size cannot change. */
const INFEASIBLE = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND', 'UNIMPLEMENTED']);

export function isInfeasible(code: string): boolean {
  return INFEASIBLE.has(code);
}

type ConditionType = 'Resizing' | 'FileSystemResizePending';

/** The claim's conditions with the resize ones replaced by `wanted`; undefined keeps none. `now` as the API writes it. */
export function resizeConditions(
  claim: PersistentVolumeClaim,
  wanted: { readonly type: ConditionType; readonly message?: string } | undefined,
  now: string,
): PersistentVolumeClaimCondition[] {
  const others = (claim.status?.conditions ?? []).filter(
    ({ type }) => type !== 'Resizing' && type !== 'FileSystemResizePending',
  );
  if (wanted === undefined) return others;
  const known = claim.status?.conditions?.find(({ type }) => type === wanted.type);
  const condition = {
    type: wanted.type,
    status: 'True',
    lastTransitionTime: known?.lastTransitionTime ?? now,
    ...(wanted.message === undefined ? {} : { message: wanted.message }),
  };
  return [...others, condition];
}

export const NODE_MUST_RESIZE = 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.';
