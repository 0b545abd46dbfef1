// Rules for what steers a pod to a node: selectors, affinity, tolerations, spread, gates.

import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notSupported,
  oneOfListed,
  required,
  syntax,
} from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { PodSpec } from '../shapes.ts';
import { type LabelSelector, validateLabelSelector } from '../shared/selectors.ts';

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

export const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function validateAffinity(field: string, affinity: Affinity | undefined): FieldError[] {
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
    addErrors(errors, validateNodeTerm(`${at}.preference`, weighted.preference ?? {}, true));
  }
  return errors;
}

/** What a volume's node affinity is, too. */
export function validateNodeSelector(
  field: string,
  { nodeSelectorTerms: terms = [] }: { nodeSelectorTerms?: NodeTerm[] | undefined },
  anyValue = false,
): FieldError[] {
  const at = `${field}.nodeSelectorTerms`;
  if (terms.length === 0) return [required(at, 'must have at least one node selector term')];
  return terms.flatMap((term, index) => validateNodeTerm(`${at}[${index}]`, term, anyValue));
}

/** `anyValue`: a preference for what no node can have is of no use, and valid. */
function validateNodeTerm(field: string, term: NodeTerm, anyValue: boolean): FieldError[] {
  const errors = (term.matchExpressions ?? []).flatMap((expression, index) =>
    validateExpression(`${field}.matchExpressions[${index}]`, expression, anyValue),
  );
  for (const [index, expression] of (term.matchFields ?? []).entries()) {
    const at = `${field}.matchFields[${index}]`;
    const { key = '', operator = '', values = [] } = expression;
    if (operator !== 'In' && operator !== 'NotIn') {
      errors.push(invalid(`${at}.operator`, operator, 'not a valid selector operator'));
    } else if (values.length !== 1) {
      errors.push(
        required(`${at}.values`, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
      );
    }
    if (key !== 'metadata.name') errors.push(invalid(`${at}.key`, key, 'not a valid field selector key'));
    else {
      for (const [place, value] of values.entries()) {
        addErrors(errors, syntax(`${at}.values[${place}]`, value, dns1123Subdomain(value)));
      }
    }
  }
  return errors;
}

function validateExpression(field: string, expression: Expression, anyValue: boolean): FieldError[] {
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
      errors.push(invalid(`${field}.operator`, expression.operator, 'not a valid selector operator'));
  }
  addErrors(errors, syntax(`${field}.key`, expression.key ?? '', qualifiedName(expression.key ?? '')));
  if (anyValue) return errors;
  for (const [index, value] of values.entries()) {
    addErrors(errors, syntax(`${field}.values[${index}]`, value, labelValue(value)));
  }
  return errors;
}

function validatePodTerm(field: string, term: PodTerm): FieldError[] {
  const errors: FieldError[] = [];
  for (const part of ['labelSelector', 'namespaceSelector'] as const) {
    if (term[part] !== undefined) addErrors(errors, validateLabelSelector(`${field}.${part}`, term[part]));
  }
  for (const namespace of term.namespaces ?? []) {
    addErrors(errors, syntax(`${field}.namespace`, namespace, dns1123Label(namespace)));
  }
  addErrors(errors, validateLabelKeys(field, term));
  const key = term.topologyKey ?? '';
  if (key === '') errors.push(required(`${field}.topologyKey`, 'can not be empty'));
  return errors.concat(syntax(`${field}.topologyKey`, key, qualifiedName(key)));
}

interface LabelKeys {
  readonly matchLabelKeys?: readonly string[] | undefined;
  readonly mismatchLabelKeys?: readonly string[] | undefined;
  readonly labelSelector?: LabelSelector | undefined;
}

