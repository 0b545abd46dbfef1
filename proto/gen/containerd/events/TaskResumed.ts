// Original file: containerd-tasks.proto


export interface TaskResumed {
  'container_id'?: (string);
}

export interface TaskResumed__Output {
  'container_id': (string);
}
