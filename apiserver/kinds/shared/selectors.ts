// meta/v1 label selectors: their rules, whether they match, and how kubectl and the scale subresource print them.

import { getOwn } from '../../../lib/own-property.ts';
import { addErrors, forbidden, invalid, required, syntax } from '../field-errors.ts';
import { validateLabels } from '../metadata.ts';
import { labelValue, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';

export interface LabelSelector {
  matchLabels?: { [key: string]: string | undefined } | undefined;
  matchExpressions?: SelectorExpression[] | undefined;
}

export interface SelectorExpression {
  key?: string | undefined;
  operator?: string | undefined;
  values?: string[] | undefined;
}

type Labels = { readonly [key: string]: string | undefined } | undefined;

export interface SelectorOptions {
  /** For selectors stored before their values were validated. */
  readonly anyValue?: boolean;
}

export function validateLabelSelector(
  field: string,
  selector: LabelSelector | undefined,
  options: SelectorOptions = {},
): FieldError[] {
  const errors = validateLabels(`${field}.matchLabels`, selector?.matchLabels);
  for (const [index, expression] of (selector?.matchExpressions ?? []).entries()) {
    addErrors(errors, validateExpression(`${field}.matchExpressions[${index}]`, expression, options));
  }
  return errors;
}

function validateExpression(field: string, expression: SelectorExpression, options: SelectorOptions): FieldError[] {
  const { key = '', operator = '', values = [] } = expression;
  const errors: FieldError[] = [];
  switch (operator) {
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
    default:
      errors.push(invalid(`${field}.operator`, operator, 'not a valid selector operator'));
  }
  addErrors(errors, syntax(`${field}.key`, key, qualifiedName(key)));
  if (options.anyValue === true) return errors;
  for (const [index, value] of values.entries()) {
    addErrors(errors, syntax(`${field}.values[${index}]`, value, labelValue(value)));
  }
  return errors;
}

/** True when it cannot be made into a query, as for an unknown operator. */
export function isUnusable(selector: LabelSelector | undefined): boolean {
  return validateLabelSelector('', selector).length > 0;
}

export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;
}

/** An empty selector matches everything, none matches nothing. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (getOwn(labels, key) !== value) return false;
  }
  return (selector.matchExpressions ?? []).every(({ key = '', operator, values = [] }) => {
    const value = getOwn(labels, key);
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      default:
        return operator === 'DoesNotExist' && value === undefined;
    }
  });
}

/** "app=web,tier in (a,b),!old", sorted by key; "" for one that selects everything. */
export function selectorText(selector: LabelSelector | undefined): string {
  const parts = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  for (const { key = '', operator, values = [] } of selector?.matchExpressions ?? []) {
    const list = [...values].sort().join(',');
    if (operator === 'In') parts.push({ key, text: `${key} in (${list})` });
    else if (operator === 'NotIn') parts.push({ key, text: `${key} notin (${list})` });
    else parts.push({ key, text: operator === 'Exists' ? key : `!${key}` });
  }
  return parts
    .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ text }) => text)
    .join(',');
}

/** The same for a table. */
export function selectorCell(selector: LabelSelector | undefined): string {
  if (selector === undefined) return '<none>';
  if (isUnusable(selector)) return '<error>';
  const text = selectorText(selector);
  return text === '' ? '<none>' : text;
}

/** "a=b,c=d", sorted, "<none>" for none. */
export function labelsCell(labels: Labels): string {
  const text = Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');
  return text === '' ? '<none>' : text;
}
