// Original file: device-plugin.proto


export interface ContainerPreferredAllocationResponse {
  'deviceIDs'?: (string)[];
}

export interface ContainerPreferredAllocationResponse__Output {
  'deviceIDs': (string)[];
}
