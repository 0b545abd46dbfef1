// MutatingWebhookConfigurations and ValidatingWebhookConfigurations: the rows, their defaults and rules. Calling the webhooks
// is admission/webhooks.

import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  RuleWithOperations,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from 'kubernetes-types/admissionregistration/v1';
import { sameJson } from '../../lib/same-json.ts';
import { printedType, resultType } from '../admission/policies/check.ts';
import { CelCompileError } from '../cel/cel.ts';
import { namedTable } from './columns.ts';
import { addErrors, duplicate, invalid, notSupported, oneOf, required, syntax, tooMany } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1035Label, dns1123Subdomain, portNumber, qualifiedName } from './names.ts';
import type { FieldError, KubeObject, ResourceKind } from './resource.ts';
import { as, type Loose } from './shapes.ts';
import { validateLabelSelector } from './shared/selectors.ts';
import { validatePath, validateUrl } from './webhook-clients.ts';

/** The published type lacks two fields. */
export type Rule = Loose<RuleWithOperations> & { resources?: string[] | undefined; scope?: string | undefined };
/** Of either kind; only mutating ones have a reinvocationPolicy. */
export type Webhook = Omit<Loose<MutatingWebhook>, 'rules'> & { rules?: Rule[] | undefined };
type ClientConfig = Loose<WebhookClientConfig>;

export function webhooksOf(object: KubeObject): Webhook[] {
  return object.kind === 'MutatingWebhookConfiguration'
    ? (as<MutatingWebhookConfiguration>(object, object.kind).webhooks ?? [])
    : (as<ValidatingWebhookConfiguration>(object, 'ValidatingWebhookConfiguration').webhooks ?? []);
}

