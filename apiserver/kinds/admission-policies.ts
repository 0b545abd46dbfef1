// ValidatingAdmissionPolicies and their bindings: the rows, their defaults and rules. Evaluating them is the admission plugin
// ValidatingAdmissionPolicy.

import type {
  MatchResources,
  NamedRuleWithOperations,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from 'kubernetes-types/admissionregistration/v1';
import { sameJson } from '../../lib/same-json.ts';
import { DeclaredVariables, printedType, resultType } from '../admission/policies/check.ts';
import { CelCompileError } from '../cel/cel.ts';
import { namedTable, text } from './columns.ts';
import { addErrors, duplicate, forbidden, invalid, oneOf, required, syntax, tooMany } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1035Label, dns1123Subdomain, pathSegment, qualifiedName } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as, type Loose } from './shapes.ts';
import { validateLabelSelector } from './shared/selectors.ts';
import { type Rule, validateRule } from './webhooks.ts';

export type NamedRule = Loose<NamedRuleWithOperations> & Rule;
export type Match = Omit<Loose<MatchResources>, 'resourceRules' | 'excludeResourceRules'> & {
  resourceRules?: NamedRule[] | undefined;
  excludeResourceRules?: NamedRule[] | undefined;
};

export const policyOf = (object: KubeObject) => as<ValidatingAdmissionPolicy>(object, 'ValidatingAdmissionPolicy');
export const bindingOf = (object: KubeObject) =>
  as<ValidatingAdmissionPolicyBinding>(object, 'ValidatingAdmissionPolicyBinding');
type PolicySpec = NonNullable<ReturnType<typeof policyOf>['spec']>;
type BindingSpec = NonNullable<ReturnType<typeof bindingOf>['spec']>;

const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];
const ACTIONS = ['Audit', 'Deny', 'Warn'];
const MAX_CONDITIONS = 64;
const MAX_AUDIT_ANNOTATIONS = 20;
const MAX_VALUE_EXPRESSION = 5 * 1024;

function defaultMatch(match: Match | undefined): void {
  if (match === undefined) return;
  match.matchPolicy ??= 'Equivalent';
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) rule.scope ??= '*';
}

function validateNamedRule(field: string, rule: NamedRule): FieldError[] {
  const names = rule.resourceNames ?? [];
  const errors = names.flatMap((name, index) => [
    ...syntax(`${field}.resourceNames[${index}]`, name, pathSegment(name)),
    ...(names.indexOf(name) < index ? [duplicate(`${field}.resourceNames[${index}]`, name)] : []),
  ]);
  return [...errors, ...validateRule(field, rule)];
}

function validateMatch(field: string, match: Match): FieldError[] {
  const errors = oneOf(`${field}.matchPolicy`, match.matchPolicy, ['Equivalent', 'Exact']);
  for (const selector of ['namespaceSelector', 'objectSelector'] as const) {
    addErrors(errors, validateLabelSelector(`${field}.${selector}`, match[selector] ?? {}));
  }
  for (const list of ['resourceRules', 'excludeResourceRules'] as const) {
    for (const [index, rule] of (match[list] ?? []).entries()) {
      addErrors(errors, validateNamedRule(`${field}.${list}[${index}]`, rule));
    }
  }
  return errors;
}

interface ExpressionScope {
  readonly params: boolean;
  /** Messages are made without it. */
  readonly authorizer?: boolean;
  /** Absent where `variables` is not known: conditions are evaluated before them. */
  readonly variables?: DeclaredVariables;
}

/** `types`: what the expression may result in; absent: anything. */
function validateExpression(
  field: string,
  expression: string,
  { params, authorizer = true, variables }: ExpressionScope,
  types?: readonly string[],
): FieldError[] {
  try {
    const type = printedType(resultType(expression, { params, authorizer }, variables));
    if (types === undefined || types.includes(type)) return [];
    const wanted = types.length === 1 ? `${types[0]}` : `one of [${types.join(' ')}]`;
    return [invalid(field, expression, `must evaluate to ${wanted} but got ${type}`)];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return [invalid(field, expression, `compilation failed: ${error.message}`)];
  }
}

function validateConditions(field: string, { matchConditions = [], paramKind }: PolicySpec): FieldError[] {
  if (matchConditions.length > MAX_CONDITIONS) return [tooMany(field, matchConditions.length, MAX_CONDITIONS)];
  return matchConditions.flatMap(({ name = '', expression = '' }, index) => {
    const at = `${field}[${index}]`;
    const errors =
      expression.trim() === ''
        ? [required(`${at}.expression`)]
        : validateExpression(`${at}.expression`, expression, { params: paramKind !== undefined }, ['bool']);
    addErrors(errors, name === '' ? [required(`${at}.name`)] : syntax(`${at}.name`, name, qualifiedName(name)));
    const first = matchConditions.findIndex((other) => other.name === name);
    if (name !== '' && first < index) errors.push(duplicate(`${at}.name`, name));
    return errors;
  });
}

