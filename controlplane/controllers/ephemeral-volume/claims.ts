// The claims of a pod's generic ephemeral volumes: one a volume, named <pod>-<volume> and owned by the pod. Pure.

import type { Pod } from '../../../client/types.ts';
import { isOwnedBy, type PersistentVolumeClaim, type PodVolume } from '../../storage/objects.ts';

/** Undefined for a volume of another kind. */
export function claimFor(pod: Pod, volume: PodVolume): object | undefined {
  const template = volume.ephemeral?.volumeClaimTemplate;
  if (template === undefined) return undefined;
  const { name, namespace, uid } = pod.metadata;
  const { labels, annotations } = template.metadata ?? {};
  const owner = { apiVersion: 'v1', kind: 'Pod', name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: `${name}-${volume.name}`,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ownerReferences: [owner],
    },
    spec: template.spec,
  };
}

export type VolumeStep =
  | { readonly kind: 'create'; readonly volume: string; readonly name: string; readonly claim: object }
  /** The name is taken: the pod waits for a person. `message` is that of the event. */
  | { readonly kind: 'refuse'; readonly volume: string; readonly message: string };

/** What is left to do for a pod, in the order of its volumes. `find`: a claim of its namespace, by name. */
export function volumeSteps(
  pod: Pod,
  find: (name: string) => PersistentVolumeClaim | undefined,
): readonly VolumeStep[] {
  if (pod.metadata.deletionTimestamp !== undefined) return [];
  return (pod.spec.volumes ?? []).flatMap((volume): readonly VolumeStep[] => {
    const claim = claimFor(pod, volume);
    if (claim === undefined) return [];
    const name = `${pod.metadata.name}-${volume.name}`;
    const known = find(name);
    if (known === undefined) return [{ kind: 'create', volume: volume.name, name, claim }];
    if (isOwnedBy(known, pod)) return [];
    const { namespace = '' } = pod.metadata;
    const why = `PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`;
    return [{ kind: 'refuse', volume: volume.name, message: why }];
  });
}
