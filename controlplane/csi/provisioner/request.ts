// CreateVolume's request for a claim, and the PersistentVolume of its response. Pure.

import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import { setOwn } from '../../../lib/own-property.ts';
import type { CreateVolumeRequest } from '../../../proto/gen/csi/v1/CreateVolumeRequest.ts';
import type { Volume__Output } from '../../../proto/gen/csi/v1/Volume.ts';
import {
  ANNOTATIONS,
  formatBinary,
  type PersistentVolumeClaim,
  requestedBytes,
  type StorageClass,
  volumeMode,
} from '../../storage/objects.ts';
import { csiCapabilities } from '../shared/csi-volume.ts';
import {
  ParameterError,
  RESERVED_PREFIX,
  type SecretContext,
  type SecretUse,
  secretReference,
} from '../shared/secrets.ts';
import { nodeAffinity, type Requirement } from './topology.ts';

/** Keeps a released PersistentVolume until the driver's volume is deleted (KEP-2644). */
export const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';
/** In volume_context, who made the volume. */
const IDENTITY_KEY = 'storage.kubernetes.io/csiProvisionerIdentity';

const SECRETS: readonly SecretUse[] = [
  'provisioner',
  'controller-publish',
  'node-stage',
  'node-publish',
  'controller-expand',
  'node-expand',
];
const KNOWN_RESERVED = new Set([
  `${RESERVED_PREFIX}fstype`,
  ...SECRETS.flatMap((use) => [`${RESERVED_PREFIX}${use}-secret-name`, `${RESERVED_PREFIX}${use}-secret-namespace`]),
]);

/** The name of a claim's volume, the same at every attempt: CreateVolume is idempotent by name. */
export function volumeNameFor({ metadata }: PersistentVolumeClaim): string {
  return `pvc-${metadata.uid}`;
}

/** Whether this driver is to make a volume for the claim now. */
export function shouldProvision(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
  driver: string,
): boolean {
  if (storageClass?.provisioner !== driver || claim.metadata.deletionTimestamp !== undefined) return false;
  const { annotations = {} } = claim.metadata;
  const provisioner = annotations[ANNOTATIONS.storageProvisioner] ?? annotations[ANNOTATIONS.betaStorageProvisioner];
  if (provisioner !== driver || (claim.spec?.volumeName ?? '') !== '') return false;
  return (
    storageClass.volumeBindingMode !== 'WaitForFirstConsumer' || (annotations[ANNOTATIONS.selectedNode] ?? '') !== ''
  );
}

export interface Parameters {
  readonly fsType: string;
  /** The parameters that the driver receives. */
  readonly own: Readonly<Record<string, string>>;
}

/** Splits a class's parameters into the driver's own and Kubernetes'. Throws ParameterError for an unknown reserved one. */
export function splitParameters(all: Readonly<Record<string, string>> = {}): Parameters {
  const own: Record<string, string> = {};
  for (const [key, value] of Object.entries(all)) {
    if (!key.startsWith(RESERVED_PREFIX)) setOwn(own, key, value);
    else if (!KNOWN_RESERVED.has(key)) {
      throw new ParameterError(`found unknown parameter key "${key}" with reserved namespace csi.storage.k8s.io/`);
    }
  }
  return { fsType: all[`${RESERVED_PREFIX}fstype`] ?? '', own };
}

export interface ProvisionInput {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly driver: string;
  /** SINGLE_NODE_MULTI_WRITER */
  readonly singleNodeModes: boolean;
  readonly requirement?: Requirement;
  readonly secrets: Readonly<Record<string, string>>;
  /** The volume_id of the volume to copy. */
  readonly cloneOf?: string;
}

export function secretContext(claim: PersistentVolumeClaim): SecretContext {
  const { name, namespace = '', annotations = {} } = claim.metadata;
  return { volumeName: volumeNameFor(claim), claim: { name, namespace, annotations } };
}

