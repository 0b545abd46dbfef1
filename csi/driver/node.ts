// The Node service: stages, publishes, measures, expands and takes down volumes on this node. Each intention is recorded
// before its first step, every step can be repeated, and the mount table and the loop devices take precedence over the
// record. A call that fails undoes its steps.

import { dirname } from 'node:path';
import type { NodeDefinition } from '../../proto/gen/csi/v1/Node.ts';
import { parseCapability, whyUnsupported } from './capability.ts';
import { parseRange } from './capacity.ts';
import { abnormality } from './condition.ts';
import {
  checkAttached,
  checkNodeExpansion,
  decidePublish,
  decideStage,
  decideUnstage,
  isReadOnly,
  notFoundAt,
  type PublishRequest,
  placeOf,
  requireStaged,
} from './decide-node.ts';
import {
  applyMountGroup,
  attach,
  detachAll,
  filesystemUsage,
  growOnNode,
  isDirectory,
  loopsOf,
  mountVolume,
  ownMountAt,
  refuseForeignMount,
} from './devices.ts';
import { publishInline, unpublishInline } from './ephemeral.ts';
import { invalid, precondition } from './errors.ts';
import { freeBytes, imageSize } from './images.ts';
import { conditionMessage } from './messages.ts';
import { bindMount, makeTarget, removeTarget, resolvePlace, unmountAt } from './mounts.ts';
import { isEphemeralId } from './names.ts';
import { NOTHING_ON_NODE, type NodeRecord, type Staging, type VolumeRecord } from './records.ts';
import { checkContext, isEphemeral, isPlainPath, requirePath, requirePathLength, requireString } from './requests.ts';
import { topologyOf } from './topology.ts';
import type { Service, Work } from './work.ts';

const CAPABILITIES = [
  'STAGE_UNSTAGE_VOLUME',
  'GET_VOLUME_STATS',
  'EXPAND_VOLUME',
  'VOLUME_CONDITION',
  'SINGLE_NODE_MULTI_WRITER',
] as const;

/**
 * A path of a request as the mount table has it, whichever links the caller reaches it by. `findVolume` throws when the
 * volume does not exist: that is NOT_FOUND whatever the path looks like, while a missing path is INVALID_ARGUMENT first.
 */
function placeOfRequest(field: string, value: string, findVolume?: () => unknown): string {
  requirePathLength(field, value);
  findVolume?.();
  return resolvePlace(requirePath(field, value));
}

/** The volume path of a request. No volume is on an invalid path, such as a relative one (NOT_FOUND). */
function volumePathOf(work: Work, volumeId: string, value: string): string {
  requirePathLength('volume_path', value);
  work.volume(volumeId);
  if (!isPlainPath(value)) throw notFoundAt(volumeId, value);
  return placeOfRequest('volume_path', value);
}

async function isStaged(work: Work, volume: VolumeRecord, staging: Staging): Promise<boolean> {
  if (staging.capability.type === 'mount') return (await ownMountAt(work, volume.id, staging.path)) !== undefined;
  return (await loopsOf(work, volume.id)).some((each) => each.readonly === staging.readonly);
}

async function stage(work: Work, volume: VolumeRecord, staging: Staging): Promise<void> {
  const { path, capability, readonly } = staging;
  await refuseForeignMount(work, volume.id, path);
  await unmountAt(path, work.run);
  if (capability.type === 'mount') await mountVolume(work, volume, capability, path, readonly);
  else await attach(work, volume.id, readonly);
}

async function unstage(work: Work, volumeId: string, path: string): Promise<void> {
  if ((await ownMountAt(work, volumeId, path)) !== undefined) await unmountAt(path, work.run);
  await detachAll(work, volumeId);
  const node = work.store.onNode(volumeId);
  if (node === undefined) return;
  const { staging: _gone, ...rest } = node;
  await work.putOnNode(rest);
}

async function publish(work: Work, volume: VolumeRecord, staging: Staging, request: PublishRequest): Promise<void> {
  const { target, capability } = request;
  const readonly = isReadOnly(request) || staging.readonly;
  await unmountAt(target, work.run);
  await work.step();
  await makeTarget(target, capability.type === 'mount' ? 'directory' : 'file');
  if (capability.type === 'mount') {
    if (!readonly) await applyMountGroup(work, capability, staging.path);
    await bindMount(staging.path, target, readonly, work.run);
    return;
  }
  // A read-only mount of a device file does not prevent writing to the device: the device itself must be read-only.
  await bindMount(await attach(work, volume.id, readonly), target, readonly, work.run);
}

