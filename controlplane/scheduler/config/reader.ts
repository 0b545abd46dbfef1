// Reads a configuration's fields one by one and remembers which: what has not been read by the end is a field that is not
// known, and is refused by its path. Errors are for the person who wrote the file.

import { UserError } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface Range {
  readonly min: number;
  readonly max: number;
}

export class Reader {
  readonly #path: string;
  readonly #fields: Fields;
  readonly #read = new Set<string>();

  constructor(path: string, value: unknown) {
    if (!isFields(value)) throw new UserError(`${path || 'the configuration'}: must be an object`);
    this.#path = path;
    this.#fields = value;
  }

  /** "profiles[0].schedulerName" */
  pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }

  fail(name: string, why: string): never {
    throw new UserError(`${this.pathOf(name)}: ${why}`);
  }

  /** undefined where the field is absent or null. */
  raw(name: string): unknown {
    this.#read.add(name);
    return getOwn(this.#fields, name) ?? undefined;
  }

  string(name: string): string | undefined {
    const value = this.raw(name);
    return value === undefined || typeof value === 'string' ? value : this.fail(name, 'must be a string');
  }

  integer(name: string, { min, max }: Range): number | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      return this.fail(name, `must be a whole number from ${min} to ${max}`);
    }
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.raw(name);
    return value === undefined || typeof value === 'boolean' ? value : this.fail(name, 'must be true or false');
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
    const value = this.string(name);
    if (value === undefined) return undefined;
    return values.find((each) => each === value) ?? this.fail(name, `must be one of ${values.join(', ')}`);
  }

  strings(name: string): readonly string[] {
    const value = this.raw(name) ?? [];
    if (!Array.isArray(value)) return this.fail(name, 'must be a list');
    return value.map((item: unknown) =>
      typeof item === 'string' ? item : this.fail(name, 'must be a list of strings'),
    );
  }

  object(name: string): Reader | undefined {
    const value = this.raw(name);
    return value === undefined ? undefined : new Reader(this.pathOf(name), value);
  }

  objects(name: string): readonly Reader[] {
    const value = this.raw(name) ?? [];
    if (!Array.isArray(value)) return this.fail(name, 'must be a list');
    return value.map((item: unknown, index) => new Reader(`${this.pathOf(name)}[${index}]`, item));
  }

  /** Fields of KubeSchedulerConfiguration that this scheduler does not have. */
  refuse(why: Readonly<Record<string, string>>): void {
    for (const [name, reason] of Object.entries(why)) if (this.raw(name) !== undefined) this.fail(name, reason);
  }

  /** Throws for the first field that has not been read. */
  end(): void {
    for (const name of Object.keys(this.#fields)) if (!this.#read.has(name)) this.fail(name, 'unknown field');
  }
}
