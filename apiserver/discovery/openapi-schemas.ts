// Definitions as OpenAPI schemas, in the forms of v2 and v3 documents. Follows references, so that a
// document contains only what its kinds refer to.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import { type Definition, definition, type TypeText } from '../schema/definitions.ts';
import { describe } from './descriptions.ts';

export type Schema = Record<string, unknown>;
export type OpenApiVersion = 'v2' | 'v3';

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString';
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const NAMED: Readonly<Record<string, string>> = {
  quantity: QUANTITY,
  intstr: INT_OR_STRING,
  time: `${META}.Time`,
  microtime: `${META}.MicroTime`,
  raw: `${META}.FieldsV1`,
};
const PRIMITIVE: Readonly<Record<string, Schema>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  double: { type: 'number', format: 'double' },
  bytes: { type: 'string', format: 'byte' },
};

/** Collects the schemas of one document. */
export class SchemaCollector {
  readonly schemas: Record<string, Schema> = {};
  private readonly version: OpenApiVersion;
  private readonly prefix: string;

  constructor(version: OpenApiVersion) {
    this.version = version;
    this.prefix = version === 'v2' ? '#/definitions/' : '#/components/schemas/';
  }

  /** A reference to the named definition, which is added with all that it reaches. */
  reference(name: string): Schema {
    this.add(name);
    return { $ref: `${this.prefix}${name}` };
  }

  /** A kind with its list type, both marked with their group, version and kind. */
  addKind(row: ResourceKind): { object: Schema; list: Schema } {
    const { group, version, kind } = row;
    if (row.custom !== undefined) {
      setOwn(
        this.schemas,
        row.schema,
        row.custom.openapi(this.version, (name) => this.reference(name)),
      );
    }
    const object = this.reference(row.schema);
    const own = getOwn(this.schemas, row.schema);
    if (own !== undefined) own['x-kubernetes-group-version-kind'] = [{ group, version, kind }];
    const listName = `${row.schema}List`;
    setOwn(this.schemas, listName, {
      description: `${kind}List is a list of ${kind} objects.`,
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { type: 'string' },
        items: { type: 'array', items: this.use(`#${row.schema}`) },
        kind: { type: 'string' },
        metadata: this.use(`#${META}.ListMeta`),
      },
      'x-kubernetes-group-version-kind': [{ group, version, kind: row.listKind ?? `${kind}List` }],
    });
    return { object, list: { $ref: `${this.prefix}${listName}` } };
  }

  /** The schema of a review, which has no list. */
  addReview(name: string, gvk: { readonly group: string; readonly version: string; readonly kind: string }): Schema {
    const object = this.reference(name);
    const own = getOwn(this.schemas, name);
    if (own !== undefined) own['x-kubernetes-group-version-kind'] = [gvk];
    return object;
  }

  private add(name: string): void {
    if (getOwn(this.schemas, name) !== undefined) return;
    const builtIn = this.builtIn(name);
    if (builtIn !== undefined) {
      setOwn(this.schemas, name, builtIn);
      return;
    }
    // Entered before its fields: types refer to each other in circles.
    const schema: Schema = {};
    setOwn(this.schemas, name, schema);
    this.fill(schema, name, definition(name));
  }

  private builtIn(name: string): Schema | undefined {
    const v3 = this.version === 'v3';
    switch (name) {
      case QUANTITY:
        return v3
          ? { description: 'A quantity: "500m", "64Mi".', oneOf: [{ type: 'string' }, { type: 'number' }] }
          : { description: 'A quantity: "500m", "64Mi".', type: 'string' };
      case INT_OR_STRING:
        return v3
          ? {
              description: 'A number or a name.',
              format: 'int-or-string',
              oneOf: [{ type: 'integer' }, { type: 'string' }],
            }
          : { description: 'A number or a name.', format: 'int-or-string', type: 'string' };
      case `${META}.Time`:
      case `${META}.MicroTime`:
        return { description: 'A time in RFC 3339.', type: 'string', format: 'date-time' };
      case `${META}.FieldsV1`:
        return { description: 'Any JSON object.', type: 'object' };
      default:
        return undefined;
    }
  }

  private fill(schema: Schema, name: string, from: Definition): void {
    const described = describe(name, from);
    const properties: Record<string, Schema> = {};
    for (const [field, type] of Object.entries(from.fields)) {
      const allowed = getOwn(from.enums, field);
      setOwn(properties, field, {
        ...(described.fields.get(field) === undefined ? {} : { description: described.fields.get(field) }),
        ...this.use(type),
        ...(allowed === undefined ? {} : { enum: allowed }),
        ...listFacts(type, from, field),
      });
    }
    if (described.type !== '') schema['description'] = described.type;
    schema['type'] = 'object';
    if (from.required !== undefined) schema['required'] = from.required;
    if (Object.keys(properties).length > 0) schema['properties'] = properties;
    if (from.atomic === true) schema['x-kubernetes-map-type'] = 'atomic';
  }

  /** The schema at a place of use; references are wrapped in v3, where a `$ref` may stand beside nothing. */
  private use(type: TypeText): Schema {
    if (type.startsWith('[]')) return { type: 'array', items: this.use(type.slice(2)) };
    if (type.startsWith('map:')) return { type: 'object', additionalProperties: this.use(type.slice(4)) };
    const primitive = getOwn(PRIMITIVE, type);
    if (primitive !== undefined) return { ...primitive };
    const name = type.startsWith('#') ? type.slice(1) : getOwn(NAMED, type);
    if (name === undefined) throw new RangeError(`the schema has no type ${type}`);
    const reference = this.reference(name);
    if (this.version === 'v2') return reference;
    return type.startsWith('#') ? { allOf: [reference], default: {} } : { allOf: [reference] };
  }
}

function listFacts(type: TypeText, from: Definition, field: string): Schema {
  if (type.startsWith('map:')) return from.atomicMaps?.includes(field) ? { 'x-kubernetes-map-type': 'atomic' } : {};
  if (type.startsWith('#')) return from.granular?.includes(field) ? { 'x-kubernetes-map-type': 'granular' } : {};
  if (!type.startsWith('[]')) return {};
  const keys = getOwn(from.lists, field);
  const merge = getOwn(from.merge, field);
  return {
    ...(keys === undefined
      ? { 'x-kubernetes-list-type': 'atomic' }
      : keys.length === 0
        ? { 'x-kubernetes-list-type': 'set' }
        : { 'x-kubernetes-list-map-keys': keys, 'x-kubernetes-list-type': 'map' }),
    ...(merge?.key === undefined ? {} : { 'x-kubernetes-patch-merge-key': merge.key }),
    ...(merge === undefined ? {} : { 'x-kubernetes-patch-strategy': merge.strategy.join(',') }),
  };
}
