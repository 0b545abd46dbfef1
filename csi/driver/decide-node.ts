// What the Node service does, as functions of the request and what is known of the volume on this node: no I/O. Refusals
// are DriverErrors with the specification's codes.

import { getOwn } from '../../lib/own-property.ts';
import { allowsManyTargets, type Capability, isReaderOnly, sameCapability, whyUnsupported } from './capability.ts';
import type { Range } from './capacity.ts';
import { conflict, DriverError, invalid, notFound, precondition } from './errors.ts';
import { ATTACHMENT_KEY, attachmentOf } from './names.ts';
import type { NodeRecord, Publication, Staging, VolumeRecord } from './records.ts';

/** With --attach: the volume was published to this node, and the CO hands on what it was given. */
export function checkAttached(
  volume: VolumeRecord,
  nodeId: string,
  publishContext: Readonly<Record<string, string>>,
  attachRequired: boolean,
): { readonly readonly: boolean } {
  if (!attachRequired) {
    if (Object.keys(publishContext).length > 0) {
      throw invalid('publish_context is given, and this driver has no PUBLISH_UNPUBLISH_VOLUME');
    }
    return { readonly: false };
  }
  const attachment = getOwn(volume.attachments, nodeId);
  if (attachment === undefined) throw precondition(`volume ${volume.id} is not published to node ${nodeId}`);
  if (publishContext[ATTACHMENT_KEY] !== attachmentOf(volume.id, nodeId)) {
    throw invalid('publish_context is not what ControllerPublishVolume answered');
  }
  return { readonly: attachment.readonly };
}

function checkSupported(volume: VolumeRecord, capability: Capability): void {
  const why = whyUnsupported(volume.capabilities, capability);
  if (why !== undefined) throw precondition(`volume_capability exceeds what volume ${volume.id} supports: ${why}`);
  const had = volume.filesystem?.type;
  if (capability.type === 'mount' && had !== undefined && had !== capability.fsType) {
    throw precondition(`volume ${volume.id} holds ${had} and cannot be used as ${capability.fsType}`);
  }
}

/** `staged`: nothing to do if the mount is still there. `stage`: do the work, or what is left of it. */
export function decideStage(
  volume: VolumeRecord,
  node: NodeRecord | undefined,
  request: { readonly path: string; readonly capability: Capability },
  others: { readonly staged: number; readonly max: number },
): 'staged' | 'stage' {
  checkSupported(volume, request.capability);
  const staging = node?.staging;
  if (staging === undefined) {
    if (others.staged >= others.max) {
      throw new DriverError(
        'RESOURCE_EXHAUSTED',
        `${others.staged} volumes are staged on this node, and no more can be`,
      );
    }
    return 'stage';
  }
  if (staging.path !== request.path) {
    throw precondition(`volume ${volume.id} is staged at ${staging.path}, and has one staging_target_path at a time`);
  }
  const same = sameCapability(staging.capability, request.capability, { group: false });
  if (same) return staging.done ? 'staged' : 'stage';
  // What was begun and never ended may be begun anew in another way.
  if (!staging.done && (node?.publications.length ?? 0) === 0) return 'stage';
  throw conflict(`volume ${volume.id} is staged at ${staging.path} with another volume_capability`);
}

/** `unstaged`: nothing of it is here. Throws FAILED_PRECONDITION while it is published. */
export function decideUnstage(node: NodeRecord | undefined, volumeId: string, path: string): 'unstaged' | 'unstage' {
  const staging = node?.staging;
  if (staging === undefined || staging.path !== path) return 'unstaged';
  const published = node?.publications[0];
  if (published !== undefined) {
    throw precondition(`volume ${volumeId} is still published at ${published.target}: call NodeUnpublishVolume first`);
  }
  return 'unstage';
}

export interface PublishRequest {
  /** Empty when it was not given. */
  readonly stagingPath: string;
  readonly target: string;
  readonly capability: Capability;
  readonly readonly: boolean;
}

