// Original file: device-plugin.proto


export interface ContainerAllocateRequest {
  'devices_ids'?: (string)[];
}

export interface ContainerAllocateRequest__Output {
  'devices_ids': (string)[];
}
