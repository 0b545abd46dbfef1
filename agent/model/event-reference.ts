// What events are about: the node, a pod, or one container of it by its field path, as the kubelet refers to them. Pure;
// shared by all recorders of events.

import type { Pod } from '../../client/types.ts';

export interface EventObject {
  kind: string;
  apiVersion: string;
  metadata: Pod['metadata'];
  fieldPath?: string;
}

/** A node's events carry its name as the uid, as the kubelet's do. */
export function nodeReference(name: string): {
  kind: string;
  apiVersion: string;
  metadata: { name: string; uid: string };
} {
  return { kind: 'Node', apiVersion: 'v1', metadata: { name, uid: name } };
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
