// The structure of every API type served here, read from apiserver/gen/schema.json (made by scripts/gen-schema.ts), and
// lookups in it: what type a field has, and how a strategic merge patch treats it. Knows no objects.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { getOwn } from '../../lib/own-property.ts';

/**
 * A field's type in one string: "string", "int32", "int64", "double", "bool", "quantity", "intstr", "time",
 * "microtime", "bytes", "raw" (any JSON), "#<definition>", "[]<type>" or "map:<type>".
 */
export type TypeText = string;

/** How lists and objects meet in a strategic merge patch; absent means "replace". */
export interface MergeFact {
  /** Both may hold, as for pod volumes. "retainKeys" drops the keys that $retainKeys does not name. */
  readonly strategy: readonly ('merge' | 'replace' | 'retainKeys')[];
  /** The field that identifies an element; absent on lists of primitives. */
  readonly key?: string;
  /** All the keys of an associative list, where the type declares more than the merge key (ports: port and protocol). */
  readonly mapKeys?: readonly string[];
}

export interface Definition {
  readonly fields: Readonly<Record<string, TypeText>>;
  readonly required?: readonly string[];
  readonly merge?: Readonly<Record<string, MergeFact>>;
  readonly enums?: Readonly<Record<string, readonly string[]>>;
  /** Optional fields that Go keeps as plain values: their zero is not written. */
  readonly omitZero?: readonly string[];
  /** Optional strings that Go keeps as pointers: their "" is written. */
  readonly pointers?: readonly string[];
  /** Has one owner and is replaced as a whole by server-side apply ("x-kubernetes-map-type: atomic"). */
  readonly atomic?: boolean;
  /** Lists that server-side apply merges by these keys of their elements; [] for a set. Every other list is atomic. */
  readonly lists?: Readonly<Record<string, readonly string[]>>;
  /** Fields that are maps with one owner. */
  readonly atomicMaps?: readonly string[];
  /** Fields that are merged here though their type is atomic. */
  readonly granular?: readonly string[];
  /** Defaults of the fields that identify an element. */
  readonly keyDefaults?: Readonly<Record<string, string>>;
  /** Struct fields that are no pointers in Go, and so never absent. */
  readonly present?: readonly string[];
  /** "<module>:<interface>" in kubernetes-types, where its descriptions stand. */
  readonly source?: string;
}

export type Definitions = Readonly<Record<string, Definition>>;

let loaded: Definitions | undefined;

/** All definitions by full name ("io.k8s.api.core.v1.Pod"); read once. */
export function definitions(): Definitions {
  if (loaded === undefined) {
    const path = fileURLToPath(new URL('../gen/schema.json', import.meta.url));
    const read: Definitions = JSON.parse(readFileSync(path, 'utf8'));
    loaded = read;
  }
  return loaded;
}

/** Throws RangeError for a name that is not in the schema: a row of the table names its definition wrongly. */
export function definition(name: string): Definition {
  const found = getOwn(definitions(), name);
  if (found === undefined) throw new RangeError(`"${name}" is not a definition in apiserver/gen/schema.json`);
  return found;
}

/** The type of a place in an object, for patches. */
export interface SchemaNode {
  /** "unknown" below raw JSON and past the schema's edge: treat as a plain JSON merge. */
  readonly shape: 'object' | 'map' | 'list' | 'leaf' | 'unknown';
  readonly type: TypeText;
  /** On the field that holds the list or object. */
  readonly merge: MergeFact | undefined;
}

const UNKNOWN: SchemaNode = { shape: 'unknown', type: 'raw', merge: undefined };

function nodeOf(type: TypeText, merge: MergeFact | undefined): SchemaNode {
  if (type.startsWith('#')) return { shape: 'object', type, merge };
  if (type.startsWith('[]')) return { shape: 'list', type, merge };
  if (type.startsWith('map:')) return { shape: 'map', type, merge };
  return { shape: type === 'raw' ? 'unknown' : 'leaf', type, merge };
}

/** The root of a kind: `schemaNode(row.schema)`. */
export function schemaNode(schemaName: string): SchemaNode {
  return nodeOf(`#${schemaName}`, undefined);
}

/** The node under a field of an object or a key of a map; "unknown" when there is none. */
export function childNode(node: SchemaNode, field: string): SchemaNode {
  if (node.shape === 'map') return nodeOf(node.type.slice(4), undefined);
  if (node.shape !== 'object') return UNKNOWN;
  const { fields, merge } = definition(node.type.slice(1));
  const type = getOwn(fields, field);
  return type === undefined ? UNKNOWN : nodeOf(type, getOwn(merge, field));
}

/** The node of a list's elements. */
export function itemNode(node: SchemaNode): SchemaNode {
  return node.shape === 'list' ? nodeOf(node.type.slice(2), undefined) : UNKNOWN;
}

/**
 * Strategic-merge facts of the field at `path` (field names and map keys; list indexes are left out), as in
 * `mergeInfo('io.k8s.api.core.v1.Pod', ['spec', 'containers', 'ports'])` → { strategy: ['merge'], key: 'containerPort' }.
 * Undefined means replace.
 */
export function mergeInfo(schemaName: string, path: readonly string[]): MergeFact | undefined {
  let node = schemaNode(schemaName);
  for (const field of path) {
    if (node.shape === 'list') node = itemNode(node);
    node = childNode(node, field);
  }
  return node.merge;
}