/** Declares each of them for what comes after it. */
function validateVariables(field: string, { variables = [] }: PolicySpec, scope: Required<ExpressionScope>) {
  return variables.flatMap(({ name = '', expression = '' }, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (name.trim() === '') errors.push(required(`${at}.name`, 'name is not specified'));
    else if (!/^[_a-zA-Z]\w*$/.test(name)) {
      errors.push(invalid(`${at}.name`, name, 'name is not a valid CEL identifier'));
    }
    if (expression.trim() === '') errors.push(required(`${at}.expression`, 'expression is not specified'));
    else addErrors(errors, declareVariable(`${at}.expression`, name, expression, scope));
    return errors;
  });
}

function declareVariable(field: string, name: string, expression: string, scope: Required<ExpressionScope>) {
  try {
    scope.variables.declare(name, resultType(expression, scope, scope.variables));
    return [];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    scope.variables.declare(name, 'dyn');
    return [invalid(field, expression, `compilation failed: ${error.message}`)];
  }
}

type Validation = NonNullable<PolicySpec['validations']>[number];

function validateValidation(field: string, validation: Validation, scope: ExpressionScope): FieldError[] {
  const { expression = '', message = '', messageExpression = '', reason } = validation;
  const errors =
    expression.trim() === ''
      ? [required(`${field}.expression`, 'expression is not specified')]
      : validateExpression(`${field}.expression`, expression, scope, ['bool']);
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(invalid(`${field}.messageExpression`, messageExpression, 'must be non-empty if specified'));
  } else if (messageExpression !== '') {
    const forMessage = { ...scope, authorizer: false };
    addErrors(errors, validateExpression(`${field}.messageExpression`, messageExpression, forMessage, ['string']));
  }
  if (message !== '' && message.trim() === '') {
    errors.push(invalid(`${field}.message`, message, 'message must be non-empty if specified'));
  } else if (/[\n\r]/.test(message.trim())) {
    errors.push(invalid(`${field}.message`, message, 'message must not contain line breaks'));
  }
  if (reason !== undefined) addErrors(errors, oneOf(`${field}.reason`, reason, REASONS));
  return errors;
}

function validateAnnotations(policyName: string, spec: PolicySpec, scope: ExpressionScope): FieldError[] {
  const { auditAnnotations = [] } = spec;
  const field = 'spec.auditAnnotations';
  const errors: FieldError[] = [];
  if (auditAnnotations.length > MAX_AUDIT_ANNOTATIONS) {
    const detail = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
    errors.push(invalid(field, auditAnnotations, detail));
  }
  for (const [index, { key = '', valueExpression = '' }] of auditAnnotations.entries()) {
    const at = `${field}[${index}]`;
    const whole = `${policyName}/${key}`;
    addErrors(errors, syntax(`${at}.key`, whole, qualifiedName(whole)));
    if (valueExpression.trim() === '') {
      errors.push(required(`${at}.valueExpression`, 'valueExpression is not specified'));
    } else if (valueExpression.length > MAX_VALUE_EXPRESSION) {
      errors.push(required(`${at}.valueExpression`, `must not exceed ${MAX_VALUE_EXPRESSION} bytes in length`));
    } else {
      const types = ['string', 'null_type'];
      addErrors(errors, validateExpression(`${at}.valueExpression`, valueExpression, scope, types));
    }
    if (auditAnnotations.findIndex((other) => other.key === key) < index) errors.push(duplicate(`${at}.key`, key));
  }
  return errors;
}

