// A valid object of each kind that the lifecycle test goes through, and a status for those that have one. Statuses are merge
// patches that a controller could send.

import { execFileSync } from 'node:child_process';
import type { Fields } from './client.ts';

export interface Lifecycle {
  /** "networking.k8s.io/v1 Ingress": the title of its test, by which docs/conformance.md refers to it. */
  readonly type: string;
  readonly plural: string;
  /** False for kinds of the cluster. */
  readonly namespaced?: boolean;
  /** Everything but apiVersion, kind and metadata. */
  readonly object: Fields;
  /** A merge patch of its status. */
  readonly status?: Fields;
  readonly scale?: boolean;
  readonly approval?: boolean;
  /** Names that the kind takes; "one", "two" and "three" where any will do. */
  readonly names?: readonly [string, string, string];
  /** The type of the condition that the server itself gives each object in a moment; what is deleted may take one, too. */
  readonly reconciled?: string;
  /** Finalizers that each object has from its creation, and that a controller removes. */
  readonly finalizers?: boolean;
}

const LABELS = { app: 'conformance' };
const POD_SPEC = { containers: [{ name: 'c', image: 'registry.example.com/image:1' }] };
const selector = { matchLabels: LABELS };
const template = { metadata: { labels: LABELS }, spec: POD_SPEC };
const JOB_TEMPLATE = { spec: { ...POD_SPEC, restartPolicy: 'Never' } };
const CLAIM = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'none' };
const TIME = '2025-01-01T00:00:00Z';
const condition = (type: string): Fields => ({
  ...{ type, status: 'True', reason: 'Tested', message: 'set by the test', lastTransitionTime: TIME },
});
/** What the server says of a FlowSchema whose level there is. */
const FOUND = {
  ...{ type: 'Dangling', status: 'False', reason: 'Found', lastTransitionTime: TIME },
  message: 'This FlowSchema references the PriorityLevelConfiguration object named "global-default" and it exists',
};
/** Of a group that nothing is served of: it concerns no request of another test. */
const RULES = { operations: ['CREATE'], apiGroups: ['none.example.com'], apiVersions: ['v1'], resources: ['nones'] };
const WEBHOOKS = [
  {
    ...{ name: 'hook.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'], rules: [RULES] },
    clientConfig: { url: 'https://127.0.0.1:1/hook' },
  },
];
const EXACT_REQUEST = { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu.example.com' } }] };

/** What openssl makes for Jane, in base64 as the API has it: a request, or with -x509 a certificate. */
function madeByOpenssl(...more: readonly string[]): string {
  const args = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', ...more];
  const pem = execFileSync('openssl', [...args, '-keyout', '/dev/null', '-subj', '/O=devs/CN=jane'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return pem.toString('base64');
}

const CORE: readonly Lifecycle[] = [
  { type: 'v1 ConfigMap', plural: 'configmaps', object: { data: { key: 'value' } } },
  { type: 'v1 Secret', plural: 'secrets', object: { data: { key: 'dmFsdWU=' } } },
  { type: 'v1 ServiceAccount', plural: 'serviceaccounts', object: { automountServiceAccountToken: false } },
  {
    ...{ type: 'v1 Endpoints', plural: 'endpoints' },
    object: { subsets: [{ addresses: [{ ip: '192.0.2.1' }], ports: [{ name: 'http', port: 80 }] }] },
  },
  {
    ...{ type: 'v1 Event', plural: 'events' },
    object: { involvedObject: { kind: 'Pod', name: 'web' }, reason: 'Tested', type: 'Normal', message: 'a message' },
  },
  { type: 'v1 LimitRange', plural: 'limitranges', object: { spec: { limits: [{ type: 'Pod', max: { cpu: '64' } }] } } },
  {
    ...{ type: 'v1 ResourceQuota', plural: 'resourcequotas', object: { spec: { hard: { 'count/leases': '1000' } } } },
    status: { hard: { 'count/leases': '999' } },
  },
  { type: 'v1 PodTemplate', plural: 'podtemplates', object: { template } },
  {
    ...{ type: 'v1 ReplicationController', plural: 'replicationcontrollers', scale: true },
    object: { spec: { replicas: 1, selector: LABELS, template } },
    status: { replicas: 1, conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'v1 Pod', plural: 'pods', object: { spec: POD_SPEC } },
    status: { phase: 'Running', conditions: [condition('Ready')] },
  },
  {
    ...{ type: 'v1 Service', plural: 'services' },
    object: { spec: { type: 'LoadBalancer', selector: LABELS, ports: [{ name: 'http', port: 80 }] } },
    status: { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] }, conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'v1 PersistentVolumeClaim', plural: 'persistentvolumeclaims', finalizers: true },
    object: { spec: CLAIM },
    status: { conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'v1 PersistentVolume', plural: 'persistentvolumes', namespaced: false, finalizers: true },
    object: { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } } },
    status: { message: 'set by the test', reason: 'Tested' },
  },
  {
    ...{ type: 'v1 Node', plural: 'nodes', namespaced: false, object: { spec: { unschedulable: true } } },
    status: { conditions: [{ ...condition('Tested'), lastHeartbeatTime: TIME }] },
  },
];

