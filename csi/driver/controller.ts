// The Controller service's volumes: created, found, attached, grown, deleted. A volume is an image file and a record;
// the record is written last and removed first. Snapshots are in snapshots.ts.

import { readMounts } from '../../lib/mounts.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { ControllerDefinition } from '../../proto/gen/csi/v1/Controller.ts';
import type { VolumeCapability__Output } from '../../proto/gen/csi/v1/VolumeCapability.ts';
import type { VolumeCondition } from '../../proto/gen/csi/v1/VolumeCondition.ts';
import { type Capability, capabilityMessage, parseCapability, whyUnsupported } from './capability.ts';
import { chooseCapacity, decideExpansion, minimumCapacity, parseRange, sizeBounds } from './capacity.ts';
import { abnormality } from './condition.ts';
import {
  type CreateRequest,
  checkDeletable,
  checkExisting,
  checkSource,
  decideAttach,
  isOnNode,
  paginate,
} from './decide-controller.ts';
import { DriverError, invalid, notFound, precondition } from './errors.ts';
import { copyImage, createImage, freeBytes, growImage, imageSize } from './images.ts';
import { detachLoop, listLoopDevices } from './loop-devices.ts';
import { conditionMessage, parseSource, volumeMessage } from './messages.ts';
import { loopOf } from './mounts.ts';
import { ATTACHMENT_KEY, attachmentOf, volumeIdOf } from './names.ts';
import { readAvailableCapacity, requireCapacity } from './pool.ts';
import type { VolumeRecord } from './records.ts';
import { checkContext, parseParameters, requireEntries, requireName, requireString } from './requests.ts';
import { withFrozenVolume } from './snapshots.ts';
import { contains, meets } from './topology.ts';
import type { Driver, Service, Work } from './work.ts';

type Volumes = Omit<
  Service<ControllerDefinition>,
  | 'CreateSnapshot'
  | 'DeleteSnapshot'
  | 'ListSnapshots'
  | 'GetSnapshot'
  | 'ControllerGetCapabilities'
  | 'ControllerModifyVolume'
>;

/** Nodes that can use the driver's volumes: its own, and peers that share its disk. */
function nodesOf(driver: Driver): readonly string[] {
  return [driver.options.nodeId, ...driver.options.peerNodes];
}

function parseCapabilities(driver: Driver, raw: readonly VolumeCapability__Output[]): readonly Capability[] {
  if (raw.length === 0) throw invalid('volume_capabilities is missing');
  const parsed = raw.map((each) => parseCapability(each, { mountGroup: driver.options.mountGroup }));
  const types = new Set(parsed.flatMap((each) => (each.type === 'mount' ? [each.fsType] : [])));
  if (types.size > 1) throw invalid(`one volume cannot hold ${[...types].join(' and ')}`);
  return parsed;
}

/** Volumes that CreateVolume made; inline volumes are made by the node. */
function created(work: Work): readonly VolumeRecord[] {
  return work.store.volumes().filter((volume) => volume.ephemeral !== true);
}

async function create(work: Work, id: string, request: CreateRequest): Promise<VolumeRecord> {
  const { store } = work;
  const { source, capabilities } = request;
  const from =
    source === undefined ? undefined : source.type === 'snapshot' ? store.snapshot(source.id) : store.volume(source.id);
  if (source !== undefined && (from === undefined || ('ephemeral' in from && from.ephemeral === true))) {
    throw notFound(`the source ${source.type} ${source.id} does not exist`);
  }
  if (!request.accessible) {
    throw new DriverError(
      'RESOURCE_EXHAUSTED',
      `no volume can be made in the required topologies: this is node ${nodesOf(work.driver).join(', ')}`,
    );
  }
  if (from !== undefined) checkSource(from, capabilities);
  const sourceBytes = from === undefined ? 0 : 'capacityBytes' in from ? from.capacityBytes : from.sizeBytes;
  const bytes = chooseCapacity(request.range, minimumCapacity(capabilities), sourceBytes);
  await requireCapacity(work, bytes);
  const image = store.volumeImage(id);
  await work.step();
  if (source === undefined) await createImage(image, bytes, request.allocation, work.run);
  else if (source.type === 'snapshot') await copyImage(store.snapshotImage(source.id), image, bytes, work.run);
  else await withFrozenVolume(work, source.id, () => copyImage(store.volumeImage(source.id), image, bytes, work.run));
  if (source !== undefined) await growImage(image, bytes, request.allocation, work.run);
  // What is in the copy, as it was when it was made.
  const filesystem = source?.type === 'volume' ? store.volume(source.id)?.filesystem : from?.filesystem;
  return work.putVolume({
    id,
    name: request.name,
    capacityBytes: bytes,
    capabilities,
    allocation: request.allocation,
    ...(source === undefined ? {} : { source }),
    ...(filesystem === undefined ? {} : { filesystem }),
  });
}

