// Original file: plugin-registration.proto


export interface PluginInfo {
  'type'?: (string);
  'name'?: (string);
  'endpoint'?: (string);
  'supported_versions'?: (string)[];
}

export interface PluginInfo__Output {
  'type': (string);
  'name': (string);
  'endpoint': (string);
  'supported_versions': (string)[];
}
