// Original file: device-plugin.proto


export interface Mount {
  'container_path'?: (string);
  'host_path'?: (string);
  'read_only'?: (boolean);
}

export interface Mount__Output {
  'container_path': (string);
  'host_path': (string);
  'read_only': (boolean);
}
