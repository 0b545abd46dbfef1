// Original file: csi.proto

import type { VolumeCapability as _csi_v1_VolumeCapability, VolumeCapability__Output as _csi_v1_VolumeCapability__Output } from '../../csi/v1/VolumeCapability.ts';

export interface NodeStageVolumeRequest {
  'volume_id'?: (string);
  'publish_context'?: ({[key: string]: string});
  'staging_target_path'?: (string);
  'volume_capability'?: (_csi_v1_VolumeCapability | null);
  'secrets'?: ({[key: string]: string});
  'volume_context'?: ({[key: string]: string});
}

export interface NodeStageVolumeRequest__Output {
  'volume_id': (string);
  'publish_context': ({[key: string]: string});
  'staging_target_path': (string);
  'volume_capability': (_csi_v1_VolumeCapability__Output | null);
  'secrets': ({[key: string]: string});
  'volume_context': ({[key: string]: string});
}
