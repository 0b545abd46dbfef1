// Roles and their bindings (rbac.authorization.k8s.io/v1): who may do what. Messages of pkg/apis/rbac/validation. That a
// caller grants no more than they have is auth/rbac/escalation.ts, called here; deciding requests is auth/rbac/policy.ts.

import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-types/rbac/v1';
import { sameJson } from '../../lib/same-json.ts';
import {
  bindingEscalation,
  type Granting,
  onlyGarbageFields,
  type RoleWrite,
  roleEscalation,
} from '../auth/rbac/escalation.ts';
import { rulesOfObject } from '../auth/rbac/follow.ts';
import { notFound as missingObject } from '../errors.ts';
import { namedTable, text } from './columns.ts';
import { addErrors, invalid, notSupported, required, syntax } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Subdomain, pathSegment } from './names.ts';
import {
  AdmissionForbidden,
  type FieldError,
  type KubeObject,
  type RequestContext,
  type ResourceStrategy,
} from './resource.ts';
import { as, type Loose } from './shapes.ts';
import { validateLabelSelector } from './shared/selectors.ts';

const GROUP = 'rbac.authorization.k8s.io';
type Rule = NonNullable<Loose<Role>['rules']>[number];
type Subject = NonNullable<Loose<RoleBinding>['subjects']>[number];
type AnyBinding = KubeObject & Pick<Loose<RoleBinding>, 'roleRef' | 'subjects'>;

const roleOf = (object: KubeObject) => as<Role>(object, 'Role');
const clusterRoleOf = (object: KubeObject) => as<ClusterRole>(object, 'ClusterRole');
const bindingOf = (object: KubeObject) => as<RoleBinding>(object, 'RoleBinding');
const clusterBindingOf = (object: KubeObject) => as<ClusterRoleBinding>(object, 'ClusterRoleBinding');

