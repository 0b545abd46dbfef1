// Definitions as OpenAPI schemas, in the forms of v2 and v3 documents. Follows references, so that a
// document contains only what its kinds refer to.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { TypeText } from '../schema/definitions.ts';
import { describe } from './descriptions.ts';
import { verbsOf } from './groups.ts';
import { BUILT_IN, defaultOf, elementDefault, NAMED, type Published, published } from './published.ts';

export type Schema = Record<string, unknown>;
export type OpenApiVersion = 'v2' | 'v3';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
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
    if (!verbsOf(row).includes('list')) return { object, list: object };
    const listName = `${row.schema}List`;
    const listKind = row.listKind ?? `${kind}List`;
    setOwn(this.schemas, listName, this.listOf(row, listName, listKind));
    return { object, list: { $ref: `${this.prefix}${listName}` } };
  }

  /** The schema of a review, which has no list. */
  addReview(name: string, gvk: { readonly group: string; readonly version: string; readonly kind: string }): Schema {
    const object = this.reference(name);
    const own = getOwn(this.schemas, name);
    if (own !== undefined) own['x-kubernetes-group-version-kind'] = [gvk];
    return object;
  }

  private listOf(row: ResourceKind, name: string, kind: string): Schema {
    const text = describe(name, ['apiVersion', 'items', 'kind', 'metadata']);
    const described = (field: string): Schema => {
      const description = text.fields.get(field) ?? '';
      return description === '' ? {} : { description };
    };
    return {
      description: text.type || `${kind} is a list of ${row.kind}`,
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { ...described('apiVersion'), type: 'string' },
        items: {
          ...described('items'),
          type: 'array',
          items: this.use(`#${row.schema}`, this.defaulted(row.custom === undefined ? {} : undefined)),
        },
        kind: { ...described('kind'), type: 'string' },
        metadata: this.use(`#${META}.ListMeta`, { ...described('metadata'), ...this.defaulted({}) }),
      },
      'x-kubernetes-group-version-kind': [{ group: row.group, version: row.version, kind }],
    };
  }

  private add(name: string): void {
    if (getOwn(this.schemas, name) !== undefined) return;
    const builtIn = getOwn(BUILT_IN, name);
    if (builtIn !== undefined) {
      setOwn(this.schemas, name, { description: describe(name, []).type, ...this.withoutChoice(builtIn) });
      return;
    }
    // Entered before its fields: types refer to each other in circles.
    const schema: Schema = {};
    setOwn(this.schemas, name, schema);
    this.fill(schema, name, published(name));
  }

  /** v2 has no oneOf: what is a string or a number is a string there. */
  private withoutChoice(schema: Schema): Schema {
    if (this.version === 'v3' || schema['oneOf'] === undefined) return schema;
    const { oneOf: _, ...rest } = schema;
    return { type: 'string', ...rest };
  }

  private fill(schema: Schema, name: string, from: Published): void {
    const described = describe(name, Object.keys(from.fields));
    const properties: Record<string, Schema> = {};
    for (const [field, type] of Object.entries(from.fields)) {
      const text = described.fields.get(field) ?? '';
      const beside = {
        ...(text === '' ? {} : { description: text }),
        ...this.defaulted(defaultOf(from, field, type)),
        ...mergeFacts(type, from, field),
      };
      setOwn(properties, field, this.use(type, beside, getOwn(from.enums, field)));
    }
    if (described.type !== '') schema['description'] = described.type;
    schema['type'] = 'object';
    if (from.required !== undefined && from.required.length > 0) schema['required'] = from.required;
    if (Object.keys(properties).length > 0) schema['properties'] = properties;
    if (from.atomic === true) schema['x-kubernetes-map-type'] = 'atomic';
    if (from.unions !== undefined) schema['x-kubernetes-unions'] = from.unions;
    if (from.groupVersions !== undefined) schema['x-kubernetes-group-version-kind'] = kindsOf(name, from.groupVersions);
  }

  /** v2 has no defaults. */
  private defaulted(value: unknown): Schema {
    return this.version === 'v2' || value === undefined ? {} : { default: value };
  }

  /**
   * The schema at a place of use, with what stands beside its type there. References are wrapped in v3, where a `$ref` may stand
   * beside nothing. An enum is that of the innermost type.
   */
  private use(type: TypeText, beside: Schema = {}, allowed: readonly string[] = []): Schema {
    for (const [start, form, below] of CONTAINERS) {
      if (!type.startsWith(start)) continue;
      const element = type.slice(start.length);
      return { ...beside, type: form, [below]: this.use(element, this.defaulted(elementDefault(element)), allowed) };
    }
    const primitive = getOwn(PRIMITIVE, type);
    if (primitive !== undefined) return { ...beside, ...primitive, ...(allowed.length === 0 ? {} : { enum: allowed }) };
    const name = type.startsWith('#') ? type.slice(1) : getOwn(NAMED, type);
    if (name === undefined) throw new RangeError(`the schema has no type ${type}`);
    const reference = this.reference(name);
    const isAlone = this.version === 'v2' || Object.keys(beside).length === 0;
    return isAlone ? { ...beside, ...reference } : { ...beside, allOf: [reference] };
  }
}

/** The kinds of a type that each group and version has. */
function kindsOf(name: string, groupVersions: readonly string[]): readonly object[] {
  const kind = name.slice(name.lastIndexOf('.') + 1);
  return groupVersions.map((text) => {
    const [group = '', version = ''] = text.includes('/') ? text.split('/') : ['', text];
    return { group, kind, version };
  });
}

const CONTAINERS = [
  ['[]', 'array', 'items'],
  ['map:', 'object', 'additionalProperties'],
] as const;

/** How server-side apply and strategic merge patches treat a field. */
export function mergeFacts(type: TypeText, from: Published, field: string): Schema {
  const merge = getOwn(from.merge, field);
  return {
    ...(type.startsWith('[]') ? listType(getOwn(from.lists, field)) : {}),
    ...(from.atomicMaps?.includes(field) ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(from.granular?.includes(field) ? { 'x-kubernetes-map-type': 'granular' } : {}),
    ...(merge?.key === undefined ? {} : { 'x-kubernetes-patch-merge-key': merge.key }),
    ...(merge === undefined ? {} : { 'x-kubernetes-patch-strategy': merge.strategy.join(',') }),
    ...getOwn(from.extensions, field),
  };
}

function listType(keys: readonly string[] | undefined): Schema {
  if (keys === undefined) return { 'x-kubernetes-list-type': 'atomic' };
  if (keys.length === 0) return { 'x-kubernetes-list-type': 'set' };
  return { 'x-kubernetes-list-map-keys': keys, 'x-kubernetes-list-type': 'map' };
}
