// Records as the messages that answers carry. Pure.

import type { Snapshot } from '../../proto/gen/csi/v1/Snapshot.ts';
import type { Volume } from '../../proto/gen/csi/v1/Volume.ts';
import type { VolumeCondition } from '../../proto/gen/csi/v1/VolumeCondition.ts';
import type { VolumeContentSource, VolumeContentSource__Output } from '../../proto/gen/csi/v1/VolumeContentSource.ts';
import { invalid } from './errors.ts';
import type { SnapshotRecord, Source, VolumeRecord } from './records.ts';
import { requireString, volumeContext } from './requests.ts';
import { topologyOf } from './topology.ts';

function sourceMessage(source: Source): VolumeContentSource {
  return source.type === 'snapshot' ? { snapshot: { snapshot_id: source.id } } : { volume: { volume_id: source.id } };
}

/** Undefined when the volume begins empty. Throws INVALID_ARGUMENT for a source without a type or an id. */
export function parseSource(raw: VolumeContentSource__Output | null): Source | undefined {
  if (raw === null) return undefined;
  if (raw.snapshot !== null && raw.snapshot !== undefined) {
    return { type: 'snapshot', id: requireString('snapshot_id', raw.snapshot.snapshot_id) };
  }
  if (raw.volume !== null && raw.volume !== undefined) {
    return { type: 'volume', id: requireString('volume_id of the source', raw.volume.volume_id) };
  }
  throw invalid('volume_content_source has no type: snapshot or volume');
}

export function volumeMessage(volume: VolumeRecord, nodes: readonly string[]): Volume {
  return {
    volume_id: volume.id,
    capacity_bytes: volume.capacityBytes,
    volume_context: volumeContext(volume.allocation),
    ...(volume.source === undefined ? {} : { content_source: sourceMessage(volume.source) }),
    accessible_topology: nodes.map(topologyOf),
  };
}

/** `abnormal`: the message; undefined when nothing is wrong. */
export function conditionMessage(abnormal: string | undefined): VolumeCondition {
  return abnormal === undefined
    ? { abnormal: false, message: 'the image is whole, and there is room for it on the disk' }
    : { abnormal: true, message: abnormal };
}

export function snapshotMessage(snapshot: SnapshotRecord): Snapshot {
  return {
    snapshot_id: snapshot.id,
    source_volume_id: snapshot.sourceVolumeId,
    size_bytes: snapshot.sizeBytes,
    creation_time: {
      seconds: Math.floor(snapshot.createdAt / 1000),
      nanos: Math.round((snapshot.createdAt % 1000) * 1_000_000),
    },
    // The response is sent when the copy is complete.
    ready_to_use: true,
  };
}
