// CRI messages as protobuf's JSON mapping with default values prints them, and configurations as crictl reads them. Knows
// fields and types from the .proto file's descriptors. Pure but for loading those.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import { loadProto } from '../../proto/load.ts';

interface Field {
  readonly name: string;
  readonly jsonName: string;
  /** TYPE_STRING and so on; of the values where the field is a map. */
  readonly type: string;
  /** Of a message or an enum. */
  readonly typeName: string;
  readonly repeated: boolean;
  readonly map: boolean;
}

interface RawField {
  readonly name: string;
  readonly label: string;
  readonly type: string;
  readonly typeName: string;
}
interface RawMessage {
  readonly field: readonly RawField[];
  readonly nestedType: readonly (RawMessage & { readonly name: string })[];
}

const fieldsOf = new Map<string, readonly Field[]>();

/** "runtime_handler" is "runtimeHandler". */
export function jsonName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_whole, letter: string) => letter.toUpperCase());
}

function descriptor(name: string): unknown {
  const found = getOwn(Object.fromEntries(Object.entries(loadProto('cri').runtime.v1)), name);
  if (typeof found !== 'object' || found === null || !('type' in found)) throw new TypeError(`CRI has no ${name}`);
  return found.type;
}

/** The fields of a CRI message, in the order of the .proto file. */
export function messageFields(name: string): readonly Field[] {
  const known = fieldsOf.get(name);
  if (known !== undefined) return known;
  // proto-loader puts protobuf's own descriptors beside its constructors.
  const message = descriptor(name) as RawMessage;
  const fields = message.field.map((field): Field => {
    const shared = { name: field.name, jsonName: jsonName(field.name) };
    const repeated = field.label === 'LABEL_REPEATED';
    const entry = message.nestedType.find((nested) => nested.name === field.typeName);
    const value = entry?.field.find((each) => each.name === 'value');
    if (value !== undefined) {
      return { ...shared, type: value.type, typeName: value.typeName, repeated: false, map: true };
    }
    return { ...shared, type: field.type, typeName: field.typeName, repeated, map: false };
  });
  fieldsOf.set(name, fields);
  return fields;
}

function enumValues(name: string): readonly { readonly name: string; readonly number: number }[] {
  return (descriptor(name) as { value: { name: string; number: number }[] }).value;
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const defaultOf = ({ type, typeName }: Field): Json | undefined => {
  if (type === 'TYPE_MESSAGE') return undefined;
  if (type === 'TYPE_ENUM') return enumValues(typeName)[0]?.name ?? 0;
  if (type === 'TYPE_BOOL') return false;
  if (type === 'TYPE_STRING' || type === 'TYPE_BYTES') return '';
  return type.endsWith('64') ? '0' : 0;
};

function scalarToJson(field: Field, value: unknown): Json | undefined {
  if (value === undefined || value === null) return defaultOf(field);
  if (field.type === 'TYPE_MESSAGE') return messageToJson(field.typeName, value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (field.type.endsWith('64')) return String(value);
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  throw new TypeError(`${field.name} is no ${field.type}`);
}

function fieldToJson(field: Field, value: unknown): Json | undefined {
  if (field.map) {
    const entries = isObject(value) ? Object.entries(value) : [];
    // Go's maps have no order; its JSON is sorted.
    return Object.fromEntries(
      entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, scalarToJson(field, item) ?? null]),
    );
  }
  if (field.repeated) {
    return (Array.isArray(value) ? value : []).map((item: unknown) => scalarToJson(field, item) ?? null);
  }
  return scalarToJson(field, value);
}

/**
 * A message as protojson prints it with EmitDefaultValues: lowerCamelCase, 64-bit numbers as strings, enums by name,
 * bytes in base64, scalars and lists even when they are empty, messages only when they are set.
 */
export function messageToJson(name: string, message: unknown): { readonly [key: string]: Json } {
  const source = isObject(message) ? message : {};
  const entries = messageFields(name).flatMap((field) => {
    const value = fieldToJson(field, getOwn(source, field.name));
    return value === undefined ? [] : [[field.jsonName, value] as const];
  });
  return Object.fromEntries(entries);
}

