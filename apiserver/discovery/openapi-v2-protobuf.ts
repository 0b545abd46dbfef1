// The definitions of an OpenAPI v2 document in the protobuf form that kubectl wants them in: the message Document of gnostic's
// openapiv2. Its head and definitions alone, since clients read the paths in v3. Pure.

import { isObject, type JsonObject } from '../patch/json-value.ts';

/** Field numbers of openapi.v2.Schema that the definitions here use. */
const SCHEMA = {
  $ref: 1,
  format: 2,
  description: 4,
  pattern: 13,
  required: 19,
  additionalProperties: 21,
  type: 22,
  items: 23,
  properties: 25,
  extension: 31,
} as const;
const DOCUMENT = { swagger: 1, info: 2, definitions: 9 } as const;

const LENGTH_DELIMITED = 2;

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

function field(number: number, value: string | Uint8Array): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([
    Uint8Array.from([...varint((number << 3) | LENGTH_DELIMITED), ...varint(bytes.length)]),
    bytes,
  ]);
}

/** NamedSchema and NamedAny have the name first, then the value. */
function named(name: string, value: Uint8Array): Buffer {
  return Buffer.concat([field(1, name), field(2, value)]);
}

/** Schemas by name, as the first field of Definitions and of Properties. */
function namedSchemas(schemas: JsonObject): Buffer {
  return Buffer.concat(Object.entries(schemas).map(([name, schema]) => field(1, named(name, encodeSchema(schema)))));
}

function encodeSchema(schema: unknown): Buffer {
  if (!isObject(schema)) return Buffer.alloc(0);
  const parts: Buffer[] = [];
  for (const key of ['$ref', 'format', 'description', 'pattern'] as const) {
    const value = schema[key];
    if (typeof value === 'string') parts.push(field(SCHEMA[key], value));
  }
  const { required, type, items, properties, additionalProperties } = schema;
  if (Array.isArray(required)) for (const name of required) parts.push(field(SCHEMA.required, String(name)));
  // Schema is the first of AdditionalPropertiesItem's alternatives.
  if (isObject(additionalProperties)) {
    parts.push(field(SCHEMA.additionalProperties, field(1, encodeSchema(additionalProperties))));
  }
  if (typeof type === 'string') parts.push(field(SCHEMA.type, field(1, type)));
  if (items !== undefined) parts.push(field(SCHEMA.items, field(1, encodeSchema(items))));
  if (isObject(properties)) parts.push(field(SCHEMA.properties, namedSchemas(properties)));
  for (const [key, value] of Object.entries(schema)) {
    // Any's second field is YAML, of which JSON is a part.
    if (key.startsWith('x-')) parts.push(field(SCHEMA.extension, named(key, field(2, JSON.stringify(value)))));
  }
  return Buffer.concat(parts);
}

/** `document`: an OpenAPI v2 document as JSON has it. */
export function openapiV2Protobuf(document: unknown): Uint8Array {
  if (!isObject(document) || !isObject(document['info']) || !isObject(document['definitions'])) {
    throw new TypeError('an OpenAPI v2 document has info and definitions');
  }
  const { title, version } = document['info'];
  return Buffer.concat([
    field(DOCUMENT.swagger, String(document['swagger'])),
    field(DOCUMENT.info, Buffer.concat([field(1, String(title)), field(2, String(version))])),
    field(DOCUMENT.definitions, namedSchemas(document['definitions'])),
  ]);
}
