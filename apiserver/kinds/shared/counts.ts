// Rules for the numbers in the status of workloads.

import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { addErrors, IMMUTABLE, invalid, nonNegative } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';

type Counts = { readonly [field: string]: unknown };

function numberAt(counts: Counts, field: string): number | undefined {
  const value = getOwn(counts, field);
  return typeof value === 'number' ? value : undefined;
}

export function validateCounts(at: string, counts: Counts, fields: readonly string[]): FieldError[] {
  return fields.flatMap((field) => nonNegative(`${at}.${field}`, numberAt(counts, field)));
}

/** Pairs of a field and its upper bound, with the message of each. */
export function validateBounds(
  at: string,
  counts: Counts,
  bounds: readonly (readonly [field: string, limit: string, message: string])[],
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [field, limit, message] of bounds) {
    const value = numberAt(counts, field) ?? 0;
    if (value > (numberAt(counts, limit) ?? 0)) errors.push(invalid(`${at}.${field}`, value, message));
  }
  return errors;
}

export function validateNotDecremented(
  field: string,
  count: number | undefined,
  before: number | undefined,
  message = 'cannot be decremented',
): FieldError[] {
  return before !== undefined && (count ?? -1) < before ? [invalid(field, count ?? 0, message)] : [];
}

/** The message shows null for what is absent. */
export function validateImmutable(field: string, value: unknown, before: unknown): FieldError[] {
  return sameJson(value ?? null, before ?? null) ? [] : [invalid(field, value ?? null, IMMUTABLE)];
}

/** Each list of rules in turn. */
export function allOf(...lists: readonly (readonly FieldError[])[]): FieldError[] {
  const errors: FieldError[] = [];
  addErrors(errors, ...lists);
  return errors;
}
