// Original file: csi.proto


export interface GetPluginInfoResponse {
  'name'?: (string);
  'vendor_version'?: (string);
  'manifest'?: ({[key: string]: string});
}

export interface GetPluginInfoResponse__Output {
  'name': (string);
  'vendor_version': (string);
  'manifest': ({[key: string]: string});
}