const WORKLOADS: readonly Lifecycle[] = [
  {
    ...{ type: 'apps/v1 Deployment', plural: 'deployments', scale: true },
    object: { spec: { replicas: 1, selector, template } },
    status: { conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'apps/v1 ReplicaSet', plural: 'replicasets', scale: true },
    object: { spec: { replicas: 1, selector, template } },
    status: { replicas: 1, conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'apps/v1 StatefulSet', plural: 'statefulsets', scale: true },
    object: { spec: { serviceName: 'web', replicas: 1, selector, template } },
    status: { replicas: 1, conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'apps/v1 DaemonSet', plural: 'daemonsets', object: { spec: { selector, template } } },
    status: { conditions: [condition('Tested')] },
  },
  { type: 'apps/v1 ControllerRevision', plural: 'controllerrevisions', object: { revision: 1, data: { a: 1 } } },
  {
    ...{ type: 'batch/v1 Job', plural: 'jobs', object: { spec: { parallelism: 2, template: JOB_TEMPLATE } } },
    status: { startTime: TIME, active: 1, ready: 0, terminating: 0 },
  },
  {
    ...{ type: 'batch/v1 CronJob', plural: 'cronjobs' },
    object: { spec: { schedule: '* */1 * * *', jobTemplate: { spec: { template: JOB_TEMPLATE } } } },
    status: { lastScheduleTime: TIME },
  },
  {
    ...{ type: 'autoscaling/v2 HorizontalPodAutoscaler', plural: 'horizontalpodautoscalers' },
    object: {
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 3 },
    },
    status: { currentReplicas: 1, desiredReplicas: 2 },
  },
  {
    ...{ type: 'policy/v1 PodDisruptionBudget', plural: 'poddisruptionbudgets' },
    object: { spec: { minAvailable: 1, selector } },
    status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 },
  },
];

const NETWORK: readonly Lifecycle[] = [
  {
    ...{ type: 'networking.k8s.io/v1 Ingress', plural: 'ingresses' },
    object: { spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } } },
    status: { loadBalancer: { ingress: [{ ip: '169.1.1.1' }] } },
  },
  {
    ...{ type: 'networking.k8s.io/v1 IngressClass', plural: 'ingressclasses', namespaced: false },
    object: { spec: { controller: 'example.com/controller' } },
  },
  {
    ...{ type: 'networking.k8s.io/v1 NetworkPolicy', plural: 'networkpolicies' },
    object: { spec: { podSelector: selector } },
  },
  {
    ...{ type: 'networking.k8s.io/v1 ServiceCIDR', plural: 'servicecidrs', namespaced: false },
    object: { spec: { cidrs: ['10.123.0.0/24'] } },
    reconciled: 'Ready',
    status: { conditions: [condition('Tested'), condition('Ready')] },
  },
  {
    ...{ type: 'networking.k8s.io/v1 IPAddress', plural: 'ipaddresses', namespaced: false },
    object: { spec: { parentRef: { resource: 'services', name: 'web', namespace: 'default' } } },
    names: ['192.168.111.111', '192.168.111.112', '192.168.111.113'],
  },
  {
    ...{ type: 'discovery.k8s.io/v1 EndpointSlice', plural: 'endpointslices' },
    object: {
      ...{ addressType: 'IPv4', ports: [{ name: 'http', port: 80 }] },
      endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }],
    },
  },
];

const STORAGE: readonly Lifecycle[] = [
  {
    ...{ type: 'storage.k8s.io/v1 StorageClass', plural: 'storageclasses', namespaced: false },
    object: { provisioner: 'example.com/disk' },
  },
  {
    ...{ type: 'storage.k8s.io/v1 VolumeAttributesClass', plural: 'volumeattributesclasses', namespaced: false },
    object: { driverName: 'disk.example.com', parameters: { iops: '100' } },
  },
  {
    ...{ type: 'storage.k8s.io/v1 CSIDriver', plural: 'csidrivers', namespaced: false },
    object: { spec: { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] } },
  },
  {
    ...{ type: 'storage.k8s.io/v1 CSINode', plural: 'csinodes', namespaced: false },
    object: { spec: { drivers: [] } },
  },
  {
    ...{ type: 'storage.k8s.io/v1 CSIStorageCapacity', plural: 'csistoragecapacities' },
    object: { storageClassName: 'fast', capacity: '10Gi', nodeTopology: { matchLabels: { zone: 'a' } } },
  },
  {
    ...{ type: 'storage.k8s.io/v1 VolumeAttachment', plural: 'volumeattachments', namespaced: false },
    object: { spec: { attacher: 'disk.example.com', nodeName: 'a', source: { persistentVolumeName: 'data' } } },
    status: { attached: true },
  },
];