function validateRule(field: string, rule: Rule, namespaced: boolean): FieldError[] {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const errors: FieldError[] = [];
  if (verbs.length === 0) errors.push(required(`${field}.verbs`, 'verbs must contain at least one value'));
  if (nonResourceURLs.length > 0) {
    const refuse = (why: string): void => {
      errors.push(invalid(`${field}.nonResourceURLs`, nonResourceURLs, why));
    };
    if (namespaced) refuse('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      refuse('rules cannot apply to both regular resources and non-resource URLs');
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    errors.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (resources.length === 0) {
    errors.push(required(`${field}.resources`, 'resource rules must supply at least one resource'));
  }
  return errors;
}

function validateRules(rules: readonly Rule[] = [], namespaced: boolean): FieldError[] {
  return rules.flatMap((rule, index) => validateRule(`rules[${index}]`, rule, namespaced));
}

const validateRole = (object: KubeObject): FieldError[] => validateRules(roleOf(object).rules, true);

function validateClusterRole(object: KubeObject): FieldError[] {
  const { rules, aggregationRule } = clusterRoleOf(object);
  const errors = validateRules(rules, false);
  if (aggregationRule === undefined) return errors;
  const field = 'aggregationRule.clusterRoleSelectors';
  const { clusterRoleSelectors = [] } = aggregationRule;
  if (clusterRoleSelectors.length === 0) {
    errors.push(required(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil'));
  }
  for (const [index, selector] of clusterRoleSelectors.entries()) {
    addErrors(errors, validateLabelSelector(`${field}[${index}]`, selector));
  }
  return errors;
}

function validateSubject(field: string, subject: Subject, namespaced: boolean): FieldError[] {
  const { kind = '', name = '', namespace = '', apiGroup = '' } = subject;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${field}.name`));
  if (kind === 'ServiceAccount') {
    if (name !== '') addErrors(errors, syntax(`${field}.name`, name, dns1123Subdomain(name)));
    if (apiGroup !== '') errors.push(notSupported(`${field}.apiGroup`, apiGroup, ['']));
    if (!namespaced && namespace === '') errors.push(required(`${field}.namespace`));
  } else if (kind === 'User' || kind === 'Group') {
    if (apiGroup !== GROUP) errors.push(notSupported(`${field}.apiGroup`, apiGroup, [GROUP]));
  } else {
    errors.push(notSupported(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group']));
  }
  return errors;
}

function validateBinding({ roleRef = {}, subjects = [] }: AnyBinding, namespaced: boolean): FieldError[] {
  const { apiGroup = '', kind = '', name = '' } = roleRef;
  const kinds = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole'];
  const errors: FieldError[] = [];
  if (apiGroup !== GROUP) errors.push(notSupported('roleRef.apiGroup', apiGroup, [GROUP]));
  if (!kinds.includes(kind)) errors.push(notSupported('roleRef.kind', kind, kinds));
  if (name === '') errors.push(required('roleRef.name'));
  else addErrors(errors, syntax('roleRef.name', name, pathSegment(name)));
  return errors.concat(
    subjects.flatMap((subject, index) => validateSubject(`subjects[${index}]`, subject, namespaced)),
  );
}

function validateBindingUpdate(binding: AnyBinding, old: AnyBinding): FieldError[] {
  if (sameJson(binding.roleRef, old.roleRef)) return [];
  // Upstream prints the fields as Go names them.
  const { apiGroup: APIGroup = '', kind: Kind = '', name: Name = '' } = binding.roleRef ?? {};
  return [invalid('roleRef', { APIGroup, Kind, Name }, 'cannot change roleRef')];
}

function defaultBinding(binding: AnyBinding): void {
  binding.roleRef ??= {};
  if ((binding.roleRef.apiGroup ?? '') === '') binding.roleRef.apiGroup = GROUP;
  for (const subject of binding.subjects ?? []) {
    if ((subject.apiGroup ?? '') === '') {
      if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup = GROUP;
      else delete subject.apiGroup;
    }
  }
}

/** Undefined where there is no authorizer: the rows alone, in tests. */
function grantingOf(object: KubeObject, { user, authorizer }: RequestContext): Granting | undefined {
  return authorizer && { caller: user, authorizer, namespace: object.metadata.namespace ?? '' };
}

function isAggregated(object: KubeObject | undefined): boolean {
  if (object?.kind !== 'ClusterRole') return false;
  return (clusterRoleOf(object).aggregationRule?.clusterRoleSelectors ?? []).length > 0;
}

/** Refuses a role with more rights than the caller has. */
function grantRole(plural: RoleWrite['plural']): NonNullable<ResourceStrategy['applyCaller']> {
  return (object, { old }, context) => {
    const granting = grantingOf(object, context);
    if (granting === undefined || (old !== undefined && onlyGarbageFields(object, old))) return;
    const aggregated = isAggregated(object) || isAggregated(old);
    const name = old?.metadata.name ?? '';
    const why = roleEscalation(granting, { plural, name, rules: rulesOfObject(object), aggregated });
    if (why !== undefined) throw new AdmissionForbidden(why);
  };
}

/** Refuses to bind a role with more rights than the caller has. */
function grantBinding(of: (object: KubeObject) => AnyBinding): NonNullable<ResourceStrategy['applyCaller']> {
  return (object, { old }, context) => {
    const granting = grantingOf(object, context);
    if (granting === undefined || (old !== undefined && onlyGarbageFields(object, old))) return;
    const { kind = '', name = '' } = of(object).roleRef ?? {};
    const why = bindingEscalation(granting, { kind, name });
    if (typeof why === 'string') throw new AdmissionForbidden(why);
    // Any other kind is refused by validation.
    if (why === undefined || (kind !== 'Role' && kind !== 'ClusterRole')) return;
    throw missingObject({ group: GROUP, plural: kind === 'Role' ? 'roles' : 'clusterroles' }, name);
  };
}

function roleStrategy(plural: RoleWrite['plural'], validate: (object: KubeObject) => FieldError[]) {
  return { applyCaller: grantRole(plural), validateCreate: validate };
}

function bindingStrategy(of: (object: KubeObject) => AnyBinding, namespaced: boolean) {
  return {
    applyDefaults: (object: KubeObject) => defaultBinding(of(object)),
    applyCaller: grantBinding(of),
    validateCreate: (object: KubeObject) => validateBinding(of(object), namespaced),
    validateUpdate: (object: KubeObject, old: KubeObject) => validateBindingUpdate(of(object), of(old)),
    table: bindingTable(of),
  };
}

function bindingTable(of: (object: KubeObject) => AnyBinding) {
  const named = (object: KubeObject, kind: string): string =>
    (of(object).subjects ?? [])
      .filter((subject) => subject.kind === kind)
      .map(({ name = '', namespace = '' }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : name))
      .join(', ');
  return namedTable(
    [text('Role', 'The role that is bound.')],
    (object) => {
      const { kind = '', name = '' } = of(object).roleRef ?? {};
      return [`${kind}/${name}`];
    },
    {
      columns: ['Users', 'Groups', 'ServiceAccounts'].map((name) =>
        text(name, `${name} that the role is bound to.`, 1),
      ),
      cells: (object) => ['User', 'Group', 'ServiceAccount'].map((kind) => named(object, kind)),
    },
  );
}

const COMMON = {
  group: GROUP,
  version: 'v1',
  subresources: [],
  nameRule: pathSegment,
  updateMeta: ['rules', 'create', 'rules', 'create', 'update', 'own'],
} as const;

const ROLE_TABLE: NonNullable<ResourceStrategy['table']> = {
  columns: [
    { name: 'Name', type: 'string', format: 'name', description: 'Name of the role.' },
    { name: 'Created At', type: 'date', description: 'When the role was created.' },
  ],
  row: ({ metadata }) => [metadata.name ?? '', metadata.creationTimestamp ?? null],
};

export const roles = defineKind({
  ...COMMON,
  kind: 'Role',
  plural: 'roles',
  singular: 'role',
  namespaced: true,
  schema: 'io.k8s.api.rbac.v1.Role',
  strategy: { ...roleStrategy('roles', validateRole), table: ROLE_TABLE },
});

export const clusterroles = defineKind({
  ...COMMON,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  singular: 'clusterrole',
  namespaced: false,
  schema: 'io.k8s.api.rbac.v1.ClusterRole',
  strategy: { ...roleStrategy('clusterroles', validateClusterRole), table: ROLE_TABLE },
});

export const rolebindings = defineKind({
  ...COMMON,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  singular: 'rolebinding',
  namespaced: true,
  schema: 'io.k8s.api.rbac.v1.RoleBinding',
  strategy: bindingStrategy(bindingOf, true),
});

export const clusterrolebindings = defineKind({
  ...COMMON,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  singular: 'clusterrolebinding',
  namespaced: false,
  schema: 'io.k8s.api.rbac.v1.ClusterRoleBinding',
  strategy: bindingStrategy(clusterBindingOf, false),
});
