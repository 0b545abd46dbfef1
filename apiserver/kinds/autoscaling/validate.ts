// Rules for HorizontalPodAutoscalers, in the words of autoscaling/v2: what is scaled, by which metrics, how fast.

import type { HorizontalPodAutoscalerSpec } from 'kubernetes-types/autoscaling/v2';
import { parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, forbidden, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { dns1123Label, pathSegment } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';

export type Spec = Loose<HorizontalPodAutoscalerSpec>;
type Metric = NonNullable<Spec['metrics']>[number];
type Target = NonNullable<NonNullable<Metric['resource']>['target']>;
type Rules = NonNullable<NonNullable<Spec['behavior']>['scaleUp']>;
type Reference = NonNullable<Spec['scaleTargetRef']>;

const MAX_PERIOD_SECONDS = 1800;
const MAX_WINDOW_SECONDS = 3600;
const METRIC_TYPES = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource'];
const FIELDS = {
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
  External: 'external',
  ContainerResource: 'containerResource',
} as const;
type Field = (typeof FIELDS)[keyof typeof FIELDS];
/** The first that is there is validated; the type says which it has to be. */
const ORDER: readonly Field[] = ['object', 'external', 'pods', 'resource', 'containerResource'];

export interface Options {
  readonly minReplicasLowerBound: number;
  readonly anyVersion: boolean;
  readonly noGroup: boolean;
}

export function validateSpec(spec: Spec = {}, options: Options): FieldError[] {
  const { minReplicas, maxReplicas = 0, scaleTargetRef = {}, metrics = [], behavior } = spec;
  const errors: FieldError[] = [];
  const bound = options.minReplicasLowerBound;
  if (minReplicas !== undefined && minReplicas < bound) {
    errors.push(invalid('spec.minReplicas', minReplicas, `must be greater than or equal to ${bound}`));
  }
  if (maxReplicas < 1) errors.push(invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0'));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    errors.push(invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`'));
  }
  addErrors(errors, validateReference('spec.scaleTargetRef', scaleTargetRef, options));
  addErrors(errors, ...metrics.map((metric, index) => validateMetric(`spec.metrics[${index}]`, metric)));
  if (minReplicas === 0 && !metrics.some(({ type }) => type === 'Object' || type === 'External')) {
    errors.push(
      forbidden(
        'spec.metrics',
        'must specify at least one Object or External metric to support scaling to zero replicas',
      ),
    );
  }
  for (const direction of ['scaleUp', 'scaleDown'] as const) {
    const rules = behavior?.[direction];
    if (rules !== undefined) addErrors(errors, validateRules(`spec.behavior.${direction}`, rules));
  }
  return errors;
}

function validateReference(at: string, reference: Reference, options: Omit<Options, 'minReplicasLowerBound'>) {
  const { kind = '', name = '', apiVersion = '' } = reference;
  const segment = (field: string, value: string): FieldError[] =>
    value === '' ? [required(field)] : syntax(field, value, pathSegment(value));
  return allOf(
    segment(`${at}.kind`, kind),
    segment(`${at}.name`, name),
    options.anyVersion ? [] : validateVersion(`${at}.apiVersion`, apiVersion, options.noGroup),
  );
}