function applyDefaults(object: KubeObject): void {
  for (const hook of webhooksOf(object)) {
    hook.failurePolicy ??= 'Fail';
    hook.matchPolicy ??= 'Equivalent';
    hook.namespaceSelector ??= {};
    hook.objectSelector ??= {};
    hook.timeoutSeconds ??= 10;
    if (object.kind === 'MutatingWebhookConfiguration') hook.reinvocationPolicy ??= 'Never';
    for (const rule of hook.rules ?? []) rule.scope ??= '*';
    if (hook.clientConfig?.service !== undefined) hook.clientConfig.service.port ??= 443;
  }
}

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'];
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function validateResources(field: string, resources: readonly string[]): FieldError[] {
  if (resources.length === 0) return [required(field)];
  const errors: FieldError[] = [];
  const wildSubresources = new Set<string>();
  const wildResources = new Set<string>();
  for (const [index, resource] of resources.entries()) {
    const at = `${field}[${index}]`;
    if (resource === '') errors.push(required(at));
    const slash = resource.indexOf('/');
    if (slash < 0) continue;
    const [name, sub] = [resource.slice(0, slash), resource.slice(slash + 1)];
    if (wildSubresources.has(name)) {
      errors.push(invalid(at, resource, `if '${name}/*' is present, must not specify ${resource}`));
    }
    if (wildResources.has(sub)) {
      errors.push(invalid(at, resource, `if '*/${sub}' is present, must not specify ${resource}`));
    }
    if (sub === '*') wildSubresources.add(name);
    if (name === '*') wildResources.add(sub);
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(field, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && resources.some((name) => name !== '*' && name !== '' && !name.includes('/'))) {
    errors.push(invalid(field, resources, "if '*' is present, must not specify other resources without subresources"));
  }
  return errors;
}

/** A list that is not empty and has "*" alone. */
function validateWild(field: string, values: readonly string[], what: string): FieldError[] {
  if (values.length === 0) return [required(field)];
  if (values.length === 1 || !values.includes('*')) return [];
  return [invalid(field, values, `if '*' is present, must not specify other ${what}`)];
}

/** Also of a policy's match. */
export function validateRule(field: string, rule: Rule): FieldError[] {
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  const errors = validateWild(`${field}.operations`, operations, 'operations');
  for (const [index, operation] of operations.entries()) {
    if (!OPERATIONS.includes(operation)) {
      errors.push(notSupported(`${field}.operations[${index}]`, operation, OPERATIONS.toSorted()));
    }
  }
  addErrors(errors, validateWild(`${field}.apiGroups`, apiGroups, 'API groups'));
  addErrors(errors, validateWild(`${field}.apiVersions`, apiVersions, 'API versions'));
  for (const [index, version] of apiVersions.entries()) {
    if (version === '') errors.push(required(`${field}.apiVersions[${index}]`));
  }
  addErrors(errors, validateResources(`${field}.resources`, resources));
  if (scope !== undefined && !['*', 'Cluster', 'Namespaced'].includes(scope)) {
    errors.push(notSupported(`${field}.scope`, scope, ['*', 'Cluster', 'Namespaced']));
  }
  return errors;
}

function validateClient(field: string, { url, service }: ClientConfig): FieldError[] {
  if ((url === undefined) === (service === undefined)) {
    return [required(field, 'exactly one of url or service is required')];
  }
  if (url !== undefined) return validateUrl(`${field}.url`, url);
  const { name = '', namespace = '', path = '', port = 443 } = service ?? {};
  const at = `${field}.service`;
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${at}.name`));
  if (namespace === '') errors.push(required(`${at}.namespace`));
  for (const why of portNumber(port)) errors.push(invalid(`${at}.port`, port, `port is not valid: ${why}`));
  return [...errors, ...validatePath(`${at}.path`, path)];
}

function validateName(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)];
  const errors = syntax(field, name, dns1123Subdomain(name));
  if (name.split('.').length < 3) {
    errors.push(invalid(field, name, 'should be a domain with at least three segments separated by dots'));
  }
  return errors;
}

function validateVersions(field: string, versions: readonly string[]): FieldError[] {
  const all = REVIEW_VERSIONS.join(', ');
  if (versions.length === 0) return [required(field, `must specify one of ${all}`)];
  const errors = versions.flatMap((version, index) =>
    versions.indexOf(version) < index
      ? [invalid(`${field}[${index}]`, version, 'duplicate version')]
      : syntax(`${field}[${index}]`, version, dns1035Label(version)),
  );
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalid(field, versions, `must include at least one of ${all}`));
  }
  return errors;
}

const MAX_CONDITIONS = 64;

function validateExpression(field: string, expression: string): FieldError[] {
  if (expression.trim() === '') return [required(field)];
  try {
    const type = printedType(resultType(expression, { params: false, authorizer: true }));
    return type === 'bool' ? [] : [invalid(field, expression, `must evaluate to bool but got ${type}`)];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return [invalid(field, expression, `compilation failed: ${error.message}`)];
  }
}

function validateConditions(field: string, conditions: NonNullable<Webhook['matchConditions']>): FieldError[] {
  if (conditions.length > MAX_CONDITIONS) return [tooMany(field, conditions.length, MAX_CONDITIONS)];
  const names = new Set<string>();
  return conditions.flatMap(({ name = '', expression = '' }, index) => {
    const at = `${field}[${index}]`;
    const errors = validateExpression(`${at}.expression`, expression);
    if (name === '') errors.push(required(`${at}.name`));
    else addErrors(errors, syntax(`${at}.name`, name, qualifiedName(name)));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    return errors;
  });
}

function validateHook(field: string, hook: Webhook): FieldError[] {
  const { sideEffects, timeoutSeconds = 10, reinvocationPolicy } = hook;
  const errors = validateName(`${field}.name`, hook.name ?? '');
  for (const [index, rule] of (hook.rules ?? []).entries()) {
    addErrors(errors, validateRule(`${field}.rules[${index}]`, rule));
  }
  addErrors(errors, oneOf(`${field}.failurePolicy`, hook.failurePolicy, ['Ignore', 'Fail']));
  addErrors(errors, oneOf(`${field}.matchPolicy`, hook.matchPolicy, ['Equivalent', 'Exact']));
  const sideEffectClasses = ['None', 'NoneOnDryRun'];
  if (sideEffects === undefined) {
    errors.push(required(`${field}.sideEffects`, `must specify one of ${sideEffectClasses.join(', ')}`));
  } else addErrors(errors, oneOf(`${field}.sideEffects`, sideEffects, sideEffectClasses));
  if (timeoutSeconds > 30 || timeoutSeconds < 1) {
    const detail = 'the timeout value must be between 1 and 30 seconds';
    errors.push(invalid(`${field}.timeoutSeconds`, timeoutSeconds, detail));
  }
  if (reinvocationPolicy !== undefined) {
    addErrors(errors, oneOf(`${field}.reinvocationPolicy`, reinvocationPolicy, ['Never', 'IfNeeded']));
  }
  for (const selector of ['namespaceSelector', 'objectSelector'] as const) {
    addErrors(errors, validateLabelSelector(`${field}.${selector}`, hook[selector] ?? {}));
  }
  addErrors(errors, validateClient(`${field}.clientConfig`, hook.clientConfig ?? {}));
  addErrors(errors, validateConditions(`${field}.matchConditions`, hook.matchConditions ?? []));
  addErrors(errors, validateVersions(`${field}.admissionReviewVersions`, hook.admissionReviewVersions ?? []));
  return errors;
}

function validate(object: KubeObject): FieldError[] {
  const names = new Set<string>();
  return webhooksOf(object).flatMap((hook, index) => {
    const field = `webhooks[${index}]`;
    const { name = '' } = hook;
    const errors = validateHook(field, hook);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${field}.name`, name));
    names.add(name);
    return errors;
  });
}

function configuration(kind: string, plural: string, singular: string): ResourceKind {
  return defineKind({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind,
    plural,
    singular,
    categories: ['api-extensions'],
    namespaced: false,
    subresources: [],
    schema: `io.k8s.api.admissionregistration.v1.${kind}`,
    standardFinalizers: false,
    strategy: {
      applyDefaults,
      prepareForCreate: ({ metadata }) => {
        metadata.generation = 1;
      },
      prepareForUpdate: (object, old) => {
        if (!sameJson(object['webhooks'], old['webhooks'])) {
          object.metadata.generation = (old.metadata.generation ?? 0) + 1;
        }
      },
      validateCreate: validate,
      validateUpdate: validate,
      table: namedTable(
        [{ name: 'Webhooks', type: 'integer', description: 'The number of webhooks of this configuration.' }],
        (object) => [webhooksOf(object).length],
      ),
    },
  });
}

export const mutatingwebhookconfigurations = configuration(
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  'mutatingwebhookconfiguration',
);
export const validatingwebhookconfigurations = configuration(
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  'validatingwebhookconfiguration',
);
