// Original file: containerd-events.proto


export interface SubscribeRequest {
  'filters'?: (string)[];
}

export interface SubscribeRequest__Output {
  'filters': (string)[];
}
