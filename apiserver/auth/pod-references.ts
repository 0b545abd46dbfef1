// Which API objects a pod refers to: what the node authorizer grants to the node that the pod runs on, and what a mirror
// pod may not have. Pure. The fields are those that kube-apiserver visits (pkg/api/pod: VisitPodSecretNames,
// VisitPodConfigmapNames, HasAPIObjectReference).

import { getOwn } from '../../lib/own-property.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { type Container, type Pod, podOf, type Volume } from '../kinds/shapes.ts';
import { STORAGE_SOURCES } from '../kinds/storage/sources.ts';
import { isObject } from '../patch/json-value.ts';

export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Whether this is a node's copy of a static pod. A node is granted nothing because of such a pod. */
export function isMirrorPod(pod: KubeObject): boolean {
  return pod.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;
}

/** The names that are there and not empty. */
function present(names: readonly (string | undefined)[]): string[] {
  return names.flatMap((name) => (name === undefined || name === '' ? [] : [name]));
}

function containersOf({ spec }: Pick<Pod, 'spec'>): Container[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])];
}

function secretsOfVolume(volume: Volume): (string | undefined)[] {
  return [
    volume.secret?.secretName,
    ...(volume.projected?.sources ?? []).map((source) => source.secret?.name),
    volume.csi?.nodePublishSecretRef?.name,
    volume.azureFile?.secretName,
    volume.cephfs?.secretRef?.name,
    volume.cinder?.secretRef?.name,
    volume.flexVolume?.secretRef?.name,
    volume.iscsi?.secretRef?.name,
    volume.rbd?.secretRef?.name,
    volume.scaleIO?.secretRef?.name,
    volume.storageos?.secretRef?.name,
  ];
}

/** Every Secret that a field of the pod names; they are of the pod's namespace. */
export function secretNames(pod: Pick<Pod, 'spec'>): string[] {
  return present([
    ...(pod.spec?.imagePullSecrets ?? []).map(({ name }) => name),
    ...containersOf(pod).flatMap(({ env = [], envFrom = [] }) => [
      ...env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
      ...envFrom.map(({ secretRef }) => secretRef?.name),
    ]),
    ...(pod.spec?.volumes ?? []).flatMap(secretsOfVolume),
  ]);
}

/** Every ConfigMap that a field of the pod names; they are of the pod's namespace. */
export function configMapNames(pod: Pick<Pod, 'spec'>): string[] {
  return present([
    ...containersOf(pod).flatMap(({ env = [], envFrom = [] }) => [
      ...env.map(({ valueFrom }) => valueFrom?.configMapKeyRef?.name),
      ...envFrom.map(({ configMapRef }) => configMapRef?.name),
    ]),
    ...(pod.spec?.volumes ?? []).flatMap(({ configMap, projected }) => [
      configMap?.name,
      ...(projected?.sources ?? []).map((source) => source.configMap?.name),
    ]),
  ]);
}

