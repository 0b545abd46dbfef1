// Original file: containerd-tasks.proto


export interface TaskOOM {
  'container_id'?: (string);
}

export interface TaskOOM__Output {
  'container_id': (string);
}
