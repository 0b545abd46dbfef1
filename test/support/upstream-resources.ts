// What `kubectl api-resources -o wide` prints for kube-apiserver 1.34 with its default flags and feature gates: a line each, in
// the order of group and name. From k8s.io/api, the registries' short names and categories, and pkg/controlplane/instance.go.

/** Every verb that can stand here, in the order of discovery. */
const ALL = 'create,delete,deletecollection,get,list,patch,update,watch';
const CREATE = 'create';

export interface UpstreamResource {
  readonly name: string;
  readonly shortNames: readonly string[];
  readonly apiVersion: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly categories: readonly string[];
}

type Row = readonly [name: string, shortNames: string, kind: string, categories?: string, verbs?: string];

/** Group and version → resources in namespaces, and resources of the cluster. */
const TABLE: Readonly<Record<string, { readonly namespaced?: readonly Row[]; readonly cluster?: readonly Row[] }>> = {
  v1: {
    namespaced: [
      ['bindings', '', 'Binding', '', CREATE],
      ['configmaps', 'cm', 'ConfigMap'],
      ['endpoints', 'ep', 'Endpoints'],
      ['events', 'ev', 'Event'],
      ['limitranges', 'limits', 'LimitRange'],
      ['persistentvolumeclaims', 'pvc', 'PersistentVolumeClaim'],
      ['pods', 'po', 'Pod', 'all'],
      ['podtemplates', '', 'PodTemplate'],
      ['replicationcontrollers', 'rc', 'ReplicationController', 'all'],
      ['resourcequotas', 'quota', 'ResourceQuota'],
      ['secrets', '', 'Secret'],
      ['serviceaccounts', 'sa', 'ServiceAccount'],
      ['services', 'svc', 'Service', 'all'],
    ],
    cluster: [
      ['componentstatuses', 'cs', 'ComponentStatus', '', 'get,list'],
      ['namespaces', 'ns', 'Namespace', '', 'create,delete,get,list,patch,update,watch'],
      ['nodes', 'no', 'Node'],
      ['persistentvolumes', 'pv', 'PersistentVolume'],
    ],
  },
  'admissionregistration.k8s.io/v1': {
    cluster: [
      ['mutatingwebhookconfigurations', '', 'MutatingWebhookConfiguration', 'api-extensions'],
      ['validatingadmissionpolicies', '', 'ValidatingAdmissionPolicy', 'api-extensions'],
      ['validatingadmissionpolicybindings', '', 'ValidatingAdmissionPolicyBinding', 'api-extensions'],
      ['validatingwebhookconfigurations', '', 'ValidatingWebhookConfiguration', 'api-extensions'],
    ],
  },
  'apiextensions.k8s.io/v1': {
    cluster: [['customresourcedefinitions', 'crd,crds', 'CustomResourceDefinition', 'api-extensions']],
  },
  'apiregistration.k8s.io/v1': { cluster: [['apiservices', '', 'APIService', 'api-extensions']] },
  'apps/v1': {
    namespaced: [
      ['controllerrevisions', '', 'ControllerRevision'],
      ['daemonsets', 'ds', 'DaemonSet', 'all'],
      ['deployments', 'deploy', 'Deployment', 'all'],
      ['replicasets', 'rs', 'ReplicaSet', 'all'],
      ['statefulsets', 'sts', 'StatefulSet', 'all'],
    ],
  },
  'authentication.k8s.io/v1': {
    cluster: [
      ['selfsubjectreviews', '', 'SelfSubjectReview', '', CREATE],
      ['tokenreviews', '', 'TokenReview', '', CREATE],
    ],
  },
  'authorization.k8s.io/v1': {
    namespaced: [['localsubjectaccessreviews', '', 'LocalSubjectAccessReview', '', CREATE]],
    cluster: [
      ['selfsubjectaccessreviews', '', 'SelfSubjectAccessReview', '', CREATE],
      ['selfsubjectrulesreviews', '', 'SelfSubjectRulesReview', '', CREATE],
      ['subjectaccessreviews', '', 'SubjectAccessReview', '', CREATE],
    ],
  },
  'autoscaling/v2': { namespaced: [['horizontalpodautoscalers', 'hpa', 'HorizontalPodAutoscaler', 'all']] },
  'batch/v1': {
    namespaced: [
      ['cronjobs', 'cj', 'CronJob', 'all'],
      ['jobs', '', 'Job', 'all'],
    ],
  },
  'certificates.k8s.io/v1': { cluster: [['certificatesigningrequests', 'csr', 'CertificateSigningRequest']] },
  'coordination.k8s.io/v1': { namespaced: [['leases', '', 'Lease']] },
  'discovery.k8s.io/v1': { namespaced: [['endpointslices', '', 'EndpointSlice']] },
  'events.k8s.io/v1': { namespaced: [['events', 'ev', 'Event']] },
  'flowcontrol.apiserver.k8s.io/v1': {
    cluster: [
      ['flowschemas', '', 'FlowSchema'],
      ['prioritylevelconfigurations', '', 'PriorityLevelConfiguration'],
    ],
  },
  'networking.k8s.io/v1': {
    namespaced: [
      ['ingresses', 'ing', 'Ingress'],
      ['networkpolicies', 'netpol', 'NetworkPolicy'],
    ],
    cluster: [
      ['ingressclasses', '', 'IngressClass'],
      ['ipaddresses', 'ip', 'IPAddress'],
      ['servicecidrs', '', 'ServiceCIDR'],
    ],
  },
  'node.k8s.io/v1': { cluster: [['runtimeclasses', '', 'RuntimeClass']] },
  'policy/v1': { namespaced: [['poddisruptionbudgets', 'pdb', 'PodDisruptionBudget']] },
  'rbac.authorization.k8s.io/v1': {
    namespaced: [
      ['rolebindings', '', 'RoleBinding'],
      ['roles', '', 'Role'],
    ],
    cluster: [
      ['clusterrolebindings', '', 'ClusterRoleBinding'],
      ['clusterroles', '', 'ClusterRole'],
    ],
  },
  'resource.k8s.io/v1': {
    namespaced: [
      ['resourceclaims', '', 'ResourceClaim'],
      ['resourceclaimtemplates', '', 'ResourceClaimTemplate'],
    ],
    cluster: [
      ['deviceclasses', '', 'DeviceClass'],
      ['resourceslices', '', 'ResourceSlice'],
    ],
  },
  'scheduling.k8s.io/v1': { cluster: [['priorityclasses', 'pc', 'PriorityClass']] },
  'storage.k8s.io/v1': {
    namespaced: [['csistoragecapacities', '', 'CSIStorageCapacity']],
    cluster: [
      ['csidrivers', '', 'CSIDriver'],
      ['csinodes', '', 'CSINode'],
      ['storageclasses', 'sc', 'StorageClass'],
      ['volumeattachments', '', 'VolumeAttachment'],
      ['volumeattributesclasses', 'vac', 'VolumeAttributesClass'],
    ],
  },
};

