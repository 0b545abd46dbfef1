// Original file: containerd-tasks.proto


export interface ContainerDelete {
  'id'?: (string);
}

export interface ContainerDelete__Output {
  'id': (string);
}