async function unpublish(work: Work, volumeId: string, target: string): Promise<void> {
  const node = work.store.onNode(volumeId) ?? NOTHING_ON_NODE(volumeId);
  const known = node.publications.some((each) => each.target === target);
  if (!known && (await ownMountAt(work, volumeId, target)) === undefined) return;
  await unmountAt(target, work.run);
  await work.step();
  await removeTarget(target);
  const publications = node.publications.filter((each) => each.target !== target);
  const readers = publications.some((each) => each.capability.type === 'block' && isReadOnly(each));
  const block = node.staging?.capability.type === 'block';
  if (block && !readers && node.staging?.readonly !== true) await detachAll(work, volumeId, 'readonly');
  await work.putOnNode({ ...node, publications });
}

/** What is wrong with a volume at a place where it should be; undefined when nothing is. */
async function abnormalityAt(
  work: Work,
  volume: VolumeRecord,
  node: NodeRecord,
  path: string,
): Promise<string | undefined> {
  const { store } = work;
  const block = node.staging?.capability.type === 'block';
  const mount = await ownMountAt(work, volume.id, path);
  return abnormality(
    {
      capacityBytes: volume.capacityBytes,
      image: await imageSize(store.volumeImage(volume.id)),
      freeBytes: await freeBytes(store.stateDir),
    },
    {
      path,
      // A block volume is staged without a mount.
      mounted: mount !== undefined || (block && path === node.staging?.path),
      superOptions: block ? [] : (mount?.superOptions ?? []),
      readonly: node.staging?.readonly ?? node.publications.some(isReadOnly),
    },
  );
}

