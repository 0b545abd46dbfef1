// What events are about: the pod, or one container of it by its field path, as the kubelet refers to them. Pure; shared
// by whoever records events about pods.

import type { Pod } from '../../client/types.ts';

export interface EventObject {
  kind: string;
  apiVersion: string;
  metadata: Pod['metadata'];
  fieldPath?: string;
}

export function podReference(pod: Pod): EventObject {
  return { kind: 'Pod', apiVersion: 'v1', metadata: pod.metadata };
}

/** "spec.containers{web}", "spec.initContainers{setup}", "spec.ephemeralContainers{debugger}" */
export function containerReference(pod: Pod, name: string): EventObject {
  const isInit = (pod.spec.initContainers ?? []).some((container) => container.name === name);
  const isEphemeral = (pod.spec.ephemeralContainers ?? []).some((container) => container.name === name);
  const list = isInit ? 'initContainers' : isEphemeral ? 'ephemeralContainers' : 'containers';
  return { ...podReference(pod), fieldPath: `spec.${list}{${name}}` };
}
