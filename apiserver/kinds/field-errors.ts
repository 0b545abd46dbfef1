// Field errors in the API machinery's words, one constructor per type. `detail` is what a user reads after the field.

import type { FieldError } from './resource.ts';

/** Strings in quotes, everything else as JSON; an absent string is "", an absent pointer or map is given as null. */
function show(value: unknown): string {
  if (value === undefined) return '""';
  return JSON.stringify(value);
}

export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, detail: detail === '' ? 'Required value' : `Required value: ${detail}` };
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  return {
    type: 'FieldValueInvalid',
    field,
    detail: `Invalid value: ${show(value)}${detail === '' ? '' : `: ${detail}`}`,
  };
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const list = supported.map((item) => JSON.stringify(item)).join(', ');
  return {
    type: 'FieldValueNotSupported',
    field,
    detail: `Unsupported value: ${show(value)}${list === '' ? '' : `: supported values: ${list}`}`,
  };
}

export function forbidden(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, detail: `Forbidden: ${detail}` };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { type: 'FieldValueDuplicate', field, detail: `Duplicate value: ${show(value)}` };
}

export function notFound(field: string, value: unknown): FieldError {
  return { type: 'FieldValueNotFound', field, detail: `Not found: ${show(value)}` };
}

/** With why, as few have it. */
export function notFoundBecause(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueNotFound', field, detail: `Not found: ${show(value)}: ${detail}` };
}

/** `max` in bytes. */
export function tooLong(field: string, max: number): FieldError {
  return { type: 'FieldValueTooLong', field, detail: `Too long: may not be more than ${max} bytes` };
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  return { type: 'FieldValueTooMany', field, detail: `Too many: ${actual}: must have at most ${max} items` };
}

/** How the API machinery prints the path of the object itself. */
export const WHOLE = '[]';
export const IMMUTABLE = 'field is immutable';

/** "Required value" when empty, "Unsupported value" when it is none of `supported`; the list is shown sorted. */
export function oneOf(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  if (value === undefined || value === '') return [required(field)];
  return supported.includes(value) ? [] : [notSupported(field, value, [...supported].sort())];
}

/** As oneOf, with the list as it is given: upstream sorts some. */
export function oneOfListed(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  if (value === undefined || value === '') return [required(field)];
  return supported.includes(value) ? [] : [notSupported(field, value, supported)];
}

/** As oneOf, but absent is fine. */
export function optionalOneOf(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined ? [] : oneOf(field, value, supported);
}

export function nonNegative(field: string, value: number | undefined): FieldError[] {
  return value !== undefined && value < 0 ? [invalid(field, value, 'must be greater than or equal to 0')] : [];
}

/** One FieldValueInvalid per message of a syntax rule. */
export function syntax(field: string, value: unknown, messages: readonly string[]): FieldError[] {
  return messages.map((message) => invalid(field, value, message));
}

/** Adds each of them: a list may have more elements than a call may have arguments. */
export function addErrors<T>(errors: T[], ...more: readonly (readonly T[])[]): void {
  for (const list of more) for (const error of list) errors.push(error);
}
