// Original file: csi.proto

import type { VolumeCapability as _csi_v1_VolumeCapability, VolumeCapability__Output as _csi_v1_VolumeCapability__Output } from '../../csi/v1/VolumeCapability.ts';

export interface ControllerPublishVolumeRequest {
  'volume_id'?: (string);
  'node_id'?: (string);
  'volume_capability'?: (_csi_v1_VolumeCapability | null);
  'readonly'?: (boolean);
  'secrets'?: ({[key: string]: string});
  'volume_context'?: ({[key: string]: string});
}

export interface ControllerPublishVolumeRequest__Output {
  'volume_id': (string);
  'node_id': (string);
  'volume_capability': (_csi_v1_VolumeCapability__Output | null);
  'readonly': (boolean);
  'secrets': ({[key: string]: string});
  'volume_context': ({[key: string]: string});
}
