// Original file: device-plugin.proto


export interface DevicePluginOptions {
  'pre_start_required'?: (boolean);
  'get_preferred_allocation_available'?: (boolean);
}

export interface DevicePluginOptions__Output {
  'pre_start_required': (boolean);
  'get_preferred_allocation_available': (boolean);
}
