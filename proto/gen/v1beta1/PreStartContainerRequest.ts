// Original file: device-plugin.proto


export interface PreStartContainerRequest {
  'devices_ids'?: (string)[];
}

export interface PreStartContainerRequest__Output {
  'devices_ids': (string)[];
}
