// What kube-apiserver publishes of each type in its OpenAPI documents: the schema that this server decodes by
// (apiserver/gen/schema.json), and where the published one says something else or more, apiserver/gen/openapi.json. That file is
// made by scripts/gen-openapi.ts, has names and values alone, and is read with the first document.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { getOwn } from '../../lib/own-property.ts';
import { type Definition, definition, definitions, type TypeText } from '../schema/definitions.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const EXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';

/** The published types that our schema has short words for. */
export const NAMED: Readonly<Record<string, string>> = {
  quantity: 'io.k8s.apimachinery.pkg.api.resource.Quantity',
  intstr: 'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  time: `${META}.Time`,
  microtime: `${META}.MicroTime`,
  raw: `${META}.FieldsV1`,
};

/** Published types that are no structs, as v3 has them. */
export const BUILT_IN: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  [NAMED['quantity'] ?? '']: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  [NAMED['intstr'] ?? '']: { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
  [`${META}.Time`]: { type: 'string', format: 'date-time' },
  [`${META}.MicroTime`]: { type: 'string', format: 'date-time' },
  [`${META}.FieldsV1`]: { type: 'object' },
  [`${META}.Patch`]: { type: 'object' },
  'io.k8s.apimachinery.pkg.runtime.RawExtension': { type: 'object' },
  [`${EXTENSIONS}.JSON`]: {},
  [`${EXTENSIONS}.JSONSchemaPropsOrArray`]: {},
  [`${EXTENSIONS}.JSONSchemaPropsOrBool`]: {},
  [`${EXTENSIONS}.JSONSchemaPropsOrStringArray`]: {},
};
export interface PublishedFacts {
  /** Fields of another type than the one they are decoded as, and fields that are published alone. */
  readonly fields?: Readonly<Record<string, TypeText>>;
  /** Fields that are decoded and not published. */
  readonly absent?: readonly string[];
  /** In the order of the Go type. */
  readonly required?: readonly string[];
  /** Defaults that do not follow from a field's type; null for none. */
  readonly defaults?: Readonly<Record<string, string | number | boolean | object | null>>;
  /** Of lists and maps those of their elements. */
  readonly enums?: Readonly<Record<string, readonly string[]>>;
  /** x-kubernetes-unions. */
  readonly unions?: readonly object[];
  readonly atomic?: boolean;
  /** What else stands beside a field: "x-kubernetes-…". */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Of a type that is a kind of many groups: "v1", "apps/v1". */
  readonly groupVersions?: readonly string[];
  readonly lists?: Readonly<Record<string, readonly string[]>>;
  /** What the package of newer descriptions describes in later words, "" being the type itself. */
  readonly earlier?: readonly string[];
}

export interface Published extends Definition {
  readonly defaults?: PublishedFacts['defaults'];
  readonly unions?: PublishedFacts['unions'];
  readonly extensions?: PublishedFacts['extensions'];
  readonly groupVersions?: PublishedFacts['groupVersions'];
}

let loaded: Readonly<Record<string, PublishedFacts>> | undefined;

export function publishedFacts(): Readonly<Record<string, PublishedFacts>> {
  if (loaded === undefined) {
    const path = fileURLToPath(new URL('../gen/openapi.json', import.meta.url));
    const read: Record<string, PublishedFacts> = JSON.parse(readFileSync(path, 'utf8'));
    loaded = read;
  }
  return loaded;
}

/** Throws RangeError for a name that neither file has. */
export function published(name: string): Published {
  const facts = getOwn(publishedFacts(), name);
  return facts === undefined ? definition(name) : withFacts(getOwn(definitions(), name) ?? { fields: {} }, facts);
}

export function withFacts(base: Definition, facts: PublishedFacts): Published {
  const { absent = [], fields: _, enums: __, lists: ___, earlier: ____, ...rest } = facts;
  const fields = Object.entries({ ...base.fields, ...facts.fields })
    .filter(([name]) => !absent.includes(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...base,
    ...rest,
    fields: Object.fromEntries(fields),
    enums: { ...base.enums, ...facts.enums },
    lists: { ...base.lists, ...facts.lists },
  };
}

/**
 * The default of a field, by its Go type: a struct is never absent, and neither is what is no pointer and has no omitempty.
 * Undefined where there is none.
 */
export function defaultOf(of: Published, field: string, type: TypeText): unknown {
  const named = getOwn(of.defaults, field);
  if (named !== undefined) return named ?? undefined;
  if (type.startsWith('#')) return field === 'metadata' || of.present?.includes(field) ? {} : undefined;
  return of.required?.includes(field) ? zeroOf(type) : undefined;
}

/** Of elements of lists and values of maps, which are no pointers. */
export function elementDefault(type: TypeText): unknown {
  if (type.startsWith('#')) return getOwn(BUILT_IN, type.slice(1)) === undefined ? {} : undefined;
  return zeroOf(type);
}

function zeroOf(type: TypeText): unknown {
  return getOwn(ZEROS, type);
}

const ZEROS: Readonly<Record<string, string | number | boolean>> = { string: '', bool: false, int32: 0, int64: 0 };
