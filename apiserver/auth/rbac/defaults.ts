// The roles and bindings that a cluster has from its first start: those of kube-apiserver 1.34 (apiserver/gen/rbac-defaults.json, a
// line each, with the ones of the feature ClusterTrustBundle) and one more for the lab's controller manager. Only says
// what they are; reconcile.ts writes them.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { KubeObject, ResourceKind } from '../../kinds/resource.ts';
import type { PolicyRule } from './rules.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';
const API_VERSION = `${RBAC_GROUP}/v1`;
export const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate';
const LABELS = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };

/** A line of the file. Labels and selectors of aggregation are without their prefix, and "true". */
interface DefaultRole {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: readonly string[];
  readonly aggregate?: readonly string[];
  readonly rules: readonly PolicyRule[];
}

/** `role` is "<kind>/<name>", a subject "<kind>/<name>" or "ServiceAccount/<namespace>/<name>". */
interface DefaultBinding {
  readonly name: string;
  readonly namespace?: string;
  readonly role: string;
  readonly subjects: readonly string[];
}

interface DefaultsFile {
  readonly clusterRoles: readonly DefaultRole[];
  readonly clusterRoleBindings: readonly DefaultBinding[];
  readonly roles: readonly DefaultRole[];
  readonly roleBindings: readonly DefaultBinding[];
}

const FILE: DefaultsFile = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../gen/rbac-defaults.json', import.meta.url)), 'utf8'),
);

/** What any node may; the node authorizer decides the rest. */
export const NODE_RULES: readonly PolicyRule[] =
  FILE.clusterRoles.find(({ name }) => name === 'system:node')?.rules ?? [];

function trueLabels(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [`${RBAC_GROUP}/${name}`, 'true']));
}

function metadataOf({ name, namespace }: DefaultRole | DefaultBinding, labels: readonly string[]) {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    annotations: { [AUTO_UPDATE]: 'true' },
    labels: { ...LABELS, ...trueLabels(labels) },
  };
}

function roleObject(kind: 'ClusterRole' | 'Role', role: DefaultRole): KubeObject {
  const { labels = [], aggregate, rules } = role;
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: metadataOf(role, labels),
    ...(aggregate === undefined
      ? {}
      : { aggregationRule: { clusterRoleSelectors: aggregate.map((name) => ({ matchLabels: trueLabels([name]) })) } }),
    rules: structuredClone(rules),
  };
}

function subjectObject(text: string): Record<string, string> {
  const [kind = '', ...rest] = text.split('/');
  if (kind !== 'ServiceAccount') return { apiGroup: RBAC_GROUP, kind, name: rest.join('/') };
  const [namespace = '', name = ''] = rest;
  return { kind, name, namespace };
}

function bindingObject(kind: 'ClusterRoleBinding' | 'RoleBinding', binding: DefaultBinding): KubeObject {
  const slash = binding.role.indexOf('/');
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: metadataOf(binding, []),
    roleRef: { apiGroup: RBAC_GROUP, kind: binding.role.slice(0, slash), name: binding.role.slice(slash + 1) },
    ...(binding.subjects.length === 0 ? {} : { subjects: binding.subjects.map(subjectObject) }),
  };
}

export const CONTROLLERS_ROLE = 'nodelet:controller-manager';
export const CUSTOM_RESOURCES_ROLE = 'nodelet:custom-resources';
const CONTROLLERS_LABEL = 'aggregate-to-nodelet-controller-manager';
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const READ = ['get', 'list', 'watch'];

/** Into containers, their logs, and through a kubelet: no controller has business there. */
const NOT_FOR_CONTROLLERS: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy', 'log']);

/** As metrics-server installs it: who may view a namespace may see what its pods use. */
const METRICS_READER: DefaultRole = {
  name: 'system:aggregated-metrics-reader',
  labels: ['aggregate-to-admin', 'aggregate-to-edit', 'aggregate-to-view'],
  rules: [{ verbs: READ, apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'] }],
};

/**
 * The lab's controllers run under one identity, system:kube-controller-manager, whose default role is for a controller
 * manager that gets a service account for each controller. This role has what they need together: the kinds of the
 * table, without the subresources that lead into containers and kubelets.
 */
export function controllerRules(kinds: readonly ResourceKind[]): PolicyRule[] {
  const core = kinds
    .filter(({ group }) => group === '')
    .flatMap(({ plural, subresources }) => [
      plural,
      ...subresources.filter((sub) => !NOT_FOR_CONTROLLERS.has(sub)).map((sub) => `${plural}/${sub}`),
    ]);
  const stored = kinds.filter(({ computed }) => computed === undefined);
  const groups = [...new Set(stored.map(({ group }) => group))].filter((group) => group !== '').sort();
  const verbs = [...READ, ...WRITE];
  return [
    { verbs, apiGroups: [''], resources: [...new Set(core)].sort() },
    { verbs, apiGroups: groups, resources: ['*'] },
    {
      verbs: ['approve', 'sign'],
      apiGroups: ['certificates.k8s.io'],
      resources: ['signers'],
      resourceNames: [
        'kube-apiserver-client',
        'kube-apiserver-client-kubelet',
        'kubelet-serving',
        'legacy-unknown',
      ].map((name) => `kubernetes.io/${name}`),
    },
    { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'] },
    {
      verbs: READ,
      apiGroups: ['metrics.k8s.io', 'custom.metrics.k8s.io', 'external.metrics.k8s.io'],
      resources: ['*'],
    },
  ];
}

/** The controllers' rules for the groups of custom resources: emptying namespaces and collecting garbage need every kind. */
export function customResourceRules(groups: readonly string[]): PolicyRule[] {
  const apiGroups = [...new Set(groups)].sort();
  return apiGroups.length === 0 ? [] : [{ verbs: [...READ, ...WRITE], apiGroups, resources: ['*'] }];
}

/** Every default object of one plural, for a server of these kinds. */
export function defaultObjects(kinds: readonly ResourceKind[]): Readonly<Record<string, readonly KubeObject[]>> {
  const lab: readonly DefaultRole[] = [
    { name: CONTROLLERS_ROLE, aggregate: [CONTROLLERS_LABEL], rules: [] },
    { name: `${CONTROLLERS_ROLE}:kinds`, labels: [CONTROLLERS_LABEL], rules: controllerRules(kinds) },
    { name: CUSTOM_RESOURCES_ROLE, labels: [CONTROLLERS_LABEL], rules: [] },
    METRICS_READER,
  ];
  const labBinding = {
    name: CONTROLLERS_ROLE,
    role: `ClusterRole/${CONTROLLERS_ROLE}`,
    subjects: ['User/system:kube-controller-manager'],
  };
  return {
    clusterroles: [...FILE.clusterRoles, ...lab].map((role) => roleObject('ClusterRole', role)),
    clusterrolebindings: [...FILE.clusterRoleBindings, labBinding].map((one) =>
      bindingObject('ClusterRoleBinding', one),
    ),
    roles: FILE.roles.map((role) => roleObject('Role', role)),
    rolebindings: FILE.roleBindings.map((one) => bindingObject('RoleBinding', one)),
  };
}
