// Writes apiserver/gen/openapi.json: where the OpenAPI documents that kube-apiserver publishes say of a type something else than
// follows from apiserver/gen/schema.json. Facts alone (types, defaults, enums, the order of required fields), no descriptions. The argument
// is a directory with kube-apiserver's documents, one file for each path of /openapi/v3:
//   sh scripts/node24 scripts/gen-openapi.ts <directory>

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { earlierDescriptions } from '../apiserver/discovery/descriptions.ts';
import { mergeFacts } from '../apiserver/discovery/openapi-schemas.ts';
import {
  BUILT_IN,
  defaultOf,
  elementDefault,
  NAMED,
  type PublishedFacts,
  withFacts,
} from '../apiserver/discovery/published.ts';
import { definitions, type TypeText } from '../apiserver/schema/definitions.ts';

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly default?: string | number | boolean | object;
  readonly enum?: readonly string[];
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-unions'?: readonly object[];
  readonly 'x-kubernetes-group-version-kind'?: readonly { readonly group: string; readonly version: string }[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
}

const OUTPUT = fileURLToPath(new URL('../apiserver/gen/openapi.json', import.meta.url));
const SHORT = new Map(Object.entries(NAMED).map(([short, name]) => [name, short]));
const FORMATS: Readonly<Record<string, TypeText>> = { int32: 'int32', int64: 'int64', byte: 'bytes', double: 'double' };

function typeOf(schema: Schema): TypeText {
  const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
  if (reference !== undefined) {
    const name = reference.slice(reference.lastIndexOf('/') + 1);
    return SHORT.get(name) ?? `#${name}`;
  }
  if (schema.type === 'array') return `[]${typeOf(schema.items ?? {})}`;
  if (schema.type === 'object') return `map:${typeOf(schema.additionalProperties ?? {})}`;
  if (schema.format !== undefined) return FORMATS[schema.format] ?? schema.format;
  return schema.type === 'boolean' ? 'bool' : (schema.type ?? 'untyped');
}

function isList(name: string, { properties }: Schema): boolean {
  const items = properties?.['items']?.items;
  return name.endsWith('List') && items !== undefined && typeOf(items) === `#${name.slice(0, -'List'.length)}`;
}

function picked<T>(
  properties: Readonly<Record<string, Schema>>,
  pick: (schema: Schema, field: string) => T | undefined,
) {
  const found: Record<string, T> = {};
  for (const [field, schema] of Object.entries(properties)) {
    const value = pick(schema, field);
    if (value !== undefined) found[field] = value;
  }
  return found;
}

/** Of a list of a kind, which has the same fields in all of them, the descriptions alone. */
function factsOf(name: string, schema: Schema): PublishedFacts {
  const earlier = earlierDescriptions(
    name,
    schema.description ?? '',
    picked(schema.properties ?? {}, (one) => one.description),
  );
  const described = earlier.length === 0 ? {} : { earlier };
  return isList(name, schema) ? described : { ...structureOf(name, schema), ...described };
}

function structureOf(name: string, schema: Schema): PublishedFacts {
  const base = definitions()[name] ?? { fields: {} };
  const properties = schema.properties ?? {};
  const fields = picked(properties, (one, field) => (base.fields[field] === typeOf(one) ? undefined : typeOf(one)));
  const absent = Object.keys(base.fields).filter((field) => properties[field] === undefined);
  const enums = picked(properties, (one, field) => {
    const values = one.enum ?? one.items?.enum ?? one.additionalProperties?.enum;
    return isDeepStrictEqual(values, base.enums?.[field]) ? undefined : (values ?? []);
  });
  const lists = picked(properties, (one, field) => {
    const kind = one['x-kubernetes-list-type'];
    const keys = kind === 'map' ? one['x-kubernetes-list-map-keys'] : kind === 'set' ? [] : undefined;
    return isDeepStrictEqual(keys, base.lists?.[field]) ? undefined : keys;
  });
  const structure: PublishedFacts = {
    ...(Object.keys(fields).length === 0 ? {} : { fields }),
    ...(absent.length === 0 ? {} : { absent }),
    ...(isDeepStrictEqual(schema.required, base.required) ? {} : { required: schema.required ?? [] }),
    ...(Object.keys(enums).length === 0 ? {} : { enums }),
    ...(Object.keys(lists).length === 0 ? {} : { lists }),
    ...((schema['x-kubernetes-map-type'] === 'atomic') === (base.atomic === true)
      ? {}
      : { atomic: base.atomic !== true }),
    ...(schema['x-kubernetes-unions'] === undefined ? {} : { unions: schema['x-kubernetes-unions'] }),
  };
  const expected = withFacts(base, structure);
  const defaults = picked(properties, (one, field) => {
    const type = typeOf(one);
    const element = one.items ?? one.additionalProperties;
    if (element !== undefined && !isDeepStrictEqual(element.default, elementDefault(typeOf(element)))) {
      throw new Error(`${name}.${field}: the default of an element is ${JSON.stringify(element.default)}`);
    }
    if (isDeepStrictEqual(one.default, defaultOf(expected, field, type))) return undefined;
    return one.default ?? null;
  });
  const extensions = picked(properties, (one, field) => {
    const known = mergeFacts(typeOf(one), expected, field);
    const others = Object.entries(one).filter(
      ([key, value]) => key.startsWith('x-') && !isDeepStrictEqual(known[key], value),
    );
    return others.length === 0 ? undefined : Object.fromEntries(others.map(([key, value]) => [key, String(value)]));
  });
  const kinds = schema['x-kubernetes-group-version-kind'];
  const groupVersions = kinds?.map(({ group, version }) => (group === '' ? version : `${group}/${version}`));
  return {
    ...structure,
    ...(Object.keys(defaults).length === 0 ? {} : { defaults }),
    ...(Object.keys(extensions).length === 0 ? {} : { extensions }),
    ...(groupVersions === undefined || !name.startsWith('io.k8s.apimachinery.') ? {} : { groupVersions }),
  };
}

const directory = process.argv[2] ?? '';
const all = new Map<string, Schema>();
for (const file of readdirSync(directory)) {
  const document: { components: { schemas?: Record<string, Schema> } } = JSON.parse(
    readFileSync(join(directory, file), 'utf8'),
  );
  for (const [name, schema] of Object.entries(document.components.schemas ?? {})) all.set(name, schema);
}
const lines = [...all]
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .filter(([name]) => BUILT_IN[name] === undefined)
  .map(([name, schema]): [string, PublishedFacts] => [name, factsOf(name, schema)])
  .filter(([, facts]) => Object.keys(facts).length > 0)
  .map(([name, facts]) => `${JSON.stringify(name)}: ${JSON.stringify(facts)}`);
writeFileSync(OUTPUT, `{\n${lines.join(',\n')}\n}\n`);
process.stdout.write(`${lines.length} types in ${OUTPUT}\n`);
