// The permissions of each identity, as rules: the lab's whole policy on one page. The roles are those of Kubernetes' own
// components. Matching is authorize.ts; what depends on the pods of a node is node.ts.

export interface Rule {
  readonly groups: readonly string[];
  /** "pods", "pods/status", "*" for everything that is not listed in `except`. */
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Only in this namespace. */
  readonly namespace?: string;
  /** Only objects of these names. */
  readonly names?: readonly string[];
  readonly except?: readonly string[];
}

const READ = ['get', 'list', 'watch'];
const EVENTS: Rule = { groups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] };
const REVIEWS: readonly Rule[] = [
  { groups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  {
    groups: ['authorization.k8s.io'],
    resources: ['subjectaccessreviews', 'localsubjectaccessreviews'],
    verbs: ['create'],
  },
];

/** system:basic-user: every authenticated user may review their own access. */
export const BASIC_USER: readonly Rule[] = [
  {
    groups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    verbs: ['create'],
  },
  { groups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
];

/** system:kube-scheduler */
export const SCHEDULER: readonly Rule[] = [
  EVENTS,
  ...REVIEWS,
  {
    groups: [''],
    resources: [
      'nodes',
      'namespaces',
      'pods',
      'services',
      'replicationcontrollers',
      'persistentvolumes',
      'persistentvolumeclaims',
    ],
    verbs: READ,
  },
  { groups: [''], resources: ['pods'], verbs: ['delete'] },
  { groups: [''], resources: ['bindings', 'pods/binding'], verbs: ['create'] },
  { groups: [''], resources: ['pods/status'], verbs: ['patch', 'update'] },
  { groups: [''], resources: ['persistentvolumes', 'persistentvolumeclaims'], verbs: ['patch', 'update'] },
  { groups: ['apps'], resources: ['replicasets', 'statefulsets'], verbs: READ },
  { groups: ['policy'], resources: ['poddisruptionbudgets'], verbs: READ },
  {
    groups: ['storage.k8s.io'],
    resources: ['storageclasses', 'csinodes', 'csidrivers', 'csistoragecapacities', 'volumeattachments'],
    verbs: READ,
  },
  {
    groups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['create', 'get', 'list', 'watch', 'update', 'patch'],
    namespace: 'kube-system',
  },
];

/**
 * system:kube-controller-manager: the controllers' roles taken together. Emptying namespaces and collecting garbage
 * need every kind; getting into containers, reading logs and calling kubelets is in none of the roles.
 */
export const CONTROLLER_MANAGER: readonly Rule[] = [
  {
    groups: ['*'],
    resources: ['*'],
    verbs: [...READ, 'create', 'update', 'patch', 'delete', 'deletecollection'],
    except: [
      ...['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy', 'pods/log', 'services/proxy'],
      // The resources that a kubelet reviews for the parts of its API.
      ...['nodes/proxy', 'nodes/pods', 'nodes/log', 'nodes/stats', 'nodes/metrics', 'nodes/configz', 'nodes/healthz'],
    ],
  },
];

/** system:node: what any node may do; what only the right node may is node.ts. */
export const NODE: readonly Rule[] = [
  EVENTS,
  ...REVIEWS,
  { groups: [''], resources: ['services'], verbs: READ },
  { groups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', ...READ] },
  { groups: ['certificates.k8s.io'], resources: ['clustertrustbundles'], verbs: READ },
  { groups: ['storage.k8s.io'], resources: ['csidrivers'], verbs: READ },
  { groups: ['node.k8s.io'], resources: ['runtimeclasses'], verbs: READ },
];

function has(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}

/** Whether a rule covers the request. `resource` includes the subresource: "pods/log". */
export function covers(
  rule: Rule,
  request: { verb: string; group: string; resource: string; namespace: string; name: string },
): boolean {
  if (!has(rule.verbs, request.verb) || !has(rule.groups, request.group)) return false;
  if (rule.except?.includes(request.resource) || !has(rule.resources, request.resource)) return false;
  if (rule.namespace !== undefined && rule.namespace !== request.namespace) return false;
  return rule.names === undefined || rule.names.includes(request.name);
}
