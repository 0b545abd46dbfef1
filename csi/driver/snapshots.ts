// The Controller service's snapshots: complete copies of a volume's image, by reflink where the disk's filesystem has it.
// A mounted volume is frozen while it is copied, so that a copy is consistent.

import type { ControllerDefinition } from '../../proto/gen/csi/v1/Controller.ts';
import { checkExistingSnapshot, paginate } from './decide-controller.ts';
import { invalid, notFound, precondition } from './errors.ts';
import { flushDevice, freeze, thaw } from './filesystems.ts';
import { copyImage, imageSize } from './images.ts';
import { listLoopDevices } from './loop-devices.ts';
import { snapshotMessage } from './messages.ts';
import { isKubernetesKey, isSafeId, snapshotIdOf } from './names.ts';
import { requireCapacity } from './pool.ts';
import { requireEntries, requireName, requireString } from './requests.ts';
import type { Service, Work } from './work.ts';

type Snapshots = Pick<
  Service<ControllerDefinition>,
  'CreateSnapshot' | 'DeleteSnapshot' | 'ListSnapshots' | 'GetSnapshot'
>;

/**
 * Runs `copy` while the volume is frozen. The freeze is recorded first: a driver that is killed during the copy thaws the
 * volume when it starts again.
 */
export async function withFrozenVolume<T>(work: Work, volumeId: string, copy: () => Promise<T>): Promise<T> {
  if (work.store.volume(volumeId)?.formatting !== undefined) {
    throw precondition(`volume ${volumeId} was being formatted when the driver ended: stage it once`);
  }
  const node = work.store.onNode(volumeId);
  const mounted = node?.staging?.done === true && node.staging.capability.type === 'mount' && !node.staging.readonly;
  if (node?.staging === undefined || !mounted) {
    const image = work.store.volumeImage(volumeId);
    for (const each of await listLoopDevices()) if (each.image === image) await flushDevice(each.device, work.run);
    return copy();
  }
  await work.putOnNode({ ...node, frozen: true });
  try {
    await freeze(node.staging.path, work.run);
    return await copy();
  } finally {
    await thaw(node.staging.path, work.driver.exec);
    await work.store.putOnNode(node);
  }
}

export const snapshots: Snapshots = {
  async CreateSnapshot(request, work) {
    const { driver, store } = work;
    const name = requireName(request.name);
    const volumeId = requireString('source_volume_id', request.source_volume_id);
    const unknown = Object.keys(request.parameters).filter((key) => !isKubernetesKey(key));
    if (unknown.length > 0) throw invalid(`unknown parameter ${unknown.join(', ')}: snapshots have none`);
    const id = snapshotIdOf(name);
    return driver.locks.hold('CreateSnapshot', [id, volumeId], async () => {
      const existing = store.snapshot(id);
      if (existing !== undefined) {
        checkExistingSnapshot(existing, volumeId);
        return { snapshot: snapshotMessage(existing) };
      }
      const volume = work.volume(volumeId);
      if (volume.ephemeral === true) throw invalid(`volume ${volumeId} is inline and goes with its pod`);
      const size = await imageSize(store.volumeImage(volumeId));
      await requireCapacity(work, volume.capacityBytes, size?.allocatedBytes ?? 0);
      await work.step();
      const createdAt = driver.clock.now();
      await withFrozenVolume(work, volumeId, () =>
        copyImage(store.volumeImage(volumeId), store.snapshotImage(id), volume.capacityBytes, work.run),
      );
      const record = {
        id,
        name,
        sourceVolumeId: volumeId,
        sizeBytes: volume.capacityBytes,
        createdAt,
        capabilities: volume.capabilities,
        ...(volume.filesystem === undefined ? {} : { filesystem: volume.filesystem }),
      };
      await work.putSnapshot(record);
      return { snapshot: snapshotMessage(record) };
    });
  },

  /** Volumes that were made from it are copies of their own, and stay as they are. */
  async DeleteSnapshot(request, work) {
    const id = requireString('snapshot_id', request.snapshot_id);
    return work.driver.locks.hold('DeleteSnapshot', [id], async () => {
      if (isSafeId(id) && work.store.snapshot(id) !== undefined) await work.removeSnapshot(id);
      return {};
    });
  },

  async ListSnapshots(request, work) {
    const max = requireEntries('max_entries', request.max_entries);
    const { source_volume_id: source, snapshot_id: id } = request;
    const matching = work.store
      .snapshots()
      .filter((each) => (source === '' || each.sourceVolumeId === source) && (id === '' || each.id === id));
    const page = paginate(matching, max, request.starting_token);
    return { entries: page.items.map((each) => ({ snapshot: snapshotMessage(each) })), next_token: page.nextToken };
  },

  async GetSnapshot(request, work) {
    const id = requireString('snapshot_id', request.snapshot_id);
    const snapshot = work.store.snapshot(id);
    if (snapshot === undefined) throw notFound(`snapshot ${id} does not exist`);
    return { snapshot: snapshotMessage(snapshot) };
  },
};
