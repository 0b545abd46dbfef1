// The rules of mirror pods: which objects at the API server show the static pods of this node, and what has to be made or
// taken away so that they do. Pure; mirror-pods.ts acts on it.

import type { Node, Pod } from '../../client/types.ts';
import { CONFIG_HASH, CONFIG_MIRROR, CONFIG_SOURCE, isStaticPod } from '../model/static-pods.ts';

/** "name_namespace", as the kubelet calls a pod by its name alone. */
export function fullName({ metadata }: Pod): string {
  return `${metadata.name}_${metadata.namespace}`;
}

/** Whether `mirror` shows `pod` as it is now: nothing but the hash counts, whatever else of it was edited. */
export function isMirrorOf(mirror: Pod, pod: Pod): boolean {
  return (
    fullName(mirror) === fullName(pod) &&
    mirror.metadata.annotations?.[CONFIG_MIRROR] === pod.metadata.annotations?.[CONFIG_HASH]
  );
}

/** A pod from the API server may not claim another source by annotation. */
export function asApiPod(pod: Pod): Pod {
  if (!isStaticPod(pod)) return pod;
  const annotations = { ...pod.metadata.annotations, [CONFIG_SOURCE]: 'api' };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

export interface MirrorFacts {
  /** Static pods that should run, by full name; undefined until every source of them has spoken. */
  readonly statics: ReadonlyMap<string, Pod> | undefined;
  /** Mirror pods of this node that the API server has, by full name; undefined until the first list. */
  readonly mirrors: ReadonlyMap<string, Pod> | undefined;
  /** Uids of the pods that are on the node, those being stopped too, by full name. */
  readonly present: ReadonlyMap<string, readonly string[]>;
}

export type MirrorAction =
  | { readonly kind: 'create'; readonly pod: Pod }
  | { readonly kind: 'delete'; readonly mirror: Pod; readonly why: 'replaced' | 'deleted' | 'orphaned' };

/** What to do now, at most one action per name: a deleted mirror is created again when it is gone. */
export function decideMirrors({ statics, mirrors, present }: MirrorFacts): readonly MirrorAction[] {
  // Until both sides are listed, a missing pod may only not have been delivered yet.
  if (statics === undefined || mirrors === undefined) return [];
  const actions: MirrorAction[] = [];
  for (const [name, pod] of statics) {
    const mirror = mirrors.get(name);
    const predecessor = (present.get(name) ?? []).some((uid) => uid !== pod.metadata.uid);
    // Until the pod it replaces has ended, the object goes on showing that one.
    if (predecessor) continue;
    if (mirror === undefined) actions.push({ kind: 'create', pod });
    else if (mirror.metadata.deletionTimestamp !== undefined) actions.push({ kind: 'delete', mirror, why: 'deleted' });
    else if (!isMirrorOf(mirror, pod)) actions.push({ kind: 'delete', mirror, why: 'replaced' });
  }
  for (const [name, mirror] of mirrors) {
    // While anything of the pod runs, its object stays, so that it can be seen ending.
    if (!statics.has(name) && !present.has(name)) actions.push({ kind: 'delete', mirror, why: 'orphaned' });
  }
  return actions;
}

/** The object to create for a static pod. It belongs to the Node, and goes with it. */
export function mirrorOf(pod: Pod, node: Pick<Node, 'metadata'>): object {
  const { name, namespace, labels, annotations } = pod.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [CONFIG_MIRROR]: annotations?.[CONFIG_HASH] ?? pod.metadata.uid },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Node', name: node.metadata.name, uid: node.metadata.uid, controller: true },
      ],
    },
    spec: pod.spec,
  };
}

/** Whether a container of the pod was started and the pod has not ended, by what is written of it. */
export function isUnderWay({ status }: Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return statuses.some(({ containerID, restartCount }) => containerID !== undefined || restartCount > 0);
}

/** The static pod with the status and version of its mirror: what was last written of it. */
export function withMirrorStatus(pod: Pod, mirror: Pod): Pod {
  const { resourceVersion } = mirror.metadata;
  const { status, ...rest } = pod;
  const written = mirror.status ?? status;
  return {
    ...rest,
    metadata: { ...pod.metadata, resourceVersion },
    ...(written === undefined ? {} : { status: written }),
  };
}
