// ResourceQuotas: the row, its rules, and how kubectl get prints one. Enforcing them is the admission plugin ResourceQuota,
// keeping their status admission/quota/ledger.ts.

import type { ResourceQuota, ResourceQuotaSpec } from 'kubernetes-types/core/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, IMMUTABLE, invalid, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { qualifiedName } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Loose } from '../shapes.ts';
import { COMPUTE_QUOTA, isIntegerResource, isStandardQuotaResource, nano, type Quantities } from './shared.ts';

type Spec = Loose<ResourceQuotaSpec>;
const of = (object: KubeObject) => as<ResourceQuota>(object, 'ResourceQuota');
const UNIT = 1_000_000_000n;

/** Scopes that select pods by a property they have or have not; each with the one it excludes. */
const EXISTS_ONLY = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity'];
const SCOPES = [...EXISTS_ONLY, 'PriorityClass', 'VolumeAttributesClass'];
const CONFLICTS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];

function scopeFits(scope: string, resource: string): boolean {
  if (scope === 'BestEffort') return resource === 'pods';
  if (scope === 'VolumeAttributesClass') return ['persistentvolumeclaims', 'requests.storage'].includes(resource);
  return !SCOPES.includes(scope) || resource === 'pods' || COMPUTE_QUOTA.includes(resource);
}

function validateList(field: string, list: Quantities): FieldError[] {
  return Object.entries(list).flatMap(([name, quantity]) => {
    const at = `${field}[${name}]`;
    const errors = syntax(at, name, qualifiedName(name));
    if (errors.length === 0 && !name.includes('/') && !isStandardQuotaResource(name)) {
      errors.push(invalid(at, name, 'must be a standard resource for quota'));
    }
    const value = nano(quantity);
    if (value < 0n) errors.push(invalid(at, quantity, 'must be greater than or equal to 0'));
    if (isIntegerResource(name) && value % UNIT !== 0n) errors.push(invalid(at, quantity, 'must be an integer'));
    return errors;
  });
}

/** Every resource of `hard` that a scope cannot be applied to. */
function misfits(scope: string, hard: Quantities): string[] {
  return Object.keys(hard).filter((name) => isStandardQuotaResource(name) && !scopeFits(scope, name));
}

function conflicting(scopes: readonly string[]): number {
  return CONFLICTS.filter((pair) => pair.every((scope) => scopes.includes(scope))).length;
}

function validateScopes({ scopes = [], hard = {} }: Spec): FieldError[] {
  const field = 'spec.scopes';
  const errors: FieldError[] = [];
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) errors.push(invalid(field, scopes, 'unsupported scope'));
    for (const _ of misfits(scope, hard)) {
      errors.push(invalid(field, scopes, 'unsupported scope applied to resource'));
    }
  }
  for (let i = 0; i < conflicting(scopes); i++) errors.push(invalid(field, scopes, 'conflicting scopes'));
  return errors;
}

function validateSelector({ scopeSelector, scopes, hard = {} }: Spec): FieldError[] {
  const field = 'spec.scopeSelector.matchExpressions';
  const errors: FieldError[] = [];
  const expressions = scopeSelector?.matchExpressions ?? [];
  for (const { scopeName = '', operator = '', values = [] } of expressions) {
    if (!SCOPES.includes(scopeName)) errors.push(invalid(`${field}.scopeName`, scopeName, 'unsupported scope'));
    for (const _ of misfits(scopeName, hard)) {
      errors.push(invalid(field, scopeSelector, 'unsupported scope applied to resource'));
    }
    if (EXISTS_ONLY.includes(scopeName) && operator !== 'Exists') {
      const detail =
        "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
      errors.push(invalid(`${field}.operator`, operator, detail));
    }
    if (operator === 'In' || operator === 'NotIn') {
      if (values.length === 0) {
        const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
        errors.push(required(`${field}.values`, detail));
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (values.length > 0) {
        const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
        errors.push(invalid(`${field}.values`, values, detail));
      }
    } else errors.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'));
  }
  const names = expressions.map(({ scopeName = '' }) => scopeName);
  for (let i = 0; i < conflicting(names); i++) errors.push(invalid(field, scopes ?? [], 'conflicting scopes'));
  return errors;
}

function validate(object: KubeObject): FieldError[] {
  const spec = of(object).spec ?? {};
  return [...validateList('spec.hard', spec.hard ?? {}), ...validateScopes(spec), ...validateSelector(spec)];
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const errors = validate(object);
  const [now, before] = [of(object), of(old)].map(({ spec }) => new Set(spec?.scopes ?? []));
  if (!sameJson([...(now ?? [])].toSorted(), [...(before ?? [])].toSorted())) {
    errors.push(invalid('spec.scopes', of(object).spec?.scopes ?? [], IMMUTABLE));
  }
  return errors;
}

function validateStatus(object: KubeObject): FieldError[] {
  const { hard = {}, used = {} } = of(object).status ?? {};
  const errors: FieldError[] = [];
  addErrors(errors, validateList('status.hard', hard), validateList('status.used', used));
  return errors;
}

/** "cpu: 500m/1, pods: 1/2" of the hard limits for which `wanted` holds. */
function usage(object: KubeObject, wanted: (name: string) => boolean): string {
  const { hard = {}, used = {} } = of(object).status ?? {};
  return Object.keys(hard)
    .filter(wanted)
    .sort()
    .map((name) => `${name}: ${getOwn(used, name) ?? '0'}/${getOwn(hard, name) ?? '0'}`)
    .join(', ');
}

export const resourcequotas = defineKind({
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  singular: 'resourcequota',
  shortNames: ['quota'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.core.v1.ResourceQuota',
  strategy: {
    countsGenerations: false,
    prepareForCreate: (object) => {
      of(object).status = {};
    },
    validateCreate: validate,
    validateUpdate,
    validateStatusUpdate: validateStatus,
    table: namedTable(
      [
        text('Request', 'What is requested of each resource, and how much may be.'),
        text('Limit', 'The sum of limits of each resource, and how high it may be.'),
      ],
      (object) => [
        usage(object, (name) => !name.startsWith('limits')),
        usage(object, (name) => name.startsWith('limits')),
      ],
    ),
  },
});
