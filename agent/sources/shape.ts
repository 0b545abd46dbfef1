// The form of values in a manifest, as small tables: text, whole numbers, lists, objects. Checking returns the value
// as Go's decoder would have read it (null is absence, a quantity may be a number), or reports where it differs.
// Fields that a table does not name are ignored. Pure.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { parseQuantity } from '../../lib/quantity.ts';

export type Shape = (value: unknown, path: string, problems: string[]) => unknown;

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : JSON.stringify(value);
}

function expected(what: string, holds: (value: unknown) => boolean): Shape {
  return (value, path, problems) => {
    if (!holds(value)) problems.push(`${path}: must be ${what}, not ${describe(value)}`);
    return value;
  };
}

export const text = expected('text', (value) => typeof value === 'string');
export const int = expected('a whole number', (value) => Number.isSafeInteger(value));
export const bool = expected('true or false', (value) => typeof value === 'boolean');
export const intOrText = expected(
  'a whole number or text',
  (value) => Number.isSafeInteger(value) || typeof value === 'string',
);

export const quantity: Shape = (value, path, problems) => {
  const written = typeof value === 'number' ? String(value) : value;
  if (typeof written !== 'string' || parseQuantity(written) === undefined) {
    problems.push(`${path}: must be a quantity such as 500m or 64Mi, not ${describe(value)}`);
  }
  return written;
};

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function listOf(shape: Shape): Shape {
  return (value, path, problems) => {
    if (!Array.isArray(value)) {
      problems.push(`${path}: must be a list, not ${describe(value)}`);
      return value;
    }
    return value.map((item: unknown, index) => {
      const here = `${path}[${index}]`;
      if (item === null || item === undefined) problems.push(`${here}: must not be empty`);
      return shape(item ?? {}, here, problems);
    });
  };
}

export function mapOf(shape: Shape): Shape {
  return (value, path, problems) => {
    if (!isRecord(value)) {
      problems.push(`${path}: must be an object, not ${describe(value)}`);
      return value;
    }
    const entries = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
    return Object.fromEntries(entries.map(([key, item]) => [key, shape(item, `${path}[${key}]`, problems)]));
  };
}

/** An object; fields without a row keep their value. */
export function object(fields: Readonly<Record<string, Shape>>): Shape {
  return (value, path, problems) => {
    if (!isRecord(value)) {
      problems.push(`${path}: must be an object, not ${describe(value)}`);
      return value;
    }
    const read: Record<string, unknown> = {};
    for (const [name, item] of Object.entries(value)) {
      if (item === null || item === undefined) continue;
      const shape = getOwn(fields, name);
      setOwn(read, name, shape === undefined ? item : shape(item, path === '' ? name : `${path}.${name}`, problems));
    }
    return read;
  };
}
