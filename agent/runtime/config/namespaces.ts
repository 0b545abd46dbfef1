// Which Linux namespaces a pod shares with the node, and its containers with each other. Pure.

import type { Pod } from '../../../client/types.ts';
import type { NamespaceOption } from '../../../proto/gen/runtime/v1/NamespaceOption.ts';

/** A block of host ids that a pod's root is mapped to. */
export interface IdRange {
  readonly hostId: number;
  readonly length: number;
}

/** `userns` is the pod's block where hostUsers is false; `targetId` the container whose processes are shared. */
export function namespaceOptions(pod: Pod, userns: IdRange | undefined, targetId?: string): NamespaceOption {
  const { spec } = pod;
  const mapping =
    userns === undefined ? undefined : [{ container_id: 0, host_id: userns.hostId, length: userns.length }];
  const pid = spec.hostPID === true ? 'NODE' : spec.shareProcessNamespace === true ? 'POD' : 'CONTAINER';
  return {
    network: spec.hostNetwork === true ? 'NODE' : 'POD',
    ipc: spec.hostIPC === true ? 'NODE' : 'POD',
    ...(targetId === undefined ? { pid } : { pid: 'TARGET', target_id: targetId }),
    userns_options: mapping === undefined ? { mode: 'NODE' } : { mode: 'POD', uids: mapping, gids: mapping },
  };
}