function validateParamKind(field: string, { apiVersion = '', kind = '' }: NonNullable<PolicySpec['paramKind']>) {
  const errors: FieldError[] = [];
  const parts = apiVersion.split('/');
  const version = parts.at(-1) ?? '';
  if (apiVersion === '') errors.push(required(`${field}.apiVersion`));
  else if (parts.length > 2) {
    errors.push(invalid(`${field}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
  } else addErrors(errors, syntax(`${field}.apiVersion`, version, dns1035Label(version)));
  if (kind === '') errors.push(required(`${field}.kind`));
  else {
    const why = dns1035Label(kind.toLowerCase());
    const detail = `may have mixed case, but should otherwise match: ${why.join(',')}`;
    if (why.length > 0) errors.push(invalid(`${field}.kind`, kind, detail));
  }
  return errors;
}

function validatePolicy(object: KubeObject): FieldError[] {
  const { metadata, spec = {} } = policyOf(object);
  const { validations = [], auditAnnotations = [], paramKind, matchConstraints } = spec;
  const errors = oneOf('spec.failurePolicy', spec.failurePolicy, ['Ignore', 'Fail']);
  if (paramKind !== undefined) addErrors(errors, validateParamKind('spec.paramKind', paramKind));
  if (matchConstraints === undefined) errors.push(required('spec.matchConstraints'));
  else {
    addErrors(errors, validateMatch('spec.matchConstraints', matchConstraints));
    if ((matchConstraints.resourceRules ?? []).length === 0) {
      errors.push(required('spec.matchConstraints.resourceRules'));
    }
  }
  const variables = new DeclaredVariables(spec.variables?.length ?? 0);
  const scope = { params: paramKind !== undefined, authorizer: true, variables };
  addErrors(errors, validateConditions('spec.matchConditions', spec), validateVariables('spec.variables', spec, scope));
  if (validations.length === 0 && auditAnnotations.length === 0) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    errors.push(required('spec.validations', detail), required('spec.auditAnnotations', detail));
  }
  for (const [index, validation] of validations.entries()) {
    addErrors(errors, validateValidation(`spec.validations[${index}]`, validation, scope));
  }
  return [...errors, ...validateAnnotations(metadata.name ?? '', spec, scope)];
}

function validateParamRef(field: string, ref: NonNullable<BindingSpec['paramRef']>): FieldError[] {
  const { name = '', selector, parameterNotFoundAction } = ref;
  const errors = name === '' ? [] : syntax(`${field}.name`, name, pathSegment(name));
  const exclusive = 'name and selector are mutually exclusive';
  if (name !== '' && selector !== undefined) errors.push(forbidden(`${field}.name`, exclusive));
  if (selector !== undefined) {
    addErrors(errors, validateLabelSelector(`${field}.selector`, selector));
    if (name !== '') errors.push(forbidden(`${field}.selector`, exclusive));
  }
  if (name === '' && selector === undefined) errors.push(required(field, 'one of name or selector must be specified'));
  return [...errors, ...oneOf(`${field}.parameterNotFoundAction`, parameterNotFoundAction, ['Deny', 'Allow'])];
}

function validateActions(field: string, actions: readonly string[]): FieldError[] {
  if (actions.length === 0) return [required(field, 'at least one validation action is required')];
  const errors = actions.flatMap((action, index) => [
    ...oneOf(`${field}[${index}]`, action, ACTIONS),
    ...(actions.indexOf(action) < index ? [duplicate(`${field}[${index}]`, action)] : []),
  ]);
  if (actions.includes('Deny') && actions.includes('Warn')) {
    const detail =
      'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)';
    errors.push(invalid(field, actions, detail));
  }
  return errors;
}

function validateBinding(object: KubeObject): FieldError[] {
  const { policyName = '', paramRef, matchResources, validationActions = [] } = bindingOf(object).spec ?? {};
  const errors =
    policyName === ''
      ? [required('spec.policyName')]
      : syntax('spec.policyName', policyName, dns1123Subdomain(policyName));
  if (paramRef !== undefined) addErrors(errors, validateParamRef('spec.paramRef', paramRef));
  // Upstream's path is spelled like this.
  if (matchResources !== undefined) addErrors(errors, validateMatch('spec.matchResouces', matchResources));
  return [...errors, ...validateActions('spec.validationActions', validationActions)];
}

export const validatingadmissionpolicies = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
  singular: 'validatingadmissionpolicy',
  categories: ['api-extensions'],
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy',
  standardFinalizers: false,
  strategy: {
    applyDefaults: (object) => {
      const { spec } = policyOf(object);
      if (spec === undefined) return;
      spec.failurePolicy ??= 'Fail';
      defaultMatch(spec.matchConstraints);
    },
    validateCreate: validatePolicy,
    validateUpdate: validatePolicy,
    table: namedTable(
      [
        { name: 'Validations', type: 'integer', description: 'The number of validations.' },
        text('ParamKind', 'The kind of the objects that parametrise the policy.'),
      ],
      (object) => {
        const { validations = [], paramKind } = policyOf(object).spec ?? {};
        const kind = paramKind === undefined ? '<unset>' : `${paramKind.apiVersion ?? ''}/${paramKind.kind ?? ''}`;
        return [validations.length, kind];
      },
    ),
  },
});

export const validatingadmissionpolicybindings = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
  singular: 'validatingadmissionpolicybinding',
  categories: ['api-extensions'],
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding',
  standardFinalizers: false,
  strategy: {
    applyDefaults: (object) => defaultMatch(bindingOf(object).spec?.matchResources),
    prepareForCreate: ({ metadata }) => {
      metadata.generation = 1;
    },
    prepareForUpdate: (object, old) => {
      if (!sameJson(object['spec'], old['spec'])) object.metadata.generation = (old.metadata.generation ?? 0) + 1;
    },
    validateCreate: validateBinding,
    validateUpdate: validateBinding,
    table: namedTable(
      [text('PolicyName', 'The policy that is bound.'), text('ParamRef', 'The parameters of the policy.')],
      (object) => {
        const { policyName = '', paramRef } = bindingOf(object).spec ?? {};
        const { namespace = '', name = '' } = paramRef ?? {};
        return [policyName, paramRef === undefined ? '<unset>' : namespace === '' ? name : `${namespace}/${name}`];
      },
    ),
  },
});