/** The same with null for messages that are not set: how crictl prints the status of a pod or a container. */
export function messageToFullJson(name: string, message: unknown): { readonly [key: string]: Json } {
  const empty = messageFields(name).map((field) => [field.jsonName, null] as const);
  return { ...Object.fromEntries(empty), ...messageToJson(name, message) };
}

/** What was read, and the paths of the keys that CRI does not have. */
export interface FromConfig {
  readonly message: { readonly [key: string]: unknown };
  readonly unknown: readonly string[];
}

/** A configuration's value of the wrong type. `path`: "linux.security_context.privileged". */
export class ConfigTypeError extends TypeError {
  override name = 'ConfigTypeError';
  constructor(path: string, value: unknown, type: string) {
    super(
      `${path}: ${typeof value === 'bigint' ? value : JSON.stringify(value)} is no ${type.startsWith('TYPE_') ? type.slice('TYPE_'.length).toLowerCase() : type}`,
    );
  }
}

const SIGNED = new Set(['TYPE_INT32', 'TYPE_INT64']);

function scalarFromConfig(field: Field, given: unknown, path: string, unknown: string[]): unknown {
  const { type } = field;
  // YAML's numbers come as bigint, so that 64 bits keep their digits.
  const value = typeof given === 'bigint' && Number.isSafeInteger(Number(given)) ? Number(given) : given;
  const wrong = (): ConfigTypeError => new ConfigTypeError(path, value, type);
  if (type === 'TYPE_MESSAGE') return objectFromConfig(field.typeName, value, path, unknown);
  if (type === 'TYPE_ENUM') {
    const known = enumValues(field.typeName).find(({ name, number }) => name === value || number === value);
    if (known === undefined) throw new ConfigTypeError(path, value, field.typeName);
    return known.name;
  }
  if (type === 'TYPE_STRING') {
    // YAML's 1 and true are strings where CRI wants strings.
    if (['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return String(value);
    throw wrong();
  }
  if (type === 'TYPE_BOOL') {
    if (typeof value !== 'boolean') throw wrong();
    return value;
  }
  if (type === 'TYPE_BYTES') {
    if (typeof value !== 'string') throw wrong();
    return Buffer.from(value, 'base64');
  }
  const whole = typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
  if (!whole || (Number(value) < 0 && !SIGNED.has(type))) throw wrong();
  return type.endsWith('64') ? String(value) : Number(value);
}

function objectFromConfig(name: string, value: unknown, path: string, unknown: string[]): FromConfig['message'] {
  if (!isObject(value)) throw new ConfigTypeError(path === '' ? name : path, value, `${name} object`);
  const fields = new Map(messageFields(name).map((field) => [field.name, field]));
  const message: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const at = path === '' ? key : `${path}.${key}`;
    // Go's JSON reader does not mind capitals.
    const field = fields.get(key) ?? fields.get(key.toLowerCase());
    if (field === undefined) unknown.push(at);
    else if (item !== null && item !== undefined)
      setOwn(message, field.name, fieldFromConfig(field, item, at, unknown));
  }
  return message;
}

function fieldFromConfig(field: Field, value: unknown, path: string, unknown: string[]): unknown {
  if (field.map) {
    if (!isObject(value)) throw new ConfigTypeError(path, value, 'map');
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, scalarFromConfig(field, item, `${path}.${key}`, unknown)]),
    );
  }
  if (field.repeated) {
    if (!Array.isArray(value)) throw new ConfigTypeError(path, value, 'list');
    return value.map((item: unknown, index) => scalarFromConfig(field, item, `${path}[${index}]`, unknown));
  }
  return scalarFromConfig(field, value, path, unknown);
}

/**
 * A CRI message from YAML or JSON with the .proto file's own names (log_path), enums by number or name. Throws
 * ConfigTypeError for a value of the wrong type.
 */
export function messageFromConfig(name: string, value: unknown): FromConfig {
  const unknown: string[] = [];
  return { message: objectFromConfig(name, value ?? {}, '', unknown), unknown };
}