/** Keys whose values are taken from the pod itself. */
function validateLabelKeys(field: string, keys: LabelKeys): FieldError[] {
  const { matchLabelKeys = [], mismatchLabelKeys = [], labelSelector: selector } = keys;
  const errors: FieldError[] = [];
  for (const list of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    const names = keys[list] ?? [];
    const at = `${field}.${list}`;
    if (names.length > 0 && selector === undefined) {
      errors.push(forbidden(at, 'must not be specified when labelSelector is not set'));
    } else {
      for (const [index, key] of names.entries()) {
        addErrors(errors, syntax(`${at}[${index}]`, key, qualifiedName(key)));
      }
    }
  }
  const selected = new Set(Object.keys(selector?.matchLabels ?? {}));
  for (const { key = '' } of selector?.matchExpressions ?? []) {
    const index = matchLabelKeys.lastIndexOf(key);
    // The keys' own values have been made an expression already: one more is the client's.
    if (index >= 0 && selected.has(key)) {
      errors.push(invalid(`${field}[${index}]`, key, 'exists in both matchLabelKeys and labelSelector'));
    }
    selected.add(key);
  }
  for (const [index, key] of matchLabelKeys.entries()) {
    if (mismatchLabelKeys.includes(key)) {
      const why = 'exists in both matchLabelKeys and mismatchLabelKeys';
      errors.push(invalid(`${field}.matchLabelKeys[${index}]`, key, why));
    }
  }
  return errors;
}

export function validateTolerations(field: string, tolerations: readonly Toleration[]): FieldError[] {
  return tolerations.flatMap((toleration, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    const { key = '', operator = '', value = '', effect = '' } = toleration;
    if (key !== '') addErrors(errors, syntax(`${at}.key`, key, qualifiedName(key)));
    if (key === '' && operator !== 'Exists') {
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
    if (operator === '' || operator === 'Equal') {
      const wrong = labelValue(value);
      if (wrong.length > 0) errors.push(invalid(`${at}.operator`, value, wrong.join(';')));
    } else if (operator === 'Exists') {
      if (value !== '')
        errors.push(invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'"));
    } else errors.push(notSupported(`${at}.operator`, operator, ['Equal', 'Exists']));
    if (effect !== '') addErrors(errors, oneOfListed(`${at}.effect`, effect, EFFECTS));
    return errors;
  });
}

type Spread = NonNullable<PodSpec['topologySpreadConstraints']>[number];

export function validateSpread(field: string, constraints: readonly Spread[]): FieldError[] {
  return constraints.flatMap((constraint, index) => {
    const at = `${field}[${index}]`;
    const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '', minDomains } = constraint;
    const errors: FieldError[] = [];
    if (maxSkew <= 0) errors.push(invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero'));
    if (topologyKey === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    if (!SPREAD_ACTIONS.includes(whenUnsatisfiable)) {
      errors.push(notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, SPREAD_ACTIONS));
    }
    const again = constraints
      .slice(index + 1)
      .some((one) => (one.topologyKey ?? '') === topologyKey && (one.whenUnsatisfiable ?? '') === whenUnsatisfiable);
    if (again) {
      errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`));
    }
    if (minDomains !== undefined && minDomains <= 0) {
      errors.push(invalid(`${at}.minDomains`, minDomains, 'must be greater than zero'));
    }
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule') {
      const why = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
      errors.push(invalid(`${at}.minDomains`, minDomains, why));
    }
    for (const part of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[part];
      if (policy !== undefined && !NODE_POLICIES.includes(policy)) {
        errors.push(notSupported(`${at}.${part}`, policy, NODE_POLICIES));
      }
    }
    addErrors(errors, validateLabelKeys(at, { ...constraint, mismatchLabelKeys: undefined }));
    return errors.concat(validateLabelSelector(`${at}.labelSelector`, constraint.labelSelector));
  });
}

const SPREAD_ACTIONS = ['DoNotSchedule', 'ScheduleAnyway'];
const NODE_POLICIES = ['Honor', 'Ignore'];

export function validateGates(field: string, gates: NonNullable<PodSpec['schedulingGates']>): FieldError[] {
  const seen = new Set<string>();
  return gates.flatMap(({ name = '' }, index) => {
    const errors = syntax(`${field}[${index}]`, name, qualifiedName(name));
    if (seen.has(name)) errors.push(duplicate(`${field}[${index}]`, name));
    seen.add(name);
    return errors;
  });
}
