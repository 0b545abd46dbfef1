// How a static pod and its mirror are recognised: the kubelet's annotations, and what follows from them. Shared by
// the parts that make, admit, run and report such pods. Pure.

import type { Pod } from '../../client/types.ts';

/** Where the pod comes from: "file", "http" or "api". */
export const CONFIG_SOURCE = 'kubernetes.io/config.source';
/** The uid that was made of the manifest's content. */
export const CONFIG_HASH = 'kubernetes.io/config.hash';
/** When the manifest was first seen. */
export const CONFIG_SEEN = 'kubernetes.io/config.seen';
/** On a mirror pod: the hash of the static pod it shows. */
export const CONFIG_MIRROR = 'kubernetes.io/config.mirror';

/** PriorityClass values from here on are the system's own. */
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

export function isStaticPod({ metadata }: Pod): boolean {
  const source = metadata.annotations?.[CONFIG_SOURCE];
  return source !== undefined && source !== 'api';
}

export function isMirrorPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[CONFIG_MIRROR] !== undefined;
}

/** Pods that the node must have: static ones, and those of a system priority. */
export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
}