export const node: Service<NodeDefinition> = {
  async NodeStageVolume(request, work) {
    const { driver, store } = work;
    const { options } = driver;
    const id = requireString('volume_id', request.volume_id);
    const capability = parseCapability(request.volume_capability, { mountGroup: options.mountGroup });
    if (isEphemeral(request.volume_context)) throw invalid('an inline volume is not staged');
    const path = placeOfRequest('staging_target_path', request.staging_target_path, () => work.volume(id));
    return driver.locks.hold('NodeStageVolume', [id], async () => {
      const volume = work.volume(id);
      checkContext(request.volume_context, volume.allocation, 'required');
      const attachment = checkAttached(volume, options.nodeId, request.publish_context, options.attach);
      if (!(await isDirectory(path))) throw invalid(`staging_target_path ${path} is no directory`);
      const before = store.onNode(id);
      const staged = store.allOnNode().filter((each) => each.volumeId !== id && each.staging !== undefined).length;
      const decision = decideStage(volume, before, { path, capability }, { staged, max: options.maxVolumes });
      if (decision === 'staged' && before?.staging !== undefined && (await isStaged(work, volume, before.staging)))
        return {};
      const readonly = isReadOnly({ capability, attachedReadonly: attachment.readonly });
      const staging: Staging = { path, capability, readonly, done: false };
      const record = await work.putOnNode({ ...(before ?? NOTHING_ON_NODE(id)), staging });
      try {
        await stage(work, volume, staging);
      } catch (error) {
        if (record.publications.length === 0) await unstage(work, id, path);
        throw error;
      }
      await work.putOnNode({ ...record, staging: { ...staging, done: true } });
      return {};
    });
  },

  async NodeUnstageVolume(request, work) {
    const id = requireString('volume_id', request.volume_id);
    const path = placeOfRequest('staging_target_path', request.staging_target_path, () => work.volume(id));
    return work.driver.locks.hold('NodeUnstageVolume', [id], async () => {
      work.volume(id);
      const decision = decideUnstage(work.store.onNode(id), id, path);
      if (decision === 'unstage' || (await ownMountAt(work, id, path)) !== undefined) await unstage(work, id, path);
      return {};
    });
  },

  async NodePublishVolume(request, work) {
    const { driver, store } = work;
    const id = requireString('volume_id', request.volume_id);
    const capability = parseCapability(request.volume_capability, { mountGroup: driver.options.mountGroup });
    const { readonly, volume_context: context } = request;
    // An inline volume is made by this very call.
    const findVolume = isEphemeral(context) ? undefined : () => work.volume(id);
    const target = placeOfRequest('target_path', request.target_path, findVolume);
    return driver.locks.hold('NodePublishVolume', [id], async () => {
      if (isEphemeral(context)) {
        await publishInline(work, { volumeId: id, target, capability, readonly, context });
        return {};
      }
      const volume = work.volume(id);
      checkContext(context, volume.allocation, 'required');
      checkAttached(volume, driver.options.nodeId, request.publish_context, driver.options.attach);
      const stagingPath =
        request.staging_target_path === '' ? '' : placeOfRequest('staging_target_path', request.staging_target_path);
      const before = store.onNode(id) ?? NOTHING_ON_NODE(id);
      const staging = requireStaged(id, before, stagingPath);
      const wanted = { stagingPath, target, capability, readonly };
      const decision = decidePublish(volume, before, wanted);
      if (!(await isDirectory(dirname(target)))) throw invalid(`the directory of target_path ${target} does not exist`);
      if (decision === 'published' && (await ownMountAt(work, id, target)) !== undefined) return {};
      if (!(await isStaged(work, volume, staging))) {
        throw precondition(`volume ${id} is not mounted at ${staging.path} any more: call NodeStageVolume again`);
      }
      await refuseForeignMount(work, id, target);
      const others = before.publications.filter((each) => each.target !== target);
      const publication = { target, capability, readonly };
      await work.putOnNode({ ...before, publications: [...others, { ...publication, done: false }] });
      try {
        await publish(work, volume, staging, wanted);
      } catch (error) {
        await unpublish(work, id, target);
        throw error;
      }
      await work.putOnNode({ ...before, publications: [...others, { ...publication, done: true }] });
      return {};
    });
  },

  async NodeUnpublishVolume(request, work) {
    const id = requireString('volume_id', request.volume_id);
    // An inline volume is removed with its last publication: a second call has nothing left to do.
    const findVolume = isEphemeralId(id) ? undefined : () => work.volume(id);
    const target = placeOfRequest('target_path', request.target_path, findVolume);
    return work.driver.locks.hold('NodeUnpublishVolume', [id], async () => {
      if (isEphemeralId(id) && work.store.volume(id) === undefined) return {};
      const volume = work.volume(id);
      if (volume.ephemeral === true) await unpublishInline(work, id, target);
      else await unpublish(work, id, target);
      return {};
    });
  },

  /** Takes no lock: monitoring must not delay the other calls. */
  async NodeGetVolumeStats(request, work) {
    const id = requireString('volume_id', request.volume_id);
    const path = volumePathOf(work, id, request.volume_path);
    const volume = work.volume(id);
    const record = work.store.onNode(id);
    const place = placeOf(id, record, path);
    const abnormal = await abnormalityAt(work, volume, record ?? NOTHING_ON_NODE(id), path);
    const volume_condition = conditionMessage(abnormal);
    const capability = place.kind === 'staging' ? place.staging.capability : place.publication.capability;
    if (capability.type === 'block')
      return { usage: [{ unit: 'BYTES', total: volume.capacityBytes }], volume_condition };
    // The figures of what is mounted there instead would be another filesystem's.
    const mounted = (await ownMountAt(work, id, path)) !== undefined;
    return { usage: mounted ? await filesystemUsage(path) : [], volume_condition };
  },

  async NodeExpandVolume(request, work) {
    const { driver, store } = work;
    const id = requireString('volume_id', request.volume_id);
    const path = volumePathOf(work, id, request.volume_path);
    const range = parseRange(request.capacity_range);
    return driver.locks.hold('NodeExpandVolume', [id], async () => {
      const volume = work.volume(id);
      const record = store.onNode(id);
      const place = placeOf(id, record, path);
      if (request.volume_capability !== null) {
        const capability = parseCapability(request.volume_capability, { mountGroup: driver.options.mountGroup });
        const why = whyUnsupported(volume.capabilities, capability);
        if (why !== undefined) throw invalid(`volume_capability: ${why}`);
      }
      checkNodeExpansion(volume, range);
      const staging = record?.staging;
      const capability = place.kind === 'staging' ? place.staging.capability : place.publication.capability;
      if (
        staging?.readonly === true &&
        (volume.filesystem?.bytes ?? 0) < volume.capacityBytes &&
        capability.type === 'mount'
      ) {
        throw precondition(`volume ${id} is staged read-only, and its filesystem cannot grow`);
      }
      // Where it is published it may be read-only; where it is staged it is not.
      await growOnNode(work, volume, capability.type === 'block' ? undefined : (staging?.path ?? path));
      return { capacity_bytes: volume.capacityBytes };
    });
  },

  NodeGetCapabilities: async (_request, { driver }) => ({
    capabilities: [...CAPABILITIES, ...(driver.options.mountGroup ? (['VOLUME_MOUNT_GROUP'] as const) : [])].map(
      (type) => ({
        rpc: { type },
      }),
    ),
  }),

  NodeGetInfo: async (_request, { driver }) => ({
    node_id: driver.options.nodeId,
    max_volumes_per_node: driver.options.maxVolumes,
    accessible_topology: topologyOf(driver.options.nodeId),
  }),
};