async function condition(work: Work, volume: VolumeRecord): Promise<VolumeCondition> {
  const { store } = work;
  const [image, free] = [await imageSize(store.volumeImage(volume.id)), await freeBytes(store.stateDir)];
  return conditionMessage(abnormality({ capacityBytes: volume.capacityBytes, image, freeBytes: free }));
}

async function entry(work: Work, volume: VolumeRecord) {
  const published_node_ids = Object.keys(volume.attachments ?? {});
  return {
    volume: volumeMessage(volume, nodesOf(work.driver)),
    status: { published_node_ids, volume_condition: await condition(work, volume) },
  };
}

/** Loop devices that a crash left attached go; one that is mounted is in use. */
async function releaseImage(work: Work, volume: VolumeRecord): Promise<void> {
  const image = work.store.volumeImage(volume.id);
  const devices = (await listLoopDevices()).filter((each) => each.image === image).map((each) => each.device);
  if (devices.length === 0) return;
  const mount = (await readMounts()).find((each) => devices.includes(loopOf(each) ?? ''));
  if (mount !== undefined) throw precondition(`volume ${volume.id} is in use: mounted at ${mount.path}`);
  for (const device of devices) await detachLoop(device, work.run);
}

export const volumes: Volumes = {
  async CreateVolume(request, work) {
    const { driver, store } = work;
    const name = requireName(request.name);
    const parsed: CreateRequest = {
      name,
      range: parseRange(request.capacity_range),
      capabilities: parseCapabilities(driver, request.volume_capabilities),
      allocation: parseParameters(request.parameters, request.mutable_parameters).allocation,
      source: parseSource(request.volume_content_source),
      accessible: meets(request.accessibility_requirements, nodesOf(driver)),
    };
    const id = volumeIdOf(name);
    const keys = [id, ...(parsed.source === undefined ? [] : [parsed.source.id])];
    return driver.locks.hold('CreateVolume', keys, async () => {
      const existing = store.volume(id);
      if (existing !== undefined) checkExisting(existing, parsed);
      return { volume: volumeMessage(existing ?? (await create(work, id, parsed)), nodesOf(driver)) };
    });
  },

  async DeleteVolume(request, work) {
    const id = requireString('volume_id', request.volume_id);
    return work.driver.locks.hold('DeleteVolume', [id], async () => {
      const volume = work.store.volume(id);
      if (volume === undefined) return {};
      checkDeletable(volume, work.store.onNode(id));
      await releaseImage(work, volume);
      await work.removeVolume(id);
      return {};
    });
  },

  async ControllerPublishVolume(request, work) {
    const { driver, store } = work;
    if (!driver.options.attach) throw new DriverError('UNIMPLEMENTED', 'volumes are not attached: start with --attach');
    const id = requireString('volume_id', request.volume_id);
    const nodeId = requireString('node_id', request.node_id, 256);
    const capability = parseCapability(request.volume_capability, { mountGroup: driver.options.mountGroup });
    return driver.locks.hold('ControllerPublishVolume', [id], async () => {
      const volume = work.volume(id);
      checkContext(request.volume_context, volume.allocation, 'required');
      if (!nodesOf(driver).includes(nodeId)) throw notFound(`node ${nodeId} does not exist`);
      const others = store.volumes().filter((each) => each.id !== id && getOwn(each.attachments, nodeId) !== undefined);
      const wanted = { nodeId, capability, readonly: request.readonly };
      if (decideAttach(volume, wanted, others.length, driver.options.maxVolumes) === 'attach') {
        const attachments = { ...volume.attachments, [nodeId]: { capability, readonly: request.readonly } };
        await work.putVolume({ ...volume, attachments });
      }
      return { publish_context: { [ATTACHMENT_KEY]: attachmentOf(id, nodeId) } };
    });
  },

  async ControllerUnpublishVolume(request, work) {
    const { driver, store } = work;
    if (!driver.options.attach) throw new DriverError('UNIMPLEMENTED', 'volumes are not attached: start with --attach');
    const id = requireString('volume_id', request.volume_id);
    return driver.locks.hold('ControllerUnpublishVolume', [id], async () => {
      const volume = store.volume(id);
      const { [request.node_id]: gone, ...left } = volume?.attachments ?? {};
      const remaining = request.node_id === '' ? {} : left;
      if (volume === undefined || (gone === undefined && request.node_id !== '')) return {};
      const here =
        getOwn(volume.attachments, driver.options.nodeId) !== undefined &&
        getOwn(remaining, driver.options.nodeId) === undefined;
      if (here && isOnNode(store.onNode(id))) {
        throw precondition(`volume ${id} is still staged or published on node ${driver.options.nodeId}`);
      }
      await work.putVolume({ ...volume, attachments: remaining });
      return {};
    });
  },

  async ValidateVolumeCapabilities(request, work) {
    const id = requireString('volume_id', request.volume_id);
    if (request.volume_capabilities.length === 0) throw invalid('volume_capabilities is missing');
    const volume = work.volume(id);
    checkContext(request.volume_context, volume.allocation, 'optional');
    let wanted: readonly Capability[];
    try {
      wanted = parseCapabilities(work.driver, request.volume_capabilities);
      const requested = parseParameters(request.parameters, request.mutable_parameters);
      if (request.parameters['allocation'] !== undefined && requested.allocation !== volume.allocation) {
        return { message: `the volume's allocation is ${volume.allocation}` };
      }
    } catch (error) {
      // A capability that is well-formed but not supported is an answer here, not a failure.
      if (
        error instanceof DriverError &&
        request.volume_capabilities.every((each) => each.access_mode !== null && each.access_type !== undefined)
      ) {
        return { message: error.message };
      }
      throw error;
    }
    for (const capability of wanted) {
      const why = whyUnsupported(volume.capabilities, capability);
      if (why !== undefined) return { message: why };
    }
    return {
      confirmed: {
        volume_context: request.volume_context,
        volume_capabilities: wanted.map(capabilityMessage),
        parameters: request.parameters,
      },
    };
  },

  async ListVolumes(request, work) {
    const max = requireEntries('max_entries', request.max_entries);
    const page = paginate(created(work), max, request.starting_token);
    const entries = await Promise.all(page.items.map((volume) => entry(work, volume)));
    return { entries, next_token: page.nextToken };
  },

  async GetCapacity(request, work) {
    const { driver } = work;
    parseParameters(request.parameters, {});
    const capabilities =
      request.volume_capabilities.length === 0 ? [] : parseCapabilities(driver, request.volume_capabilities);
    const topology = request.accessible_topology;
    const here = topology === null || nodesOf(driver).some((node) => contains(topology, node));
    const available = here ? await readAvailableCapacity(work) : 0;
    const { largest, smallest } = sizeBounds(available, minimumCapacity(capabilities));
    return {
      available_capacity: available,
      // What a scheduler goes by, rather than by the room.
      ...(largest === undefined ? {} : { maximum_volume_size: { value: largest } }),
      minimum_volume_size: { value: smallest },
    };
  },

  async ControllerGetVolume(request, work) {
    const volume = work.volume(requireString('volume_id', request.volume_id));
    return entry(work, volume);
  },

  async ControllerExpandVolume(request, work) {
    const id = requireString('volume_id', request.volume_id);
    const range = parseRange(request.capacity_range);
    if (range === undefined) throw invalid('capacity_range is missing');
    return work.driver.locks.hold('ControllerExpandVolume', [id], async () => {
      const volume = work.volume(id);
      if (request.volume_capability !== null) {
        const capability = parseCapability(request.volume_capability, { mountGroup: work.driver.options.mountGroup });
        const why = whyUnsupported(volume.capabilities, capability);
        if (why !== undefined) throw invalid(`volume_capability: ${why}`);
      }
      const expansion = decideExpansion(volume.capacityBytes, range);
      if (expansion.kind === 'grow') {
        await requireCapacity(work, expansion.bytes - volume.capacityBytes);
        await work.step();
        await growImage(work.store.volumeImage(id), expansion.bytes, volume.allocation, work.run);
        await work.putVolume({ ...volume, capacityBytes: expansion.bytes });
      }
      const capacity = expansion.kind === 'grow' ? expansion.bytes : volume.capacityBytes;
      // Also for block volumes: the loop device has to be resized.
      return { capacity_bytes: capacity, node_expansion_required: true };
    });
  },
};
