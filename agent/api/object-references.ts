// Which ConfigMaps and Secrets a pod refers to, and through what. Pure. Never reads them.

import type { Container, EphemeralContainer, Pod } from '../../client/types.ts';

export type ObjectKind = 'configMap' | 'secret';

/** One object that a pod refers to. */
export interface ObjectReference {
  readonly kind: ObjectKind;
  readonly name: string;
  /** A volume shows it: what changes in it has to reach the pod's files. Else only new containers or pulls see it. */
  readonly live: boolean;
}

export function referenceKey(kind: ObjectKind, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

type Found = (kind: ObjectKind, name: string | undefined, live: boolean) => void;

function ofContainer({ env = [], envFrom = [] }: Container | EphemeralContainer, found: Found): void {
  for (const { valueFrom } of env) {
    found('configMap', valueFrom?.configMapKeyRef?.name, false);
    found('secret', valueFrom?.secretKeyRef?.name, false);
  }
  for (const { configMapRef, secretRef } of envFrom) {
    found('configMap', configMapRef?.name, false);
    found('secret', secretRef?.name, false);
  }
}

function ofVolume(volume: NonNullable<Pod['spec']['volumes']>[number], found: Found): void {
  found('configMap', volume.configMap?.name, true);
  found('secret', volume.secret?.secretName, true);
  for (const { configMap, secret } of volume.projected?.sources ?? []) {
    found('configMap', configMap?.name, true);
    found('secret', secret?.name, true);
  }
  found('secret', volume.csi?.nodePublishSecretRef?.name, false);
}

/** Whether a volume of the pod shows trust anchors of the cluster. */
export function showsTrustBundles(pod: Pod): boolean {
  const sources = (pod.spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some(({ clusterTrustBundle }) => clusterTrustBundle !== undefined);
}

/** Every object of the pod's own namespace that it refers to, each once; by `referenceKey`. */
export function objectReferences(pod: Pod): ReadonlyMap<string, ObjectReference> {
  const { initContainers = [], containers, ephemeralContainers = [], volumes = [], imagePullSecrets = [] } = pod.spec;
  const references = new Map<string, ObjectReference>();
  const found: Found = (kind, name, live) => {
    if (name === undefined || name === '') return;
    const key = referenceKey(kind, pod.metadata.namespace, name);
    references.set(key, { kind, name, live: live || references.get(key)?.live === true });
  };
  for (const container of [...initContainers, ...containers, ...ephemeralContainers]) ofContainer(container, found);
  for (const volume of volumes) ofVolume(volume, found);
  for (const { name } of imagePullSecrets) found('secret', name, false);
  return references;
}
