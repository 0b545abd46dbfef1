// Writes apiserver/gen/schema.json: the structure of every type reachable from the roots in apiserver/schema/overlay.ts,
// read from the npm package kubernetes-types, by the facts of the Go types in apiserver/gen/go-types.json where they are there, and
// completed by that overlay. Run after changing one of them:
//   sh scripts/node24 scripts/gen-schema.ts

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Definition, MergeFact, TypeText } from '../apiserver/schema/definitions.ts';
import { type DtsModule, parseDts } from '../apiserver/schema/dts.ts';
import {
  ATOMIC_MAPS,
  ATOMIC_TYPES,
  GRANULAR_FIELDS,
  KEY_DEFAULTS,
  LISTS,
  PRESENT,
} from '../apiserver/schema/list-types.ts';
import { ADDED, ENUMS, INT64, MERGES, OMIT_ZERO, ROOTS, TYPES } from '../apiserver/schema/overlay.ts';
import { POINTERS } from '../apiserver/schema/pointers.ts';

const TYPES_DIR = fileURLToPath(new URL('../node_modules/kubernetes-types/', import.meta.url));
const GO_TYPES = fileURLToPath(new URL('../apiserver/gen/go-types.json', import.meta.url));
const OUTPUT = fileURLToPath(new URL('../apiserver/gen/schema.json', import.meta.url));

const modules = new Map<string, DtsModule>();

function moduleAt(path: string): DtsModule {
  let found = modules.get(path);
  if (found === undefined) {
    found = parseDts(readFileSync(`${TYPES_DIR}${path}.d.ts`, 'utf8'));
    modules.set(path, found);
  }
  return found;
}

/** "core/v1" → "io.k8s.api.core.v1". */
function packageOf(path: string): string {
  if (path === 'meta/v1') return 'io.k8s.apimachinery.pkg.apis.meta.v1';
  if (path === 'apiextensions/v1') return 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
  return `io.k8s.api.${path.replace('/', '.')}`;
}

const output: Record<string, Definition> = {};

function typeOf(text: string, field: string, module: string): TypeText {
  const list = /^Array<(.+)>$/.exec(text);
  if (list !== null) return `[]${typeOf(list[1] ?? '', field, module)}`;
  const map = /^\{ \[name: string\]: (.+); \}$/.exec(text);
  if (map !== null) return `map:${typeOf(map[1] ?? '', field, module)}`;
  if (text === 'string' || /^"[^"]*"$/.test(text)) return 'string';
  if (text === 'boolean') return 'bool';
  if (text === 'number') return INT64.has(field) ? 'int64' : 'int32';
  if (text === 'number | string') return 'intstr';
  if (text === 'Quantity') return 'quantity';
  if (text === 'Time') return 'time';
  if (text === 'MicroTime') return 'microtime';
  if (text === 'RawExtension' || text === 'FieldsV1' || text === 'any') return 'raw';
  if (!/^\w+$/.test(text)) throw new SyntaxError(`${module}: field ${field} has the unknown type ${text}`);
  const from = moduleAt(module).imports.get(text);
  const home = from === undefined ? module : posix.join(posix.dirname(module), from);
  add(home, text);
  return `#${packageOf(home)}.${text}`;
}

function add(module: string, name: string): void {
  const full = `${packageOf(module)}.${name}`;
  if (output[full] !== undefined) return;
  const source = moduleAt(module).interfaces.get(name);
  if (source === undefined) throw new ReferenceError(`kubernetes-types/${module} has no interface ${name}`);
  const fields: Record<string, TypeText> = {};
  const required = source.fields.filter((field) => !field.optional).map((field) => field.name);
  // Entered before its fields are read: types refer to each other in circles.
  output[full] = { fields, ...(required.length > 0 ? { required } : {}), source: `${module}:${name}` };
  for (const field of source.fields) {
    fields[field.name] = TYPES[`${full}.${field.name}`] ?? typeOf(field.type, field.name, module);
  }
}

for (const root of ROOTS) {
  const [module = '', name = ''] = root.split(' ');
  add(module, name);
}