const RIGHTS: readonly Lifecycle[] = [
  {
    ...{ type: 'rbac.authorization.k8s.io/v1 Role', plural: 'roles' },
    object: { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
  },
  {
    ...{ type: 'rbac.authorization.k8s.io/v1 RoleBinding', plural: 'rolebindings' },
    object: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }, subjects: [] },
  },
  {
    ...{ type: 'rbac.authorization.k8s.io/v1 ClusterRole', plural: 'clusterroles', namespaced: false },
    object: { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
  },
  {
    ...{ type: 'rbac.authorization.k8s.io/v1 ClusterRoleBinding', plural: 'clusterrolebindings', namespaced: false },
    object: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }, subjects: [] },
  },
  {
    ...{ type: 'certificates.k8s.io/v1 CertificateSigningRequest', plural: 'certificatesigningrequests' },
    ...{ namespaced: false, approval: true },
    object: { spec: { request: madeByOpenssl(), signerName: 'example.com/tests', usages: ['client auth'] } },
    status: { certificate: madeByOpenssl('-x509') },
  },
];

const MACHINERY: readonly Lifecycle[] = [
  {
    ...{ type: 'flowcontrol.apiserver.k8s.io/v1 FlowSchema', plural: 'flowschemas', namespaced: false },
    object: {
      spec: {
        ...{ matchingPrecedence: 10000, priorityLevelConfiguration: { name: 'global-default' } },
        distinguisherMethod: { type: 'ByUser' },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: 'example-e2e-non-existent-user' } }],
            nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
          },
        ],
      },
    },
    reconciled: 'Dangling',
    status: { conditions: [condition('Tested'), FOUND] },
  },
  {
    ...{ type: 'flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration', plural: 'prioritylevelconfigurations' },
    namespaced: false,
    object: { spec: { type: 'Limited', limited: { nominalConcurrencyShares: 2, limitResponse: { type: 'Reject' } } } },
    status: { conditions: [condition('Tested')] },
  },
  {
    ...{ type: 'admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy', plural: 'validatingadmissionpolicies' },
    namespaced: false,
    object: {
      spec: { matchConstraints: { resourceRules: [RULES] }, validations: [{ expression: 'object.spec.a == 1' }] },
    },
    status: { observedGeneration: 1000 },
  },
  {
    type: 'admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding',
    ...{ plural: 'validatingadmissionpolicybindings', namespaced: false },
    object: { spec: { policyName: 'none.example.com', validationActions: ['Deny'] } },
  },
  {
    ...{ type: 'admissionregistration.k8s.io/v1 MutatingWebhookConfiguration', namespaced: false },
    ...{ plural: 'mutatingwebhookconfigurations', object: { webhooks: WEBHOOKS } },
  },
  {
    ...{ type: 'admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration', namespaced: false },
    ...{ plural: 'validatingwebhookconfigurations', object: { webhooks: WEBHOOKS } },
  },
  {
    ...{ type: 'events.k8s.io/v1 Event', plural: 'events' },
    object: {
      ...{ eventTime: '2025-01-01T00:00:00.000000Z', reportingController: 'example.com/test', action: 'Test' },
      ...{ reportingInstance: 'test-1', reason: 'Tested', type: 'Normal', note: 'a note' },
      regarding: { kind: 'Pod', name: 'web' },
    },
  },
  { type: 'coordination.k8s.io/v1 Lease', plural: 'leases', object: { spec: { holderIdentity: 'a' } } },
  {
    ...{ type: 'node.k8s.io/v1 RuntimeClass', plural: 'runtimeclasses', namespaced: false },
    object: { handler: 'runc' },
  },
  {
    ...{ type: 'scheduling.k8s.io/v1 PriorityClass', plural: 'priorityclasses', namespaced: false },
    object: { value: 5, description: 'of a test' },
  },
  {
    ...{ type: 'resource.k8s.io/v1 DeviceClass', plural: 'deviceclasses', namespaced: false },
    object: { spec: { selectors: [{ cel: { expression: 'device.driver == "gpu.example.com"' } }] } },
  },
  {
    ...{
      type: 'resource.k8s.io/v1 ResourceClaim',
      plural: 'resourceclaims',
      object: { spec: { devices: EXACT_REQUEST } },
    },
    status: {
      allocation: { devices: { results: [{ request: 'gpu', driver: 'gpu.example.com', pool: 'a', device: 'gpu-0' }] } },
    },
  },
  {
    ...{ type: 'resource.k8s.io/v1 ResourceClaimTemplate', plural: 'resourceclaimtemplates' },
    object: { spec: { spec: { devices: EXACT_REQUEST } } },
  },
  {
    ...{ type: 'resource.k8s.io/v1 ResourceSlice', plural: 'resourceslices', namespaced: false },
    object: {
      spec: {
        ...{ driver: 'gpu.example.com', nodeName: 'a', devices: [{ name: 'gpu-0' }] },
        pool: { name: 'a', generation: 1, resourceSliceCount: 1 },
      },
    },
  },
];

export const LIFECYCLES: readonly Lifecycle[] = [
  ...[...CORE, ...WORKLOADS, ...NETWORK],
  ...[...STORAGE, ...RIGHTS, ...MACHINERY],
];
