// Numbers that may be percentages ("25%"), as in rollouts and disruption budgets.

import { invalid, nonNegative, syntax } from '../field-errors.ts';
import { percent } from '../names.ts';
import type { FieldError } from '../resource.ts';

export type IntOrPercent = number | string;

export function validateIntOrPercent(field: string, value: IntOrPercent | undefined): FieldError[] {
  if (typeof value === 'string') return syntax(field, value, percent(value));
  return nonNegative(field, value);
}

export function validateAtMostAll(field: string, value: IntOrPercent | undefined): FieldError[] {
  if (typeof value !== 'string' || percent(value).length > 0 || Number.parseInt(value, 10) <= 100) return [];
  return [invalid(field, value, 'must not be greater than 100%')];
}

/** The number, whatever it counts; 0 for what is neither a number nor a percentage. */
export function bareValue(value: IntOrPercent | undefined): number {
  if (typeof value === 'number') return value;
  const number = /^[+-]?\d+%?$/.test(value ?? '') ? Number.parseInt(value ?? '', 10) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
