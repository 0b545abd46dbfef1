// What expressions of policies see of a built-in kind, as a schema: for checking their types before there is an object. As
// k8s.io/apiserver/pkg/cel/common makes it of kube-apiserver's OpenAPI definitions, where quantities have no type and are left out.

import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { escapeField } from '../../crd/cel-types.ts';
import { type JsonSchema, properties, valueSchema } from '../../crd/types.ts';
import { definitions } from '../../schema/definitions.ts';

const TEXT: JsonSchema = { type: 'string' };
const FLAG: JsonSchema = { type: 'boolean' };
const NUMBER: JsonSchema = { type: 'integer' };
const TIME: JsonSchema = { type: 'string', format: 'date-time' };
/** An object of which nothing is known. */
const OPAQUE: JsonSchema = { type: 'object' };

const SIMPLE: ReadonlyMap<string, JsonSchema> = new Map<string, JsonSchema>([
  ['string', TEXT],
  ['bool', FLAG],
  ['int32', NUMBER],
  ['int64', NUMBER],
  ['double', { type: 'number' }],
  ['intstr', { 'x-kubernetes-int-or-string': true }],
  ['time', TIME],
  ['microtime', TIME],
  ['bytes', { type: 'string', format: 'byte' }],
  ['raw', OPAQUE],
]);

const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });
const objectOf = (properties: Record<string, JsonSchema>): JsonSchema => ({ type: 'object', properties });

/** `type` is one of definitions.ts. `above`: the definitions that this one is a part of. Undefined for what has no type. */
function schemaOfType(type: string, above: readonly string[]): JsonSchema | undefined {
  if (type.startsWith('#')) return schemaOf(type.slice(1), above);
  const isList = type.startsWith('[]');
  if (isList || type.startsWith('map:')) {
    const inner = schemaOfType(type.slice(isList ? '[]'.length : 'map:'.length), above);
    return inner === undefined ? undefined : isList ? listOf(inner) : mapOf(inner);
  }
  return SIMPLE.get(type);
}

function schemaOf(name: string, above: readonly string[]): JsonSchema | undefined {
  const definition = getOwn(definitions(), name);
  if (definition === undefined) return undefined;
  if (above.includes(name)) return OPAQUE;
  const fields: Record<string, JsonSchema> = {};
  for (const [field, type] of Object.entries(definition.fields)) {
    const schema = schemaOfType(type, [...above, name]);
    if (schema !== undefined) setOwn(fields, field, schema);
  }
  return objectOf(fields);
}

const known = new Map<string, JsonSchema | undefined>();

/** Of a definition by its full name ("io.k8s.api.core.v1.Pod"); undefined where there is none. */
export function builtInSchema(name: string): JsonSchema | undefined {
  if (!known.has(name)) known.set(name, schemaOf(name, []));
  return known.get(name);
}

/** The schema without the properties whose names are not among `words`: a type for each object of a pod is too many. */
export function onlyNamed(schema: JsonSchema, words: ReadonlySet<string>): JsonSchema {
  const values = valueSchema(schema);
  if (schema.items !== undefined) return { ...schema, items: onlyNamed(schema.items, words) };
  if (values !== undefined) return { ...schema, additionalProperties: onlyNamed(values, words) };
  if (schema.properties === undefined) return schema;
  const named: Record<string, JsonSchema> = {};
  for (const [name, property] of properties(schema)) {
    if (words.has(name) || words.has(escapeField(name) ?? name)) setOwn(named, name, onlyNamed(property, words));
  }
  return { ...schema, properties: named };
}

/** Of a custom resource: its metadata has its own type. */
export function customSchema(schema: JsonSchema): JsonSchema {
  const metadata = builtInSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta') ?? OPAQUE;
  return { ...schema, properties: { ...schema.properties, apiVersion: TEXT, kind: TEXT, metadata } };
}

const kindOf = (last: string): JsonSchema => objectOf({ group: TEXT, version: TEXT, [last]: TEXT });

const GROUP_KIND = kindOf('kind');
const GROUP_RESOURCE = kindOf('resource');
const USER = objectOf({ username: TEXT, uid: TEXT, groups: listOf(TEXT), extra: mapOf(listOf(TEXT)) });

/** The variable `request`. */
export const REQUEST: JsonSchema = objectOf({
  kind: GROUP_KIND,
  resource: GROUP_RESOURCE,
  subResource: TEXT,
  requestKind: GROUP_KIND,
  requestResource: GROUP_RESOURCE,
  requestSubResource: TEXT,
  name: TEXT,
  namespace: TEXT,
  operation: TEXT,
  userInfo: USER,
  dryRun: FLAG,
  options: { 'x-kubernetes-int-or-string': true },
});

const NAMESPACE_METADATA = objectOf({
  name: TEXT,
  generateName: TEXT,
  namespace: TEXT,
  labels: mapOf(TEXT),
  annotations: mapOf(TEXT),
  UID: TEXT,
  creationTimestamp: TIME,
  deletionGracePeriodSeconds: NUMBER,
  deletionTimestamp: TIME,
  generation: NUMBER,
  resourceVersion: TEXT,
  finalizers: listOf(TEXT),
});
const CONDITION = objectOf({ status: TEXT, type: TEXT, lastTransitionTime: TIME, message: TEXT, reason: TEXT });
const NAMESPACE_SPEC = objectOf({ finalizers: listOf(TEXT) });
const NAMESPACE_STATUS = objectOf({ conditions: listOf(CONDITION), phase: TEXT });

/** The variable `namespaceObject`. */
export const NAMESPACE: JsonSchema = objectOf({
  metadata: NAMESPACE_METADATA,
  spec: NAMESPACE_SPEC,
  status: NAMESPACE_STATUS,
});

/** The types of both, and of what is in them, with upstream's names: what is in others comes before them. */
export const REQUEST_TYPES: readonly (readonly [JsonSchema, string])[] = [
  [GROUP_KIND, 'kubernetes.GroupVersionKind'],
  [GROUP_RESOURCE, 'kubernetes.GroupVersionResource'],
  [USER, 'kubernetes.UserInfo'],
  [REQUEST, 'kubernetes.AdmissionRequest'],
  [NAMESPACE_METADATA, 'kubernetes.NamespaceMetadata'],
  [NAMESPACE_SPEC, 'kubernetes.NamespaceSpec'],
  [CONDITION, 'kubernetes.NamespaceCondition'],
  [NAMESPACE_STATUS, 'kubernetes.NamespaceStatus'],
  [NAMESPACE, 'kubernetes.Namespace'],
];