/** Throws ParameterError for a class that makes no sense. */
export function createRequest(input: ProvisionInput): CreateVolumeRequest {
  const { claim, storageClass, requirement, cloneOf } = input;
  const { fsType, own } = splitParameters(storageClass.parameters);
  const described = {
    ...claim.spec,
    ...(storageClass.mountOptions === undefined ? {} : { mountOptions: storageClass.mountOptions }),
  };
  return {
    name: volumeNameFor(claim),
    capacity_range: { required_bytes: requestedBytes(claim).toString() },
    volume_capabilities: csiCapabilities(described, fsType, input.singleNodeModes),
    parameters: { ...own },
    secrets: { ...input.secrets },
    ...(requirement === undefined
      ? {}
      : {
          accessibility_requirements: {
            requisite: requirement.requisite.map((segments) => ({ segments: { ...segments } })),
            preferred: requirement.preferred.map((segments) => ({ segments: { ...segments } })),
          },
        }),
    ...(cloneOf === undefined ? {} : { volume_content_source: { volume: { volume_id: cloneOf } } }),
  };
}

/** The PersistentVolume for what the driver made. `identity` identifies the provisioner. */
export function persistentVolume(input: ProvisionInput, volume: Volume__Output, identity: string): object {
  const { claim, storageClass, driver } = input;
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const parameters = storageClass.parameters ?? {};
  const context = secretContext(claim);
  const secret = (use: SecretUse) => secretReference(use, parameters, context);
  const reference = <Field extends string>(field: Field, use: SecretUse) => {
    const found = secret(use);
    return found === undefined ? {} : { [field]: found };
  };
  const deletion = secret('provisioner');
  const block = volumeMode(claim.spec) === 'Block';
  const { fsType } = splitParameters(parameters);
  const bytes = BigInt(volume.capacity_bytes);
  const affinity = nodeAffinity(volume.accessible_topology.map(({ segments }) => segments));
  const reclaimPolicy = storageClass.reclaimPolicy ?? 'Delete';
  const spec: PersistentVolumeSpec = {
    accessModes: claim.spec?.accessModes ?? [],
    capacity: { storage: formatBinary(bytes === 0n ? requestedBytes(claim) : bytes) },
    claimRef: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      name,
      uid,
      resourceVersion,
      ...(namespace === undefined ? {} : { namespace }),
    },
    csi: {
      driver,
      volumeHandle: volume.volume_id,
      volumeAttributes: { ...volume.volume_context, [IDENTITY_KEY]: identity },
      ...(block || fsType === '' ? {} : { fsType }),
      ...reference('controllerPublishSecretRef', 'controller-publish'),
      ...reference('nodeStageSecretRef', 'node-stage'),
      ...reference('nodePublishSecretRef', 'node-publish'),
      ...reference('controllerExpandSecretRef', 'controller-expand'),
      ...reference('nodeExpandSecretRef', 'node-expand'),
    },
    persistentVolumeReclaimPolicy: reclaimPolicy,
    storageClassName: storageClass.metadata.name,
    volumeMode: volumeMode(claim.spec),
    ...(storageClass.mountOptions === undefined ? {} : { mountOptions: storageClass.mountOptions }),
    ...(affinity === undefined ? {} : { nodeAffinity: affinity }),
  };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeNameFor(claim),
      annotations: {
        [ANNOTATIONS.provisionedBy]: driver,
        [ANNOTATIONS.deletionSecretName]: deletion?.name ?? '',
        [ANNOTATIONS.deletionSecretNamespace]: deletion?.namespace ?? '',
      },
      ...(reclaimPolicy === 'Delete' ? { finalizers: [PROVISIONER_FINALIZER] } : {}),
    },
    spec,
  };
}

/** What a failed CreateVolume means. */
export type Outcome =
  /** Nothing was made, and nothing is on its way. */
  | 'final'
  /** The call may have succeeded or may yet: it must be repeated with the same name. */
  | 'background'
  /** Not on this node: the scheduler chooses anew. */
  | 'reschedule';

const UNCERTAIN = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'ABORTED']);

/**
 * `code` is the gRPC status; `movable` whether a node was chosen and the driver has topology. RESOURCE_EXHAUSTED means
 * that there is no capacity in the requested topology: the external-provisioner would repeat the call even for a claim
 * that is gone.
 */
export function classifyFailure(code: string, movable: boolean): Outcome {
  if (code === 'RESOURCE_EXHAUSTED') return movable ? 'reschedule' : 'final';
  return UNCERTAIN.has(code) ? 'background' : 'final';
}