/** Where the published package describes a Go type: "apps/v1:Deployment". */
function sourceOf(name: string): { source?: string } {
  const [version = '', type = ''] = name.split('.').slice(-2);
  const path = `${name.split('.').at(-3)}/${version}`;
  if (!existsSync(`${TYPES_DIR}${path}.d.ts`) || !moduleAt(path).interfaces.has(type)) return {};
  return { source: `${path}:${type}` };
}

const goTypes: Record<string, Definition> = JSON.parse(readFileSync(GO_TYPES, 'utf8'));
for (const [name, goType] of Object.entries(goTypes)) output[name] = { ...goType, ...sourceOf(name) };
for (const { fields } of Object.values(goTypes)) {
  for (const type of Object.values(fields)) {
    const [, owner = '', version = '', target = ''] = /#io\.k8s\..+?\.(\w+)\.(v\w+)\.(\w+)$/.exec(type) ?? [];
    if (target !== '' && goTypes[type.slice(type.indexOf('#') + 1)] === undefined) add(`${owner}/${version}`, target);
  }
}

interface Extra {
  merge?: Readonly<Record<string, MergeFact>>;
  enums?: Readonly<Record<string, readonly string[]>>;
  omitZero?: readonly string[];
  pointers?: readonly string[];
  atomic?: boolean;
  lists?: Readonly<Record<string, readonly string[]>>;
  atomicMaps?: readonly string[];
  granular?: readonly string[];
  keyDefaults?: Readonly<Record<string, string>>;
  present?: readonly string[];
}

for (const [name, addition] of Object.entries(ADDED)) {
  const base = output[name];
  output[name] =
    base === undefined
      ? addition
      : {
          ...base,
          fields: Object.fromEntries(
            Object.entries({ ...base.fields, ...addition.fields }).sort(([a], [b]) => (a < b ? -1 : 1)),
          ),
        };
}

function extend(name: string, extra: Extra, fieldNames: readonly string[]): void {
  const base = output[name];
  if (base === undefined) throw new ReferenceError(`the overlay names ${name}, which no root refers to`);
  for (const field of fieldNames) {
    if (base.fields[field] === undefined) throw new ReferenceError(`the overlay names ${name}.${field}: no such field`);
  }
  output[name] = { ...base, ...extra };
}

for (const [name, merge] of Object.entries(MERGES)) extend(name, { merge }, Object.keys(merge));
for (const [name, enums] of Object.entries(ENUMS)) extend(name, { enums }, Object.keys(enums));
for (const [name, omitZero] of Object.entries(OMIT_ZERO)) extend(name, { omitZero }, omitZero);
for (const [name, pointers] of Object.entries(POINTERS)) extend(name, { pointers }, pointers);

/** Facts of server-side apply hold for every group; those of types that no root refers to wait until one does. */
function extendIfThere(short: string, extra: Extra, fieldNames: readonly string[] = []): void {
  const name = short.startsWith('io.') ? short : `io.k8s.api.${short}`;
  if (output[name] !== undefined) extend(name, extra, fieldNames);
}

for (const [name, line] of Object.entries(LISTS)) {
  const lists: Record<string, readonly string[]> = {};
  for (const item of line.split(' ')) {
    const [field = '', keys] = item.split(':');
    lists[field] = keys?.split(',') ?? [];
  }
  extendIfThere(name, { lists }, Object.keys(lists));
}
for (const [group, names] of Object.entries(ATOMIC_TYPES)) {
  for (const name of names.split(' ')) extendIfThere(`${group}.${name}`, { atomic: true });
}
for (const [name, line] of Object.entries(ATOMIC_MAPS)) extendIfThere(name, { atomicMaps: line.split(' ') });
for (const [name, line] of Object.entries(GRANULAR_FIELDS)) extendIfThere(name, { granular: line.split(' ') });
for (const [name, keyDefaults] of Object.entries(KEY_DEFAULTS)) extendIfThere(name, { keyDefaults });
for (const [name, line] of Object.entries(PRESENT)) {
  const present = line.split(' ');
  extendIfThere(name, { present }, present);
}

const sorted = Object.fromEntries(Object.entries(output).sort(([a], [b]) => (a < b ? -1 : 1)));
const lines = Object.entries(sorted).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
writeFileSync(OUTPUT, `{\n${lines.join(',\n')}\n}\n`);
process.stdout.write(`${lines.length} definitions in ${OUTPUT}\n`);
