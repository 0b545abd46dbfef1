// Inline volumes: NodePublishVolume makes, formats and mounts one, NodeUnpublishVolume takes it away with all that is in it. They
// are never staged, and the Controller service does not know them.

import { dirname } from 'node:path';
import type { Capability } from './capability.ts';
import { chooseCapacity, minimumCapacity } from './capacity.ts';
import { decidePublish, isReadOnly } from './decide-node.ts';
import { applyMountGroup, detachAll, isDirectory, mountVolume, ownMountAt, refuseForeignMount } from './devices.ts';
import { invalid, precondition } from './errors.ts';
import { createImage } from './images.ts';
import { makeReadOnly, makeTarget, removeTarget, unmountAt } from './mounts.ts';
import { isSafeId } from './names.ts';
import { requireCapacity } from './pool.ts';
import { NOTHING_ON_NODE, type VolumeRecord } from './records.ts';
import { ephemeralBytes, parseEphemeral } from './requests.ts';
import type { Work } from './work.ts';

export interface InlineRequest {
  readonly volumeId: string;
  readonly target: string;
  readonly capability: Capability;
  readonly readonly: boolean;
  readonly context: Readonly<Record<string, string>>;
}

async function make(work: Work, request: InlineRequest): Promise<VolumeRecord> {
  const { volumeId, capability, context } = request;
  const minimum = minimumCapacity([capability]);
  const requested = ephemeralBytes(parseEphemeral(context), minimum);
  const bytes = chooseCapacity({ required: requested, limit: 0 }, minimum);
  await requireCapacity(work, bytes);
  await work.step();
  await createImage(work.store.volumeImage(volumeId), bytes, 'sparse', work.run);
  return work.putVolume({
    id: volumeId,
    name: volumeId,
    capacityBytes: bytes,
    capabilities: [capability],
    allocation: 'sparse',
    ephemeral: true,
  });
}

export async function publishInline(work: Work, request: InlineRequest): Promise<void> {
  const { volumeId, target, capability } = request;
  if (capability.type !== 'mount') throw invalid('an inline volume is a filesystem, not a block device');
  if (!isSafeId(volumeId)) throw invalid('volume_id of an inline volume has characters that no file name has');
  const existing = work.store.volume(volumeId);
  if (existing !== undefined && existing.ephemeral !== true) {
    throw precondition(`volume ${volumeId} is persistent and cannot be published as an inline volume`);
  }
  parseEphemeral(request.context);
  if (!(await isDirectory(dirname(target)))) throw invalid(`the directory of target_path ${target} does not exist`);
  const volume = existing ?? (await make(work, request));
  const node = work.store.onNode(volumeId) ?? NOTHING_ON_NODE(volumeId);
  const other = node.publications.find((each) => each.target !== target);
  if (other !== undefined)
    throw precondition(`inline volume ${volumeId} is published at ${other.target}, and has one pod`);
  const decision = decidePublish(volume, node, request);
  if (decision === 'published' && (await ownMountAt(work, volumeId, target)) !== undefined) return;
  await refuseForeignMount(work, volumeId, target);
  const publication = { target, capability, readonly: request.readonly };
  await work.putOnNode({ ...node, publications: [{ ...publication, done: false }] });
  try {
    await unmountAt(target, work.run);
    await work.step();
    await makeTarget(target, 'directory');
    // Its owner fills it from nothing: read-only begins after the group has been set.
    await mountVolume(work, volume, capability, target, false);
    await applyMountGroup(work, capability, target);
    if (isReadOnly(request)) await makeReadOnly(target, work.run);
  } catch (error) {
    await unpublishInline(work, volumeId, target);
    throw error;
  }
  await work.putOnNode({ ...node, publications: [{ ...publication, done: true }] });
}

export async function unpublishInline(work: Work, volumeId: string, target: string): Promise<void> {
  const node = work.store.onNode(volumeId) ?? NOTHING_ON_NODE(volumeId);
  const here = node.publications.some((each) => each.target === target);
  if (here || (await ownMountAt(work, volumeId, target)) !== undefined) {
    await unmountAt(target, work.run);
    await work.step();
    await removeTarget(target);
  }
  const left = node.publications.filter((each) => each.target !== target);
  if (left.length > 0) return;
  await detachAll(work, volumeId);
  await work.putOnNode({ ...node, publications: left });
  await work.removeVolume(volumeId);
}
