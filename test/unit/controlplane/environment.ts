// What a controller is tested in: stores for its informers, a client and a recorder that remember, and a virtual clock.

import { Store } from '../../../client/store.ts';
import type { ConfigMap, EndpointSlice, Endpoints, Lease, Node, Pod, Secret, Service } from '../../../client/types.ts';
import type { ClusterRole } from '../../../controlplane/controllers/clusterrole-aggregation/aggregate.ts';
import type { ResourceQuota } from '../../../controlplane/controllers/resourcequota/status.ts';
import type {
  CertificateSigningRequest,
  ControllerRevision,
  CronJob,
  DaemonSet,
  Deployment,
  HorizontalPodAutoscaler,
  Job,
  PodDisruptionBudget,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from '../../../controlplane/controllers/shared/objects.ts';

import type { Namespace, ServiceAccount } from '../../../controlplane/informers.ts';
import { type Controller, runController } from '../../../controlplane/runtime.ts';
import { FakeClient } from '../../support/fake-client.ts';
import { storageStores } from '../../support/storage-objects.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

export const NOW = '2026-01-01T00:00:00Z';
let version = 1;
export const meta = (name: string, namespace?: string) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version++),
  ...(namespace === undefined ? {} : { namespace }),
});

export function makePod(name: string, spec: Partial<Pod['spec']> = {}, extra: Partial<Pod> = {}): Pod {
  return { metadata: { ...meta(name), namespace: 'demo' }, spec: { containers: [{ name: 'c' }], ...spec }, ...extra };
}
export function makeNode(name: string, ready: string, spec: NonNullable<Node['spec']> = {}): Node {
  return {
    metadata: meta(name),
    spec,
    status: { allocatable: { cpu: '2', memory: '4Gi', pods: '110' }, conditions: [{ type: 'Ready', status: ready }] },
  };
}

export function environment() {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const events: string[] = [];
  const logs: string[] = [];
  const informers = {
    pods: new Store<Pod>(),
    nodes: new Store<Node>(),
    namespaces: new Store<Namespace>(),
    serviceAccounts: new Store<ServiceAccount>(),
    tokenSecrets: new Store<Secret>(),
    rootCaConfigMaps: new Store<ConfigMap>(),
    nodeLeases: new Store<Lease>(),
    clusterRoles: new Store<ClusterRole>(),
    services: new Store<Service>(),
    endpoints: new Store<Endpoints>(),
    endpointSlices: new Store<EndpointSlice>(),
    replicaSets: new Store<ReplicaSet>(),
    deployments: new Store<Deployment>(),
    certificateSigningRequests: new Store<CertificateSigningRequest>(),
    horizontalPodAutoscalers: new Store<HorizontalPodAutoscaler>(),
    jobs: new Store<Job>(),
    cronJobs: new Store<CronJob>(),
    podDisruptionBudgets: new Store<PodDisruptionBudget>(),
    statefulSets: new Store<StatefulSet>(),
    daemonSets: new Store<DaemonSet>(),
    controllerRevisions: new Store<ControllerRevision>(),
    replicationControllers: new Store<ReplicationController>(),
    resourceQuotas: new Store<ResourceQuota>(),
    ...storageStores(),
  };
  const log = (line: string): void => void logs.push(line);
  const context = {
    client,
    clock,
    log,
    recorder: {
      event: (object: { metadata: { name: string } }, _type: string, reason: string, message: string) =>
        void events.push(`${object.metadata.name} ${reason}: ${message}`),
    },
  };
  const stop = new AbortController();
  const run = (controller: Controller): void => void runController(controller, log, stop.signal);
  return { clock, client, events, logs, informers, context, run, stop };
}
