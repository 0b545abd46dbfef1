// The workload objects as the controllers see them: stored, and with what the server's defaults fill in. Types, and the
// names under which they are served.

import type * as apps from 'kubernetes-types/apps/v1';
import type * as autoscaling from 'kubernetes-types/autoscaling/v2';
import type * as batch from 'kubernetes-types/batch/v1';
import type * as certificates from 'kubernetes-types/certificates/v1';
import type * as core from 'kubernetes-types/core/v1';
import type { OwnerReference } from 'kubernetes-types/meta/v1';
import type * as policy from 'kubernetes-types/policy/v1';
import { resourcePath } from '../../../client/paths.ts';
import type { EventSubject } from '../../../client/recorder.ts';
import type { Stored, StoredMeta } from '../../../client/types.ts';

type Workload<T extends { spec?: unknown }> = Omit<T, 'metadata' | 'spec'> & {
  metadata: StoredMeta & { readonly namespace: string };
  spec: NonNullable<T['spec']>;
};
export type ReplicaSet = Workload<apps.ReplicaSet>;
export type Deployment = Workload<apps.Deployment>;
export type ReplicationController = Workload<core.ReplicationController>;
export type StatefulSet = Workload<apps.StatefulSet>;
export type DaemonSet = Workload<apps.DaemonSet>;
export type StatefulSetStatus = apps.StatefulSetStatus;
export type DaemonSetStatus = apps.DaemonSetStatus;
/** What a stateful or daemon set was like: a strategic merge patch that makes it so again. */
export type ControllerRevision = Omit<apps.ControllerRevision, 'metadata' | 'data'> & {
  metadata: StoredMeta & { readonly namespace: string };
  data?: { readonly spec?: { readonly template?: core.PodTemplateSpec & { readonly $patch?: string } } };
};
export type ReplicaSetStatus = apps.ReplicaSetStatus;
export type ReplicaSetCondition = apps.ReplicaSetCondition;
export type DeploymentStatus = apps.DeploymentStatus;
export type DeploymentCondition = apps.DeploymentCondition;
export type Job = Workload<batch.Job>;
export type JobStatus = batch.JobStatus;
export type JobCondition = batch.JobCondition;
export type CronJob = Workload<batch.CronJob>;
export type CronJobStatus = batch.CronJobStatus;
export type PodDisruptionBudget = Workload<policy.PodDisruptionBudget>;
export type PodDisruptionBudgetStatus = policy.PodDisruptionBudgetStatus;

export type CertificateSigningRequest = Stored<certificates.CertificateSigningRequest>;
export type HorizontalPodAutoscaler = Workload<autoscaling.HorizontalPodAutoscaler>;
/** A ReplicaSet or a ReplicationController. */
export interface Replicated {
  metadata: StoredMeta & { readonly namespace: string };
  readonly spec: {
    readonly replicas?: number;
    readonly minReadySeconds?: number;
    readonly template?: core.PodTemplateSpec;
  };
  readonly status?: ReplicaSetStatus;
}

/** What a controller has to know of the kind it works on. */
export interface WorkloadKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
}

const APPS_V1 = 'apps/v1';
export const REPLICA_SET: WorkloadKind = { apiVersion: APPS_V1, kind: 'ReplicaSet', plural: 'replicasets' };
export const STATEFUL_SET: WorkloadKind = { apiVersion: APPS_V1, kind: 'StatefulSet', plural: 'statefulsets' };
export const DAEMON_SET: WorkloadKind = { apiVersion: APPS_V1, kind: 'DaemonSet', plural: 'daemonsets' };
export const CONTROLLER_REVISION: WorkloadKind = {
  apiVersion: APPS_V1,
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
};
export const REPLICATION_CONTROLLER: WorkloadKind = {
  apiVersion: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
};
export const CLAIM: WorkloadKind = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
};
export const SERVICE: WorkloadKind = { apiVersion: 'v1', kind: 'Service', plural: 'services' };
export const ENDPOINTS: WorkloadKind = { apiVersion: 'v1', kind: 'Endpoints', plural: 'endpoints' };
export const ENDPOINT_SLICE: WorkloadKind = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
};
export const DEPLOYMENT: WorkloadKind = { apiVersion: APPS_V1, kind: 'Deployment', plural: 'deployments' };
export const BATCH_V1 = 'batch/v1';
export const JOB: WorkloadKind = { apiVersion: BATCH_V1, kind: 'Job', plural: 'jobs' };
export const CRON_JOB: WorkloadKind = { apiVersion: BATCH_V1, kind: 'CronJob', plural: 'cronjobs' };
export const POD_DISRUPTION_BUDGET: WorkloadKind = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
};

export const CERTIFICATE_SIGNING_REQUEST: WorkloadKind = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  plural: 'certificatesigningrequests',
};
export const HORIZONTAL_POD_AUTOSCALER: WorkloadKind = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  plural: 'horizontalpodautoscalers',
};

interface Named {
  readonly metadata: StoredMeta;
}

/** The path of an object, or of a subresource of it. */
export function pathOf(kind: WorkloadKind, { metadata }: Named, subresource?: string): string {
  const { namespace, name } = metadata;
  return resourcePath(kind.apiVersion, kind.plural, {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(subresource === undefined ? {} : { subresource }),
  });
}

/** Events about an object of a list, which has neither kind nor apiVersion of its own. */
export function subjectOf({ kind, apiVersion }: WorkloadKind, { metadata }: Named): EventSubject {
  return { kind, apiVersion, metadata };
}

/** The reference that makes an object its dependent's controller. */
export function controllerReference({ kind, apiVersion }: WorkloadKind, { metadata }: Named): OwnerReference {
  return {
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** spec.replicas with the server's default. */
export function replicasOf({ spec }: { readonly spec: { readonly replicas?: number } }): number {
  return spec.replicas ?? 1;
}