function validateVersion(field: string, apiVersion: string, noGroup: boolean): FieldError[] {
  const parts = apiVersion.split('/');
  if (parts.length > 2) return [invalid(field, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const grouped = parts.length === 2 && parts[0] !== '';
  return grouped || noGroup ? [] : [invalid(field, apiVersion, 'apiVersion must specify API group')];
}

function validateRules(at: string, rules: Rules): FieldError[] {
  const { stabilizationWindowSeconds: seconds, selectPolicy, policies = [] } = rules;
  const errors: FieldError[] = [];
  const window = `${at}.stabilizationWindowSeconds`;
  if (seconds !== undefined && seconds < 0) {
    errors.push(invalid(window, seconds, 'must be greater than or equal to zero'));
  }
  if (seconds !== undefined && seconds > MAX_WINDOW_SECONDS) {
    errors.push(invalid(window, seconds, `must be less than or equal to ${MAX_WINDOW_SECONDS}`));
  }
  const choices = ['Disabled', 'Max', 'Min'];
  if (selectPolicy !== undefined && !choices.includes(selectPolicy)) {
    errors.push(notSupported(`${at}.selectPolicy`, selectPolicy, choices));
  }
  if (policies.length === 0) errors.push(required(`${at}.policies`, 'must specify at least one Policy'));
  for (const [index, { type = '', value = 0, periodSeconds = 0 }] of policies.entries()) {
    const field = `${at}.policies[${index}]`;
    const types = ['Percent', 'Pods'];
    if (!types.includes(type)) errors.push(notSupported(`${field}.type`, type, types));
    if (value <= 0) errors.push(invalid(`${field}.value`, value, 'must be greater than zero'));
    const period = `${field}.periodSeconds`;
    if (periodSeconds <= 0) errors.push(invalid(period, periodSeconds, 'must be greater than zero'));
    if (periodSeconds > MAX_PERIOD_SECONDS) {
      errors.push(invalid(period, periodSeconds, `must be less than or equal to ${MAX_PERIOD_SECONDS}`));
    }
  }
  return errors;
}

function validateMetric(at: string, metric: Metric): FieldError[] {
  const { type = '' } = metric;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${at}.type`, 'must specify a metric source type'));
  const known = METRIC_TYPES.includes(type);
  if (!known) errors.push(notSupported(`${at}.type`, type, METRIC_TYPES));
  const present = ORDER.filter((field) => metric[field] !== undefined);
  const [first] = present;
  if (first !== undefined) addErrors(errors, validateSource(`${at}.${first}`, first, metric));
  const expected = Object.entries(FIELDS).find(([name]) => name === type)?.[1];
  if (expected !== undefined && metric[expected] === undefined) {
    errors.push(required(`${at}.${expected}`, 'must populate information for the given metric source'));
  }
  if (!known) errors.push(notSupported(`${at}.type`, type, METRIC_TYPES));
  if (present.length === 1) return errors;
  for (const field of present) {
    if (field !== expected) errors.push(forbidden(`${at}.${field}`, 'must populate the given metric source only'));
  }
  return errors;
}

function validateSource(at: string, field: Field, metric: Metric): FieldError[] {
  const source = metric[field];
  const target: Target = source?.target ?? {};
  const common = validateTarget(`${at}.target`, target);
  const average = `${at}.target.averageValue`;
  const { value, averageValue, averageUtilization } = target;
  switch (field) {
    case 'object':
      return allOf(
        validateReference(`${at}.describedObject`, metric.object?.describedObject ?? {}, {
          anyVersion: false,
          noGroup: true,
        }),
        validateName(at, metric.object?.metric?.name),
        common,
        value === undefined && averageValue === undefined
          ? [required(average, 'must set either a target value or averageValue')]
          : [],
      );
    case 'external':
      return allOf(
        validateName(at, metric.external?.metric?.name),
        common,
        value === undefined && averageValue === undefined
          ? [required(average, 'must set either a target value for metric or a per-pod target')]
          : [],
        value !== undefined && averageValue !== undefined
          ? [forbidden(`${at}.target.value`, 'may not set both a target value for metric and a per-pod target')]
          : [],
      );
    case 'pods':
      return allOf(
        validateName(at, metric.pods?.metric?.name),
        common,
        averageValue === undefined ? [required(average, 'must specify a positive target averageValue')] : [],
      );
    default: {
      const name = metric[field]?.name ?? '';
      const container = metric.containerResource?.container ?? '';
      return allOf(
        name === '' ? [required(`${at}.name`, 'must specify a resource name')] : [],
        field === 'containerResource' ? validateContainer(`${at}.container`, container) : [],
        common,
        averageUtilization === undefined && averageValue === undefined
          ? [required(`${at}.target.averageUtilization`, 'must set either a target raw value or a target utilization')]
          : [],
        averageUtilization !== undefined && averageValue !== undefined
          ? [forbidden(average, 'may not set both a target raw value and a target utilization')]
          : [],
      );
    }
  }
}

function validateContainer(field: string, container: string): FieldError[] {
  return container === ''
    ? [required(field, 'must specify a container')]
    : syntax(field, container, dns1123Label(container));
}

function validateName(at: string, name = ''): FieldError[] {
  const field = `${at}.metric.name`;
  return name === '' ? [required(field, 'must specify a metric name')] : syntax(field, name, pathSegment(name));
}

function validateTarget(at: string, target: Target): FieldError[] {
  const { type = '', value, averageValue, averageUtilization } = target;
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${at}.type`, 'must specify a metric target type'));
  if (!['Utilization', 'Value', 'AverageValue'].includes(type)) {
    errors.push(invalid(`${at}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const [field, quantity] of [
    ['value', value],
    ['averageValue', averageValue],
  ] as const) {
    if (quantity !== undefined && (parseQuantity(quantity) ?? 0n) <= 0n) {
      errors.push(invalid(`${at}.${field}`, quantity, 'must be positive'));
    }
  }
  if (averageUtilization !== undefined && averageUtilization < 1) {
    errors.push(invalid(`${at}.averageUtilization`, averageUtilization, 'must be greater than 0'));
  }
  return errors;
}