/** The claim behind a volume, of the pod's namespace: the one it names, or the one made for a generic ephemeral volume. */
export function claimOfVolume(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

export function claimNames(pod: Pod): string[] {
  return present((pod.spec?.volumes ?? []).map((volume) => claimOfVolume(pod, volume)));
}

/** A field of what may be an object. Also for fields that are newer than the types of the API at hand. */
function fieldOf(object: unknown, field: string): unknown {
  return isObject(object) ? getOwn(object, field) : undefined;
}

/** The objects of a field that is a list. */
function listOf(object: unknown, field: string): Readonly<Record<string, unknown>>[] {
  const list = fieldOf(object, field);
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** What a volume's secret for the node's share of the work is named in; controllers' secrets are not among them. */
const CSI_SECRETS = ['nodeStageSecretRef', 'nodePublishSecretRef', 'nodeExpandSecretRef'];
const IN_TREE_WITH_SECRET = ['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'];

/** A Secret that a volume refers to; `otherwise` is the namespace where the reference has none. */
function secretOf(reference: unknown, otherwise: string | undefined): { namespace: string; name: string }[] {
  const name = text(fieldOf(reference, 'name')) ?? '';
  const namespace = text(fieldOf(reference, 'namespace')) || otherwise;
  return name === '' || namespace === undefined ? [] : [{ namespace, name }];
}

/**
 * The Secrets that a node needs for a PersistentVolume that is bound. References of a CSI volume name their namespace;
 * those of other volumes without one are of the claim's (pkg/api/persistentvolume: VisitPVSecretNames).
 */
export function nodeSecrets(volume: KubeObject): { readonly namespace: string; readonly name: string }[] {
  const spec = volume['spec'];
  const claimNamespace = text(fieldOf(fieldOf(spec, 'claimRef'), 'namespace'));
  const azureFile = fieldOf(spec, 'azureFile');
  return [
    ...CSI_SECRETS.flatMap((name) => secretOf(fieldOf(fieldOf(spec, 'csi'), name), undefined)),
    ...IN_TREE_WITH_SECRET.flatMap((source) => secretOf(fieldOf(fieldOf(spec, source), 'secretRef'), claimNamespace)),
    ...secretOf(
      { name: fieldOf(azureFile, 'secretName'), namespace: fieldOf(azureFile, 'secretNamespace') },
      claimNamespace,
    ),
  ];
}

/** The ResourceClaims of the pod: those named, and those made from a template by its status. */
export function resourceClaimNames({ spec, status }: Pod): string[] {
  const made = listOf(status, 'resourceClaimStatuses');
  return present([
    ...listOf(spec, 'resourceClaims').map((claim) =>
      claim['resourceClaimTemplateName'] === undefined
        ? text(claim['resourceClaimName'])
        : text(made.find(({ name }) => name === claim['name'])?.['resourceClaimName']),
    ),
    text(fieldOf(fieldOf(status, 'extendedResourceClaimStatus'), 'resourceClaimName')),
  ]);
}

export function serviceAccountNames({ spec }: Pod): string[] {
  return present([spec?.serviceAccountName]);
}

/** The names by which a pod refers to each resource that is granted through pods, in the order of the pod's fields. */
const REFERENCED = new Map<string, (pod: Pod) => string[]>([
  ['/secrets', secretNames],
  ['/configmaps', configMapNames],
  ['/persistentvolumeclaims', claimNames],
  ['/serviceaccounts', serviceAccountNames],
  ['resource.k8s.io/resourceclaims', resourceClaimNames],
]);

/** Whether a pod, which is no mirror pod, names the object. False for a resource that pods do not refer to. */
export function refersTo(pod: KubeObject, group: string, resource: string, name: string): boolean {
  return !isMirrorPod(pod) && REFERENCED.get(`${group}/${resource}`)?.(podOf(pod)).includes(name) === true;
}

/** Volumes that need nothing of the API, whatever they name. */
const PLAIN_VOLUMES: ReadonlySet<string> = new Set([...STORAGE_SOURCES, 'downwardAPI', 'emptyDir', 'gitRepo', 'image']);
const API_VOLUMES = new Map([
  ['configMap', 'configmaps (via configmap volumes)'],
  ['secret', 'secrets (via secret volumes)'],
  ['csi', 'csidrivers (via CSI volumes)'],
  ['glusterfs', 'endpoints (via glusterFS volumes)'],
  ['persistentVolumeClaim', 'persistentvolumeclaims'],
  ['ephemeral', 'persistentvolumeclaims (via ephemeral volumes)'],
  ['azureFile', 'secrets (via azureFile volumes)'],
]);
const API_SOURCES = new Map([
  ['configMap', 'configmaps (via projected volumes)'],
  ['secret', 'secrets (via projected volumes)'],
  ['serviceAccountToken', 'serviceaccounts (via projected volumes)'],
  ['clusterTrustBundle', 'clustertrustbundles'],
  ['podCertificate', 'podcertificates'],
]);

function fieldsOf(value: object, except?: string): string[] {
  return Object.entries(value).flatMap(([field, set]) => (field === except || set === undefined ? [] : [field]));
}

function referenceOfVolume(volume: Volume): string | undefined {
  for (const field of fieldsOf(volume, 'name')) {
    if (field === 'projected') {
      for (const source of volume.projected?.sources ?? []) {
        const [other] = fieldsOf(source).filter((kind) => kind !== 'downwardAPI');
        if (other !== undefined) return API_SOURCES.get(other) ?? `${other} (via projected volumes)`;
      }
    } else if (!PLAIN_VOLUMES.has(field)) return API_VOLUMES.get(field) ?? `${field} volumes`;
  }
  return undefined;
}

/**
 * The first kind of API object that the pod refers to, as kube-apiserver names it ("secrets (via secret volumes)"), or
 * undefined. A volume of a kind that is not known here counts as a reference.
 */
export function apiObjectReference(pod: Pod): string | undefined {
  if (serviceAccountNames(pod).length > 0 || (pod.spec?.serviceAccount ?? '') !== '') return 'serviceaccounts';
  if (secretNames(pod).length > 0) return 'secrets';
  if (configMapNames(pod).length > 0) return 'configmaps';
  if (listOf(pod.spec, 'resourceClaims').length > 0) return 'resourceclaims';
  for (const volume of pod.spec?.volumes ?? []) {
    const reference = referenceOfVolume(volume);
    if (reference !== undefined) return reference;
  }
  return undefined;
}
