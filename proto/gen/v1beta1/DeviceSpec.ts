// Original file: device-plugin.proto


export interface DeviceSpec {
  'container_path'?: (string);
  'host_path'?: (string);
  'permissions'?: (string);
}

export interface DeviceSpec__Output {
  'container_path': (string);
  'host_path': (string);
  'permissions': (string);
}
