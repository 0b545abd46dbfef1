// What the Controller service answers, as functions of the request and the records: no I/O, no clock. Refusals are
// DriverErrors with the specification's codes.

import { getOwn } from '../../lib/own-property.ts';
import { type Capability, isMultiNode, sameCapability, whyUnsupported } from './capability.ts';
import { fitsRange, type Range } from './capacity.ts';
import { conflict, DriverError, invalid, precondition } from './errors.ts';
import type { Allocation } from './names.ts';
import type { Attachment, NodeRecord, SnapshotRecord, Source, VolumeRecord } from './records.ts';

export interface CreateRequest {
  readonly name: string;
  readonly range: Range | undefined;
  readonly capabilities: readonly Capability[];
  readonly allocation: Allocation;
  readonly source: Source | undefined;
  /** Whether the nodes of this driver meet accessibility_requirements. */
  readonly accessible: boolean;
}

/** A volume of that name is there: it is the answer, or it is in the way (ALREADY_EXISTS). */
export function checkExisting(existing: VolumeRecord, request: CreateRequest): void {
  const refuse = (what: string): never => {
    throw conflict(`a volume named "${existing.name}" exists and is incompatible with ${what}`);
  };
  if (!fitsRange(existing.capacityBytes, request.range))
    refuse(`capacity_range: it has ${existing.capacityBytes} bytes`);
  if (existing.allocation !== request.allocation) refuse(`parameters: its allocation is ${existing.allocation}`);
  if (!request.accessible) refuse('accessibility_requirements');
  const [had, wanted] = [existing.source, request.source];
  if (had?.type !== wanted?.type || had?.id !== wanted?.id) refuse('volume_content_source');
  for (const capability of request.capabilities) {
    const why = whyUnsupported(existing.capabilities, capability);
    if (why !== undefined) refuse(`volume_capabilities: ${why}`);
  }
}

/** Throws INVALID_ARGUMENT when a source's filesystem is another than the requested one. */
export function checkSource(
  source: { readonly filesystem?: { readonly type: string } | undefined },
  capabilities: readonly Capability[],
): void {
  const had = source.filesystem?.type;
  if (had === undefined) return;
  const other = capabilities.find((each) => each.type === 'mount' && each.fsType !== had);
  if (other?.type === 'mount') throw invalid(`the source holds ${had}, and ${other.fsType} is requested`);
}

export function isOnNode(record: NodeRecord | undefined): boolean {
  return record !== undefined && (record.staging !== undefined || record.publications.length > 0);
}

/** Throws FAILED_PRECONDITION while the volume is in use. */
export function checkDeletable(volume: VolumeRecord, node: NodeRecord | undefined): void {
  const attached = Object.keys(volume.attachments ?? {});
  if (attached.length > 0) throw precondition(`volume ${volume.id} is in use: published to ${attached.join(', ')}`);
  if (node?.staging !== undefined) throw precondition(`volume ${volume.id} is in use: staged at ${node.staging.path}`);
  const published = node?.publications[0];
  if (published !== undefined) throw precondition(`volume ${volume.id} is in use: published at ${published.target}`);
}

export interface AttachRequest {
  readonly nodeId: string;
  readonly capability: Capability;
  readonly readonly: boolean;
}

/** Throws by ControllerPublishVolume's error table. `attachedToNode` counts the other volumes on that node. */
export function decideAttach(
  volume: VolumeRecord,
  request: AttachRequest,
  attachedToNode: number,
  maxVolumes: number,
): 'attached' | 'attach' {
  const { nodeId, capability, readonly } = request;
  const why = whyUnsupported(volume.capabilities, capability);
  if (why !== undefined) throw invalid(`volume_capability: ${why}`);
  const attachments = volume.attachments ?? {};
  const here = getOwn(attachments, nodeId);
  if (here !== undefined) {
    if (here.readonly === readonly && sameCapability(here.capability, capability, { group: false })) return 'attached';
    throw conflict(`volume ${volume.id} is published to ${nodeId} with another volume_capability or readonly flag`);
  }
  const elsewhere = Object.entries(attachments);
  const single = ([, other]: readonly [string, Attachment]): boolean =>
    !isMultiNode(other.capability.mode) || !isMultiNode(capability.mode);
  const holder = elsewhere.find(single);
  if (holder !== undefined) throw precondition(`volume ${volume.id} is already published to node ${holder[0]}`);
  if (attachedToNode >= maxVolumes) {
    throw new DriverError(
      'RESOURCE_EXHAUSTED',
      `node ${nodeId} has ${attachedToNode} volumes, and no more can be attached`,
    );
  }
  return 'attach';
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextToken: string;
}

const TOKEN = /^from:([A-Za-z0-9_.-]{1,128})$/;

/** One page of entries sorted by id. The token names the first of the next page, which may be gone by then. */
export function paginate<T extends { readonly id: string }>(
  all: readonly T[],
  maxEntries: number,
  token: string,
): Page<T> {
  const match = token === '' ? undefined : TOKEN.exec(token);
  if (match === null) throw new DriverError('ABORTED', 'starting_token is not one that this driver gave');
  const from = match?.[1] ?? '';
  const sorted = all.filter((each) => each.id >= from).sort((a, b) => (a.id < b.id ? -1 : 1));
  const items = maxEntries === 0 ? sorted : sorted.slice(0, maxEntries);
  const next = sorted[items.length];
  return { items, nextToken: next === undefined ? '' : `from:${next.id}` };
}

/** A snapshot of that name is there: it is the answer, or belongs to another volume (ALREADY_EXISTS). */
export function checkExistingSnapshot(existing: SnapshotRecord, sourceVolumeId: string): void {
  if (existing.sourceVolumeId === sourceVolumeId) return;
  throw conflict(`a snapshot named "${existing.name}" exists and is of volume ${existing.sourceVolumeId}`);
}