const list = (text: string): readonly string[] => (text === '' ? [] : text.split(','));

export const UPSTREAM_RESOURCES: readonly UpstreamResource[] = Object.entries(TABLE).flatMap(
  ([apiVersion, { namespaced = [], cluster = [] }]) => {
    const rows = [...namespaced.map((row) => ({ row, scope: true })), ...cluster.map((row) => ({ row, scope: false }))];
    return rows
      .map(({ row: [name, shortNames, kind, categories = '', verbs = ALL], scope }) => ({
        name,
        shortNames: list(shortNames),
        apiVersion,
        namespaced: scope,
        kind,
        verbs: list(verbs),
        categories: list(categories),
      }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  },
);

/** What this server has beyond that; docs/apiserver.md names it. */
export const BEYOND_UPSTREAM: readonly UpstreamResource[] = [
  {
    name: 'clustertrustbundles',
    shortNames: [],
    apiVersion: 'certificates.k8s.io/v1beta1',
    namespaced: false,
    kind: 'ClusterTrustBundle',
    verbs: list(ALL),
    categories: [],
  },
  // A metrics-server's, beside a kube-apiserver.
  ...[
    { name: 'nodes', namespaced: false, kind: 'NodeMetrics' },
    { name: 'pods', namespaced: true, kind: 'PodMetrics' },
  ].map((one) => ({
    ...one,
    shortNames: [],
    apiVersion: 'metrics.k8s.io/v1beta1',
    verbs: ['get', 'list'],
    categories: [],
  })),
];

/** Groups that only this server has, after all others. */
export const GROUPS_BEYOND_UPSTREAM: readonly string[] = ['metrics.k8s.io'];

/**
 * The groups of `/apis` in kube-apiserver's order: its own group of APIServices, then by the priorities of
 * cmd/kube-apiserver/app/aggregator.go; with the versions of each, the preferred one first.
 */
export const UPSTREAM_GROUPS: readonly (readonly [group: string, versions: readonly string[]])[] = [
  ['apiregistration.k8s.io', ['v1']],
  ['apps', ['v1']],
  ['events.k8s.io', ['v1']],
  ['authentication.k8s.io', ['v1']],
  ['authorization.k8s.io', ['v1']],
  ['autoscaling', ['v2', 'v1']],
  ['batch', ['v1']],
  ['certificates.k8s.io', ['v1']],
  ['networking.k8s.io', ['v1']],
  ['policy', ['v1']],
  ['rbac.authorization.k8s.io', ['v1']],
  ['storage.k8s.io', ['v1']],
  ['admissionregistration.k8s.io', ['v1']],
  ['apiextensions.k8s.io', ['v1']],
  ['scheduling.k8s.io', ['v1']],
  ['coordination.k8s.io', ['v1']],
  ['node.k8s.io', ['v1']],
  ['discovery.k8s.io', ['v1']],
  ['resource.k8s.io', ['v1']],
  ['flowcontrol.apiserver.k8s.io', ['v1']],
];

/** Subresources of 1.34: "resource/subresource" → verbs. Those of kinds that have only these are all there is. */
const GPU = 'get,patch,update';
const CONNECT = 'create,get';
const PROXY = 'create,delete,get,patch,update';
export const UPSTREAM_SUBRESOURCES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  v1: {
    'namespaces/finalize': 'update',
    'namespaces/status': GPU,
    'nodes/proxy': PROXY,
    'nodes/status': GPU,
    'persistentvolumeclaims/status': GPU,
    'persistentvolumes/status': GPU,
    'pods/attach': CONNECT,
    'pods/binding': 'create',
    'pods/ephemeralcontainers': GPU,
    'pods/eviction': 'create',
    'pods/exec': CONNECT,
    'pods/log': 'get',
    'pods/portforward': CONNECT,
    'pods/proxy': PROXY,
    'pods/resize': GPU,
    'pods/status': GPU,
    'replicationcontrollers/scale': GPU,
    'replicationcontrollers/status': GPU,
    'resourcequotas/status': GPU,
    'serviceaccounts/token': 'create',
    'services/proxy': PROXY,
    'services/status': GPU,
  },
  'admissionregistration.k8s.io/v1': { 'validatingadmissionpolicies/status': GPU },
  'apiextensions.k8s.io/v1': { 'customresourcedefinitions/status': GPU },
  'apiregistration.k8s.io/v1': { 'apiservices/status': GPU },
  'apps/v1': {
    'daemonsets/status': GPU,
    'deployments/scale': GPU,
    'deployments/status': GPU,
    'replicasets/scale': GPU,
    'replicasets/status': GPU,
    'statefulsets/scale': GPU,
    'statefulsets/status': GPU,
  },
  'autoscaling/v1': { 'horizontalpodautoscalers/status': GPU },
  'autoscaling/v2': { 'horizontalpodautoscalers/status': GPU },
  'batch/v1': { 'cronjobs/status': GPU, 'jobs/status': GPU },
  'certificates.k8s.io/v1': {
    'certificatesigningrequests/approval': GPU,
    'certificatesigningrequests/status': GPU,
  },
  'flowcontrol.apiserver.k8s.io/v1': { 'flowschemas/status': GPU, 'prioritylevelconfigurations/status': GPU },
  'networking.k8s.io/v1': { 'ingresses/status': GPU, 'servicecidrs/status': GPU },
  'policy/v1': { 'poddisruptionbudgets/status': GPU },
  'resource.k8s.io/v1': { 'resourceclaims/status': GPU },
  'storage.k8s.io/v1': { 'volumeattachments/status': GPU },
};
