// What kube-controller-manager's metrics call the queue of each controller, by the controller's name. Where upstream's has several
// queues it is the one that the controller's objects go through.

import { getOwn } from '../lib/own-property.ts';

const QUEUE_NAMES: Readonly<Record<string, string>> = {
  'namespace-controller': 'namespace',
  'serviceaccount-controller': 'serviceaccount',
  'serviceaccount-token-controller': 'serviceaccount_tokens_secret',
  'root-ca-certificate-publisher-controller': 'root_ca_cert_publisher',
  'clusterrole-aggregation-controller': 'ClusterRoleAggregator',
  'resourcequota-controller': 'resourcequota_primary',
  'ttl-controller': 'ttlcontroller',
  'node-lifecycle-controller': 'node_lifecycle_controller',
  'node-ipam-controller': 'cidrallocator_node',
  'taint-eviction-controller': 'noexec_taint_pod',
  'pod-garbage-collector-controller': 'orphaned_pods_nodes',
  'garbage-collector-controller': 'garbage_collector_attempt_to_delete',
  'deployment-controller': 'deployment',
  'replicaset-controller': 'replicaset',
  'replicationcontroller-controller': 'replicationmanager',
  'statefulset-controller': 'statefulset',
  'daemonset-controller': 'daemonset',
  'job-controller': 'job',
  'cronjob-controller': 'cronjob',
  'disruption-controller': 'disruption',
  'ttl-after-finished-controller': 'ttl_jobs_to_delete',
  'certificatesigningrequest-approving-controller': 'certificate_approving',
  'certificatesigningrequest-signing-controller': 'certificate_signing',
  'certificatesigningrequest-cleaner-controller': 'certificate_cleaning',
  'horizontal-pod-autoscaler-controller': 'horizontalpodautoscaler',
  'endpointslice-controller': 'endpoint_slice',
  'endpoints-controller': 'endpoint',
  'endpointslice-mirroring-controller': 'endpoint_slice_mirroring',
  'service-lb-controller': 'service',
  'persistentvolume-binder-controller': 'claims',
  'persistentvolume-attach-detach-controller': 'attach_detach',
  'persistentvolumeclaim-protection-controller': 'pvcprotection',
  'persistentvolume-protection-controller': 'pvprotection',
  'ephemeral-volume-controller': 'ephemeral_volume',
};

/** `controller`: its name for --controllers. Throws for one that has no row. */
export function queueName(controller: string): string {
  const name = getOwn(QUEUE_NAMES, controller);
  if (name === undefined) throw new RangeError(`the queue of ${controller} has no name for metrics`);
  return name;
}
