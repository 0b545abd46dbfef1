// The controllers, one row each: kube-controller-manager's name of it, what its events come from, and how it is made. Which of
// them run is the choice of --controllers.

import { AttachDetachController } from './controllers/attach-detach/attach-detach.ts';
import { CertificateApprovingController } from './controllers/certificates/approving.ts';
import { CertificateCleaner } from './controllers/certificates/cleaning.ts';
import type { SigningAuthority } from './controllers/certificates/request.ts';
import { CertificateSigningController } from './controllers/certificates/signing.ts';
import { ClusterRoleAggregationController } from './controllers/clusterrole-aggregation/clusterrole-aggregation.ts';
import { CronJobController } from './controllers/cronjob/cronjob.ts';
import { DaemonSetController } from './controllers/daemonset/daemonset.ts';
import { DeploymentController } from './controllers/deployment/deployment.ts';
import { DisruptionController } from './controllers/disruption/disruption.ts';
import { EndpointsController } from './controllers/endpoints/endpoints.ts';
import { EndpointSliceController } from './controllers/endpointslice/endpointslice.ts';
import { EndpointSliceMirroringController } from './controllers/endpointslice-mirroring/endpointslice-mirroring.ts';
import { EphemeralVolumeController } from './controllers/ephemeral-volume/ephemeral-volume.ts';
import { GarbageCollector } from './controllers/garbage-collector/garbage-collector.ts';
import { HorizontalPodAutoscalerController } from './controllers/horizontal-pod-autoscaler/horizontal-pod-autoscaler.ts';
import type { AutoscalerSettings } from './controllers/horizontal-pod-autoscaler/pod-groups.ts';
import { JobController } from './controllers/job/job.ts';
import { NamespaceController } from './controllers/namespace/namespace.ts';
import { NodeIpamController, type NodeIpamSettings } from './controllers/node-ipam/node-ipam.ts';
import { NodeLifecycleController, type NodeLifecycleSettings } from './controllers/node-lifecycle/node-lifecycle.ts';
import { PodGarbageCollector } from './controllers/pod-garbage-collector/pod-garbage-collector.ts';
import { ReplicaSetController } from './controllers/replicaset/replicaset.ts';
import { ReplicationControllerController } from './controllers/replicationcontroller/replicationcontroller.ts';
import { ResourceQuotaController } from './controllers/resourcequota/resourcequota.ts';
import { RootCaPublisher } from './controllers/root-ca-publisher/root-ca-publisher.ts';
import { ServiceLbController } from './controllers/service-lb/service-lb.ts';
import { ServiceAccountController } from './controllers/serviceaccount/serviceaccount.ts';
import { ServiceAccountTokenController } from './controllers/serviceaccount-token/serviceaccount-token.ts';
import { StatefulSetController } from './controllers/statefulset/statefulset.ts';
import { TaintEvictionController } from './controllers/taint-eviction/taint-eviction.ts';
import { TtlController } from './controllers/ttl/ttl.ts';
import { TtlAfterFinishedController } from './controllers/ttl-after-finished/ttl-after-finished.ts';
import { VolumeBinder } from './controllers/volume-binder/volume-binder.ts';
import { VolumeProtection } from './controllers/volume-protection/volume-protection.ts';
import type { Informers } from './informers.ts';
import type { Controller, ControllerContext } from './runtime.ts';

/** What controllers need beside the API. */
export interface ControllerSettings {
  /** CA to publish as kube-root-ca.crt, PEM; undefined where the controllers' kubeconfig names none. */
  readonly rootCa: string | undefined;
  /** PEM of the key that signs tokens in Secrets; without it none is filled. */
  readonly serviceAccountKey?: string;
  /** What certificate requests are signed with; without it none is. */
  readonly signing?: SigningAuthority;
  /** Without it nodes get no podCIDRs. */
  readonly nodeIpam?: NodeIpamSettings;
  /** What differs from the controller's own defaults. */
  readonly nodeLifecycle?: Partial<NodeLifecycleSettings>;
  /** How many pods that have ended pod-garbage-collector-controller leaves; 0: all. Absent: kube-controller-manager's. */
  readonly terminatedPodThreshold?: number;
  /** Absent: the controller's own defaults. */
  readonly autoscaler?: AutoscalerSettings;
  /** Addresses for Services of type LoadBalancer (CIDR); without it they get none. */
  readonly loadBalancerRange?: string;
}

export interface ControllerRow {
  /** kube-controller-manager's name for --controllers. */
  readonly name: string;
  /** Its events' source.component. */
  readonly component: string;
  /** Undefined where the settings leave it out. */
  make(context: ControllerContext, informers: Informers, settings: ControllerSettings): Controller | undefined;
}

const row = (name: string, component: string, make: ControllerRow['make']): ControllerRow => ({
  name,
  component,
  make,
});

