// How the values of a type merge, as structured-merge-diff sees a schema: scalars, lists and maps that have one owner or
// an owner for each element. `typeOfDefinition` derives it from the generated schema, `typeOfSchema` from a custom
// resource's OpenAPI v3 schema. Knows no objects.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { type Definition, definition, type TypeText } from '../schema/definitions.ts';

export interface ScalarType {
  readonly kind: 'scalar';
  /** "untyped" for quantities, numbers or names, times. */
  readonly scalar: 'string' | 'numeric' | 'boolean' | 'untyped';
}

export interface ListType {
  readonly kind: 'list';
  /** "set": each value has its owners. "map": each element has, by the values of its keys. */
  readonly relation: 'atomic' | 'set' | 'map';
  readonly keys: readonly string[];
  /** Values that stand for keys that an element does not have. */
  readonly keyDefaults: Readonly<Record<string, unknown>>;
  readonly item: () => ValueType;
}

/** An object with known fields, or a map from names to values of one type. */
export interface MapType {
  readonly kind: 'map';
  readonly atomic: boolean;
  /** The type of a field that the schema names. */
  field(name: string): ValueType | undefined;
  /** The type of every other field; undefined where there may be none. */
  readonly element: (() => ValueType) | undefined;
  /** Fields that are there, empty, when an object does not have them: Go's structs that are no pointers. */
  readonly present: Readonly<Record<string, unknown>>;
}

/** Whatever the value is: below, objects merge by field where it is "deduced", and nothing merges where it is atomic. */
export interface AnyType {
  readonly kind: 'any';
  readonly atomic: boolean;
}

export type ValueType = ScalarType | ListType | MapType | AnyType;

const ANY_ATOMIC: AnyType = { kind: 'any', atomic: true };
/** Of objects without a schema. */
export const DEDUCED: AnyType = { kind: 'any', atomic: false };

const SCALARS: Readonly<Record<string, ScalarType>> = {
  string: { kind: 'scalar', scalar: 'string' },
  bytes: { kind: 'scalar', scalar: 'string' },
  bool: { kind: 'scalar', scalar: 'boolean' },
  int32: { kind: 'scalar', scalar: 'numeric' },
  int64: { kind: 'scalar', scalar: 'numeric' },
  double: { kind: 'scalar', scalar: 'numeric' },
};
const ZEROS: Readonly<Record<string, unknown>> = { string: '', bool: false, int32: 0, int64: 0, intstr: 0 };
const UNTYPED: ScalarType = { kind: 'scalar', scalar: 'untyped' };
const NOTHING: Readonly<Record<string, unknown>> = {};

const byDefinition = new Map<string, MapType>();

/** The type of "io.k8s.api.core.v1.Pod". Throws RangeError for a name that is not in the schema. */
export function typeOfDefinition(name: string, granular = false): MapType {
  const key = granular ? `${name}!` : name;
  let found = byDefinition.get(key);
  if (found === undefined) {
    found = mapOf(definition(name), granular);
    byDefinition.set(key, found);
  }
  return found;
}

function mapOf(from: Definition, granular: boolean): MapType {
  const fields = new Map<string, ValueType>();
  return {
    kind: 'map',
    atomic: from.atomic === true && !granular,
    element: undefined,
    present: presentFields(from),
    field(name) {
      const text = getOwn(from.fields, name);
      if (text === undefined) return undefined;
      let type = fields.get(name);
      if (type === undefined) {
        type = fieldType(from, name, text);
        fields.set(name, type);
      }
      return type;
    },
  };
}

/** What fields that Go always writes are when an object does not have them. */
function presentFields(from: Definition): Readonly<Record<string, unknown>> {
  const present: Record<string, unknown> = {};
  for (const name of from.present ?? []) {
    const text = getOwn(from.fields, name) ?? '';
    setOwn(present, name, text.startsWith('#') ? NOTHING : text === 'intstr' ? 0 : text === 'quantity' ? '0' : null);
  }
  for (const [name, text] of Object.entries(from.fields)) {
    if (text === '#io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta') setOwn(present, name, NOTHING);
    else if (from.required?.includes(name) && !text.startsWith('#')) setOwn(present, name, getOwn(ZEROS, text) ?? null);
  }
  return present;
}

function fieldType(from: Definition, name: string, text: TypeText): ValueType {
  if (text.startsWith('#')) return typeOfDefinition(text.slice(1), from.granular?.includes(name));
  if (text.startsWith('map:')) return mapOfValues(text, from.atomicMaps?.includes(name) === true);
  const keys = getOwn(from.lists, name);
  if (keys === undefined || !text.startsWith('[]')) return typeOfText(text);
  const item = text.slice(2);
  const relation = keys.length === 0 ? 'set' : 'map';
  const keyDefaults =
    relation === 'map' && item.startsWith('#') ? defaultsOf(definition(item.slice(1)), keys) : NOTHING;
  return { kind: 'list', relation, keys, keyDefaults, item: () => typeOfText(item) };
}

/** The value that stands for an absent key: the schema's default, or Go's zero where the field is no pointer. */
function defaultsOf(element: Definition, keys: readonly string[]): Readonly<Record<string, unknown>> {
  const defaults: Record<string, unknown> = {};
  for (const key of keys) {
    const declared = getOwn(element.keyDefaults, key);
    const text = getOwn(element.fields, key);
    if (declared !== undefined) setOwn(defaults, key, declared);
    else if (element.required?.includes(key)) setOwn(defaults, key, text === 'int32' || text === 'int64' ? 0 : '');
  }
  return defaults;
}

function mapOfValues(text: TypeText, atomic: boolean): MapType {
  const item = text.slice('map:'.length);
  return { kind: 'map', atomic, field: () => undefined, element: () => typeOfText(item), present: NOTHING };
}

function typeOfText(text: TypeText): ValueType {
  if (text.startsWith('#')) return typeOfDefinition(text.slice(1));
  if (text.startsWith('map:')) return mapOfValues(text, false);
  if (text.startsWith('[]')) {
    const item = text.slice(2);
    return { kind: 'list', relation: 'atomic', keys: [], keyDefaults: NOTHING, item: () => typeOfText(item) };
  }
  return text === 'raw' ? ANY_ATOMIC : (getOwn(SCALARS, text) ?? UNTYPED);
}
