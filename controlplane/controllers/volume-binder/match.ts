// Which of the volumes there are a claim gets: the smallest that fits it in class, modes, selector and size, and that
// can be reached from the node, where one has been chosen. Pure.

import type { LabelSelector } from 'kubernetes-types/meta/v1';
import { matchesLabelSelector } from '../../../client/selectors.ts';
import type { Node } from '../../../client/types.ts';
import { matchesNodeSelector } from '../../scheduler/affinity.ts';
import {
  capacityBytes,
  claimClass,
  type PersistentVolume,
  type PersistentVolumeClaim,
  refersTo,
  requestedBytes,
  volumeClass,
  volumeMode,
} from '../../storage/objects.ts';

/** An absent selector selects everything. */
export function matchesLabels(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return selector === undefined || matchesLabelSelector(selector, labels ?? {});
}

/** Whether the volume can be used from the node. */
export function reaches(volume: PersistentVolume, node: Node): boolean {
  const required = volume.spec?.nodeAffinity?.required;
  return required === undefined || matchesNodeSelector(required, node);
}

function hasModes(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const modes = volume.spec?.accessModes ?? [];
  return (claim.spec?.accessModes ?? []).every((mode) => modes.includes(mode));
}

/** Why the volume that the claim names does not fit; undefined when it fits. */
export function mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (capacityBytes(volume) < requestedBytes(claim)) return 'requested PV is too small';
  if (volumeClass(volume) !== (claimClass(claim) ?? '')) return 'storageClassName does not match';
  if (attributesClass(volume) !== attributesClass(claim)) return 'volumeAttributesClassName does not match';
  if (volumeMode(volume.spec) !== volumeMode(claim.spec)) return 'incompatible volumeMode';
  if (!hasModes(volume, claim)) return 'incompatible accessMode';
  return undefined;
}

function attributesClass(object: { readonly spec?: { readonly volumeAttributesClassName?: string } }): string {
  return object.spec?.volumeAttributesClassName ?? '';
}

export interface MatchOptions {
  /** The claim waits for its first consumer: only a volume whose claimRef names it is used. */
  readonly delayed?: boolean;
  /** Only volumes that this node reaches. */
  readonly node?: Node;
  /** Volumes chosen for other claims of the same pod. */
  readonly taken?: ReadonlySet<string>;
}

/**
 * The volume for the claim, or undefined. One that names the claim comes first; else the one with the fewest access
 * modes beyond the requested ones, the smallest of those, the first by name of those.
 */
export function findVolume(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
  { delayed = false, node, taken }: MatchOptions = {},
): PersistentVolume | undefined {
  const fitting = volumes.filter(
    (volume) =>
      volume.metadata.deletionTimestamp === undefined &&
      volumeMode(volume.spec) === volumeMode(claim.spec) &&
      capacityBytes(volume) >= requestedBytes(claim) &&
      hasModes(volume, claim) &&
      (node === undefined || reaches(volume, node)),
  );
  const preferred = fitting.find((volume) => refersTo(volume, claim));
  if (preferred !== undefined || delayed) return preferred;
  return fitting
    .filter(
      (volume) =>
        volume.spec?.claimRef === undefined &&
        volume.status?.phase === 'Available' &&
        mismatch(volume, claim) === undefined &&
        matchesLabels(claim.spec?.selector, volume.metadata.labels) &&
        taken?.has(volume.metadata.name) !== true,
    )
    .toSorted(compareVolumes)[0];
}

function compareVolumes(a: PersistentVolume, b: PersistentVolume): number {
  const modes = (a.spec?.accessModes?.length ?? 0) - (b.spec?.accessModes?.length ?? 0);
  if (modes !== 0) return modes;
  const [left, right] = [capacityBytes(a), capacityBytes(b)];
  if (left !== right) return left < right ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