/** All of them run unless --controllers says otherwise. */
export const CONTROLLERS: readonly ControllerRow[] = [
  row(
    'namespace-controller',
    'namespace-controller',
    (context, informers) => new NamespaceController(context, informers),
  ),
  row(
    'serviceaccount-controller',
    'serviceaccount-controller',
    (context, informers) => new ServiceAccountController(context, informers),
  ),
  row('serviceaccount-token-controller', 'serviceaccount-token-controller', (context, informers, settings) =>
    settings.serviceAccountKey === undefined
      ? undefined
      : new ServiceAccountTokenController(context, informers, settings.serviceAccountKey, settings.rootCa),
  ),
  row('root-ca-certificate-publisher-controller', 'root-ca-certificate-publisher', (context, informers, { rootCa }) =>
    rootCa === undefined ? undefined : new RootCaPublisher(context, informers, rootCa),
  ),
  row(
    'clusterrole-aggregation-controller',
    'clusterrole-aggregation-controller',
    (context, informers) => new ClusterRoleAggregationController(context, informers),
  ),
  row(
    'resourcequota-controller',
    'resourcequota-controller',
    (context, informers) => new ResourceQuotaController(context, informers),
  ),
  row('ttl-controller', 'ttl-controller', (context, informers) => new TtlController(context, informers)),
  row(
    'node-lifecycle-controller',
    'node-controller',
    (context, informers, { nodeLifecycle }) => new NodeLifecycleController(context, informers, nodeLifecycle),
  ),
  row('node-ipam-controller', 'cidrAllocator', (context, informers, { nodeIpam }) =>
    nodeIpam === undefined ? undefined : new NodeIpamController(context, informers, nodeIpam),
  ),
  row(
    'taint-eviction-controller',
    'taint-eviction-controller',
    (context, informers) => new TaintEvictionController(context, informers),
  ),
  row(
    'pod-garbage-collector-controller',
    'node-controller',
    (context, informers, { terminatedPodThreshold }) =>
      new PodGarbageCollector(context, informers, terminatedPodThreshold),
  ),
  row(
    'garbage-collector-controller',
    'garbage-collector-controller',
    (context, informers) => new GarbageCollector(context, informers),
  ),
  row(
    'deployment-controller',
    'deployment-controller',
    (context, informers) => new DeploymentController(context, informers),
  ),
  row(
    'replicaset-controller',
    'replicaset-controller',
    (context, informers) => new ReplicaSetController(context, informers),
  ),
  row('job-controller', 'job-controller', (context, informers) => new JobController(context, informers)),
  row('cronjob-controller', 'cronjob-controller', (context, informers) => new CronJobController(context, informers)),
  row(
    'disruption-controller',
    'controllermanager',
    (context, informers) => new DisruptionController(context, informers),
  ),
  row(
    'ttl-after-finished-controller',
    'ttl-after-finished-controller',
    (context, informers) => new TtlAfterFinishedController(context, informers),
  ),
  row(
    'certificatesigningrequest-approving-controller',
    'certificate-controller',
    (context, informers) => new CertificateApprovingController(context, informers),
  ),
  row(
    'certificatesigningrequest-signing-controller',
    'certificate-controller',
    (context, informers, { signing }) => new CertificateSigningController(context, informers, signing),
  ),
  row(
    'certificatesigningrequest-cleaner-controller',
    'certificate-controller',
    (context, informers) => new CertificateCleaner(context, informers),
  ),
  row(
    'horizontal-pod-autoscaler-controller',
    'horizontal-pod-autoscaler',
    (context, informers, { autoscaler }) => new HorizontalPodAutoscalerController(context, informers, autoscaler),
  ),
  row(
    'replicationcontroller-controller',
    'replication-controller',
    (context, informers) => new ReplicationControllerController(context, informers),
  ),
  row(
    'statefulset-controller',
    'statefulset-controller',
    (context, informers) => new StatefulSetController(context, informers),
  ),
  row(
    'daemonset-controller',
    'daemonset-controller',
    (context, informers) => new DaemonSetController(context, informers),
  ),
  row(
    'endpointslice-controller',
    'endpoint-slice-controller',
    (context, informers) => new EndpointSliceController(context, informers),
  ),
  row(
    'endpoints-controller',
    'endpoint-controller',
    (context, informers) => new EndpointsController(context, informers),
  ),
  row(
    'endpointslice-mirroring-controller',
    'endpoint-slice-mirroring-controller',
    (context, informers) => new EndpointSliceMirroringController(context, informers),
  ),
  row(
    'service-lb-controller',
    'service-controller',
    (context, informers, { loadBalancerRange }) => new ServiceLbController(context, informers, loadBalancerRange),
  ),
  row(
    'persistentvolume-binder-controller',
    'persistentvolume-controller',
    (context, informers) => new VolumeBinder(context, informers),
  ),
  row(
    'persistentvolume-attach-detach-controller',
    'attachdetach-controller',
    (context, informers) => new AttachDetachController(context, informers),
  ),
  row(
    'persistentvolumeclaim-protection-controller',
    'pvc-protection-controller',
    (context, informers) => new VolumeProtection(context, informers, 'claims'),
  ),
  row(
    'persistentvolume-protection-controller',
    'pv-protection-controller',
    (context, informers) => new VolumeProtection(context, informers, 'volumes'),
  ),
  row(
    'ephemeral-volume-controller',
    'ephemeral_volume',
    (context, informers) => new EphemeralVolumeController(context, informers),
  ),
];

/**
 * The rows that --controllers chooses: names, `-name` for all but this one, `*` for all that are not named. As in kube-controller-manager an explicit name wins
 * over `*`. Throws for a name that no controller has.
 */
export function chooseControllers(
  selection: readonly string[],
  rows: readonly ControllerRow[] = CONTROLLERS,
): readonly ControllerRow[] {
  const known = new Set(rows.map(({ name }) => name));
  const unknown = selection.find((entry) => entry !== '*' && !known.has(entry.replace(/^-/, '')));
  if (unknown !== undefined) {
    throw new Error(`"${unknown}" is not in the list of known controllers: ${[...known].sort().join(', ')}`);
  }
  const all = selection.includes('*');
  return rows.filter(({ name }) => selection.includes(name) || (all && !selection.includes(`-${name}`)));
}
