// Rules that the kinds of resource.k8s.io share: lists and sets, names, selectors in CEL, opaque configuration.

import { CelCompileError, celEnvironment, compile } from '../../cel/cel.ts';
import { isObject } from '../../patch/json-value.ts';
import { addErrors, duplicate, forbidden, invalid, required, syntax, tooLong, tooMany } from '../field-errors.ts';
import { cIdentifier, dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { validateDriverName } from '../storage/shared.ts';
import type { Configuration, Selector } from './types.ts';

export const MAX_ITEMS = 32;
const MAX_POOL_NAME = 253;
const MAX_IDENTIFIER = 32;
const MAX_EXPRESSION = 10 * 1024;
/** All expressions of an object together, in characters: they are compiled in the event loop. */
const MAX_EXPRESSIONS = 64 * 1024;
const MAX_PARAMETERS = 10 * 1024;
const OMITTED = '<value omitted>';

export function validateList<T>(
  field: string,
  items: readonly T[] = [],
  max: number,
  validate: (field: string, item: T) => readonly FieldError[],
): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, item] of items.entries()) addErrors(errors, validate(`${field}[${index}]`, item));
  if (items.length > max) errors.push(tooMany(field, items.length, max));
  return errors;
}

/** `key`: what identifies an item, and the field it stands in ('' for the item itself). */
export function validateSet<T>(
  field: string,
  items: readonly T[] = [],
  max: number,
  validate: (field: string, item: T) => readonly FieldError[],
  key: { of(item: T): string; readonly field: string },
): FieldError[] {
  const errors = validateList(field, items, max, validate);
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const value = key.of(item);
    const at = key.field === '' ? `${field}[${index}]` : `${field}[${index}].${key.field}`;
    if (seen.has(value)) errors.push(duplicate(at, value));
    seen.add(value);
  }
  return errors;
}

export const BY_NAME = { of: ({ name = '' }: { name?: string | undefined }): string => name, field: 'name' };
export const BY_ITSELF = { of: (item: string): string => item, field: '' };

export function validateDriver(field: string, driver = ''): FieldError[] {
  return validateDriverName(field, driver);
}

export function validatePoolName(field: string, name = ''): FieldError[] {
  if (name === '') return [required(field)];
  const errors = name.length > MAX_POOL_NAME ? [tooLong(field, MAX_POOL_NAME)] : [];
  for (const part of name.split('/')) addErrors(errors, syntax(field, part, dns1123Subdomain(part)));
  return errors;
}

function validateIdentifier(field: string, name: string): FieldError[] {
  const errors = name.length > MAX_IDENTIFIER ? [tooLong(field, MAX_IDENTIFIER)] : [];
  return errors.concat(syntax(field, name, cIdentifier(name)));
}

/** "memory" or "dra.example.com/memory": the name of an attribute or a capacity. */
export function validateQualifiedName(field: string, name: string): FieldError[] {
  if (name === '') return [required(field, 'name required')];
  const parts = name.split('/');
  const [first = '', second = ''] = parts;
  if (parts.length === 1) return validateIdentifier(field, first);
  if (parts.length > 2) return [];
  return [
    ...(first === '' ? [required(field, 'the domain must not be empty')] : validateDriver(field, first)),
    ...(second === '' ? [required(field, 'the name must not be empty')] : validateIdentifier(field, second)),
  ];
}

export function validateFullName(field: string, name: string): FieldError[] {
  const errors = validateQualifiedName(field, name);
  if (name !== '' && !name.includes('/')) errors.push(invalid(field, name, 'must include a domain'));
  return errors;
}

let environment: ReturnType<typeof celEnvironment> | undefined;

/** The variable of an expression is a device. */
function deviceEnvironment(): ReturnType<typeof celEnvironment> {
  environment ??= celEnvironment(
    { device: 'resource.k8s.io.Device' },
    (types) => {
      types.registerType({
        name: 'resource.k8s.io.Device',
        schema: {
          driver: 'string',
          attributes: 'map<string, map<string, dyn>>',
          capacity: 'map<string, map<string, kubernetes.Quantity>>',
        },
      });
    },
    { bindings: true },
  );
  return environment;
}

/** How much of an object's expressions has been compiled. */
export class Expressions {
  #characters = 0;

  validate(field: string, selectors: readonly Loose<Selector>[] | undefined): FieldError[] {
    return validateList(field, selectors, MAX_ITEMS, (at, { cel }) =>
      cel === undefined ? [required(`${at}.cel`)] : this.#validateOne(`${at}.cel.expression`, cel.expression ?? ''),
    );
  }

  #validateOne(field: string, expression: string): FieldError[] {
    if (expression.length > MAX_EXPRESSION) return [tooLong(field, MAX_EXPRESSION)];
    this.#characters += expression.length;
    if (this.#characters > MAX_EXPRESSIONS) return [forbidden(field, 'too complex, exceeds cost limit')];
    try {
      const { type } = compile(expression, deviceEnvironment());
      return type === 'bool' || type === 'dyn' ? [] : [invalid(field, expression, 'must evaluate to bool')];
    } catch (error) {
      if (!(error instanceof CelCompileError)) throw error;
      return [invalid(field, expression, `compilation failed: ${error.message}`)];
    }
  }
}

/** `stored` parameters may be longer than new ones. */
export function validateParameters(field: string, value: unknown, stored: boolean): FieldError[] {
  if (value === undefined || value === null) return [required(field)];
  if (!stored && Buffer.byteLength(JSON.stringify(value)) > MAX_PARAMETERS) return [tooLong(field, MAX_PARAMETERS)];
  return isObject(value) ? [] : [invalid(field, OMITTED, 'must be a valid JSON object')];
}

export function validateConfiguration(at: string, { opaque }: Loose<Configuration>, stored: boolean): FieldError[] {
  if (opaque === undefined) return [required(`${at}.opaque`)];
  return [
    ...validateDriver(`${at}.opaque.driver`, opaque.driver),
    ...validateParameters(`${at}.opaque.parameters`, opaque.parameters, stored),
  ];
}