/** Throws unless the volume is staged at the request's staging path. */
export function requireStaged(volumeId: string, node: NodeRecord | undefined, stagingPath: string): Staging {
  if (stagingPath === '')
    throw precondition('staging_target_path is missing, and this driver has STAGE_UNSTAGE_VOLUME');
  const staging = node?.staging;
  if (staging === undefined || !staging.done) {
    throw precondition(`volume ${volumeId} is not staged: call NodeStageVolume first`);
  }
  if (staging.path !== stagingPath) {
    throw precondition(`volume ${volumeId} is staged at ${staging.path}, not at ${stagingPath}`);
  }
  return staging;
}

/** The specification's tables for a second NodePublishVolume of one volume on one node. */
export function decidePublish(
  volume: VolumeRecord,
  node: NodeRecord | undefined,
  request: Omit<PublishRequest, 'stagingPath'>,
): 'published' | 'publish' {
  const publications = node?.publications ?? [];
  const here = publications.find((each) => each.target === request.target);
  if (here !== undefined) {
    const same =
      here.readonly === request.readonly && sameCapability(here.capability, request.capability, { group: true });
    if (same) return here.done ? 'published' : 'publish';
    if (here.done) throw conflict(`volume ${volume.id} is published at ${request.target} with other arguments`);
  }
  checkSupported(volume, request.capability);
  const staging = node?.staging;
  if (staging !== undefined && !sameCapability(staging.capability, request.capability, { group: false })) {
    throw precondition(`volume ${volume.id} is staged with another volume_capability`);
  }
  const other = publications.find((each) => each.target !== request.target);
  if (other === undefined) return 'publish';
  const many = allowsManyTargets(other.capability.mode) && allowsManyTargets(request.capability.mode);
  if (!many)
    throw precondition(
      `volume ${volume.id} is published at ${other.target}, and ${request.capability.mode} allows one`,
    );
  return 'publish';
}

/** Whether users may only read. Attachment, staging, access mode and the request each can say so. */
export function isReadOnly(parts: {
  readonly capability: Capability;
  readonly readonly?: boolean;
  readonly attachedReadonly?: boolean;
}): boolean {
  const flags = parts.capability.type === 'mount' ? parts.capability.flags : [];
  return (
    parts.readonly === true ||
    parts.attachedReadonly === true ||
    isReaderOnly(parts.capability.mode) ||
    flags.includes('ro')
  );
}

export type Place =
  | { readonly kind: 'staging'; readonly staging: Staging }
  | { readonly kind: 'publication'; readonly publication: Publication };

/** Where on this node a volume_path is. Throws NOT_FOUND: the volume is not on that path. */
export function placeOf(volumeId: string, node: NodeRecord | undefined, path: string): Place {
  const publication = node?.publications.find((each) => each.target === path && each.done);
  if (publication !== undefined) return { kind: 'publication', publication };
  const staging = node?.staging;
  if (staging?.done === true && staging.path === path) return { kind: 'staging', staging };
  throw notFoundAt(volumeId, path);
}

export function notFoundAt(volumeId: string, path: string): DriverError {
  return notFound(`volume ${volumeId} is neither staged nor published at ${path}`);
}

/** Throws OUT_OF_RANGE for what ControllerExpandVolume would have had to do first, or for a volume that is too large. */
export function checkNodeExpansion(volume: VolumeRecord, range: Range | undefined): void {
  if (range === undefined) return;
  if (range.required > volume.capacityBytes) {
    throw new DriverError(
      'OUT_OF_RANGE',
      `volume ${volume.id} has ${volume.capacityBytes} bytes: ControllerExpandVolume has to give it ${range.required} first`,
    );
  }
  if (range.limit !== 0 && volume.capacityBytes > range.limit) {
    throw new DriverError(
      'OUT_OF_RANGE',
      `volume ${volume.id} has ${volume.capacityBytes} bytes, more than limit_bytes`,
    );
  }
}
