// Original file: pod-resources.proto

import type { CDIDevice as _v1_CDIDevice, CDIDevice__Output as _v1_CDIDevice__Output } from '../v1/CDIDevice.ts';

export interface ClaimResource {
  'cdi_devices'?: (_v1_CDIDevice)[];
  'driver_name'?: (string);
  'pool_name'?: (string);
  'device_name'?: (string);
  'share_id'?: (string);
  '_share_id'?: "share_id";
}

export interface ClaimResource__Output {
  'cdi_devices': (_v1_CDIDevice__Output)[];
  'driver_name': (string);
  'pool_name': (string);
  'device_name': (string);
  'share_id'?: (string);
  '_share_id'?: "share_id";
}
