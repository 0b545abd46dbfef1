// Rules for what steers a pod to a node: selectors, affinity, tolerations, spread, gates.

import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notSupported,
  oneOf,
  optionalOneOf,
  required,
  syntax,
} from '../field-errors.ts';
import { duplicates, validateLabels } from '../metadata.ts';
import { labelValue, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { PodSpec } from '../shapes.ts';
import { validateLabelSelector } from '../shared/selectors.ts';

type Affinity = NonNullable<PodSpec['affinity']>;
type NodeAffinity = NonNullable<Affinity['nodeAffinity']>;
type NodeTerm = NonNullable<
  NonNullable<NodeAffinity['preferredDuringSchedulingIgnoredDuringExecution']>[number]['preference']
>;
type Expression = NonNullable<NodeTerm['matchExpressions']>[number];
type PodTerm = NonNullable<
  NonNullable<Affinity['podAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number];
export type Toleration = NonNullable<PodSpec['tolerations']>[number];

const EFFECTS = ['NoExecute', 'NoSchedule', 'PreferNoSchedule'];
const NODE_OPERATORS = ['DoesNotExist', 'Exists', 'Gt', 'In', 'Lt', 'NotIn'];

export function validateScheduling(field: string, spec: PodSpec): FieldError[] {
  return [
    ...validateLabels(`${field}.nodeSelector`, spec.nodeSelector),
    ...validateAffinity(`${field}.affinity`, spec.affinity),
    ...validateTolerations(`${field}.tolerations`, spec.tolerations ?? []),
    ...validateSpread(`${field}.topologySpreadConstraints`, spec.topologySpreadConstraints ?? []),
    ...validateGates(`${field}.schedulingGates`, spec),
  ];
}

function validateAffinity(field: string, affinity: Affinity | undefined): FieldError[] {
  if (affinity === undefined) return [];
  const errors: FieldError[] = [];
  if (affinity.nodeAffinity !== undefined)
    addErrors(errors, validateNodeAffinity(`${field}.nodeAffinity`, affinity.nodeAffinity));
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const rules = affinity[kind];
    for (const [index, term] of (rules?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      addErrors(
        errors,
        validatePodTerm(`${field}.${kind}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, term),
      );
    }
    for (const [index, weighted] of (rules?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      const at = `${field}.${kind}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
      addErrors(errors, validateWeight(`${at}.weight`, weighted.weight));
      addErrors(errors, validatePodTerm(`${at}.podAffinityTerm`, weighted.podAffinityTerm ?? {}));
    }
  }
  return errors;
}

function validateWeight(field: string, weight = 0): FieldError[] {
  return weight < 1 || weight > 100 ? [invalid(field, weight, 'must be in the range 1-100')] : [];
}

function validateNodeAffinity(field: string, affinity: NodeAffinity): FieldError[] {
  const errors: FieldError[] = [];
  const hard = affinity.requiredDuringSchedulingIgnoredDuringExecution;
  if (hard !== undefined) {
    addErrors(errors, validateNodeSelector(`${field}.requiredDuringSchedulingIgnoredDuringExecution`, hard));
  }
  for (const [index, weighted] of (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const at = `${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    addErrors(errors, validateWeight(`${at}.weight`, weighted.weight));
    addErrors(errors, validateNodeTerm(`${at}.preference`, weighted.preference ?? {}));
  }
  return errors;
}

/** What a volume's node affinity is, too. */
export function validateNodeSelector(
  field: string,
  { nodeSelectorTerms: terms = [] }: { nodeSelectorTerms?: NodeTerm[] | undefined },
): FieldError[] {
  const at = `${field}.nodeSelectorTerms`;
  if (terms.length === 0) return [required(at, 'must have at least one node selector term')];
  return terms.flatMap((term, index) => validateNodeTerm(`${at}[${index}]`, term));
}

function validateNodeTerm(field: string, term: NodeTerm): FieldError[] {
  const errors = (term.matchExpressions ?? []).flatMap((expression, index) =>
    validateExpression(`${field}.matchExpressions[${index}]`, expression),
  );
  for (const [index, expression] of (term.matchFields ?? []).entries()) {
    const at = `${field}.matchFields[${index}]`;
    addErrors(errors, oneOf(`${at}.operator`, expression.operator, ['In', 'NotIn']));
    if ((expression.values ?? []).length !== 1) {
      errors.push(
        required(`${at}.values`, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
      );
    }
    if (expression.key !== 'metadata.name')
      errors.push(invalid(`${at}.key`, expression.key, 'not a valid field selector key'));
  }
  return errors;
}

function validateExpression(field: string, expression: Expression): FieldError[] {
  const errors: FieldError[] = [];
  const values = expression.values ?? [];
  switch (expression.operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        errors.push(required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        errors.push(forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
      break;
    case 'Gt':
    case 'Lt':
      if (values.length !== 1) {
        errors.push(required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
      }
      break;
    default:
      errors.push(
        NODE_OPERATORS.includes(expression.operator ?? '')
          ? required(`${field}.operator`)
          : invalid(`${field}.operator`, expression.operator, 'not a valid selector operator'),
      );
  }
  return errors.concat(syntax(`${field}.key`, expression.key ?? '', qualifiedName(expression.key ?? '')));
}

function validatePodTerm(field: string, term: PodTerm): FieldError[] {
  const errors: FieldError[] = [];
  if (term.labelSelector !== undefined)
    addErrors(errors, validateLabelSelector(`${field}.labelSelector`, term.labelSelector));
  if (term.namespaceSelector !== undefined) {
    addErrors(errors, validateLabelSelector(`${field}.namespaceSelector`, term.namespaceSelector));
  }
  const key = term.topologyKey ?? '';
  if (key === '') errors.push(required(`${field}.topologyKey`, 'can not be empty'));
  return errors.concat(syntax(`${field}.topologyKey`, key, key === '' ? [] : qualifiedName(key)));
}

export function validateTolerations(field: string, tolerations: readonly Toleration[]): FieldError[] {
  return tolerations.flatMap((toleration, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const { key = '', operator = '', value = '', effect = '' } = toleration;
    if (key !== '') addErrors(errors, syntax(`${at}.key`, key, qualifiedName(key)));
    else if (operator !== 'Exists') {
      errors.push(
        invalid(
          `${at}.operator`,
          operator,
          'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (toleration.tolerationSeconds !== undefined && effect !== 'NoExecute') {
      errors.push(invalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
    if (operator === '' || operator === 'Equal') addErrors(errors, syntax(`${at}.operator`, value, labelValue(value)));
    else if (operator === 'Exists') {
      if (value !== '')
        errors.push(invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'"));
    } else errors.push(notSupported(`${at}.operator`, operator, ['Equal', 'Exists']));
    if (effect !== '') addErrors(errors, oneOf(`${at}.effect`, effect, EFFECTS));
    return errors;
  });
}

type Spread = NonNullable<PodSpec['topologySpreadConstraints']>[number];

function validateSpread(field: string, constraints: readonly Spread[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, constraint] of constraints.entries()) {
    const at = `${field}[${index}]`;
    const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '', minDomains } = constraint;
    if (maxSkew <= 0) errors.push(invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero'));
    if (topologyKey === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    else addErrors(errors, syntax(`${at}.topologyKey`, topologyKey, qualifiedName(topologyKey)));
    addErrors(errors, oneOf(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']));
    if (minDomains !== undefined && minDomains <= 0) {
      errors.push(invalid(`${at}.minDomains`, minDomains, 'must be greater than zero'));
    } else if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule') {
      errors.push(
        invalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        ),
      );
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair));
    seen.add(pair);
    for (const policy of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      addErrors(errors, optionalOneOf(`${at}.${policy}`, constraint[policy], ['Honor', 'Ignore']));
    }
    if (constraint.labelSelector !== undefined) {
      addErrors(errors, validateLabelSelector(`${at}.labelSelector`, constraint.labelSelector));
    }
  }
  return errors;
}

function validateGates(field: string, spec: PodSpec): FieldError[] {
  const gates = spec.schedulingGates ?? [];
  return [
    ...gates.flatMap((gate, index) => syntax(`${field}[${index}]`, gate.name ?? '', qualifiedName(gate.name ?? ''))),
    ...duplicates(
      gates,
      (index) => `${field}[${index}]`,
      (gate) => gate.name,
    ),
  ];
}
