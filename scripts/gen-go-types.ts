// Writes apiserver/gen/go-types.json: what the Go types of k8s.io/api state about each field and the published TypeScript
// types do not (pointers, 64-bit numbers, zeros that are written, merge keys, enums). Reads a directory with
// k8s.io/api as the Go module proxy has it; run gen-schema.ts afterwards:
//   sh scripts/node24 scripts/gen-go-types.ts DIRECTORY

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Definition, MergeFact, TypeText } from '../apiserver/schema/definitions.ts';

const OUTPUT = fileURLToPath(new URL('../apiserver/gen/go-types.json', import.meta.url));
/** The packages whose types are taken from Go. core/v1 is older than this file: its facts are in the overlay. */
const PACKAGES = [
  'apps/v1',
  'autoscaling/v1',
  'autoscaling/v2',
  'batch/v1',
  'flowcontrol/v1',
  'networking/v1',
  'policy/v1',
  'resource/v1',
];
/** From packages where only one kind is taken. */
const SINGLE: Readonly<Record<string, readonly string[]>> = { 'storage/v1': ['VolumeAttributesClass'] };
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const WELL_KNOWN: Readonly<Record<string, TypeText>> = {
  'resource.Quantity': 'quantity',
  'intstr.IntOrString': 'intstr',
  'metav1.Time': 'time',
  'metav1.MicroTime': 'microtime',
  'runtime.RawExtension': 'raw',
  'types.UID': 'string',
  string: 'string',
  bool: 'bool',
  int32: 'int32',
  int64: 'int64',
  '[]byte': 'bytes',
};

interface GoField {
  readonly name: string;
  readonly goType: string;
  readonly json: string;
  readonly tag: string;
  readonly markers: readonly string[];
}
interface GoStruct {
  readonly fields: readonly GoField[];
  readonly markers: readonly string[];
}
interface GoPackage {
  readonly structs: ReadonlyMap<string, GoStruct>;
  /** `type X string`. */
  readonly named: ReadonlyMap<string, string>;
  /** Named string types marked "+enum", with their constants. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
  /** Import name → package, for those of this module. */
  readonly imports: ReadonlyMap<string, string>;
}

function parseGo(text: string): GoPackage {
  const structs = new Map<string, GoStruct>();
  const named = new Map<string, string>();
  const marked = new Set<string>();
  const enums = new Map<string, string[]>();
  const imports = new Map<string, string>();
  let markers: string[] = [];
  let open: { name: string; fields: GoField[]; markers: readonly string[] } | undefined;
  for (const line of text.split('\n').map((l) => l.trim())) {
    const marker = /^\/\/ ?\+(\S+)/.exec(line);
    if (marker?.[1] !== undefined) {
      markers.push(marker[1]);
      continue;
    }
    if (line.startsWith('//') || line === '') continue;
    const from = /^(\w+)? ?"k8s\.io\/api\/(\w+)\/(\w+)"$/.exec(line);
    if (from !== null) imports.set(from[1] ?? from[3] ?? '', `${from[2]}/${from[3]}`);
    const start = /^type (\w+) struct \{(\})?/.exec(line);
    const simple = /^(?:type )?(\w+) (\[\]\w+|string|int32|map\[\w+\]\S+)$/.exec(line);
    const constant = /^(?:const )?\w+ (\w+)\s+= "([^"]*)"/.exec(line.replace(/\s+/g, ' '));
    if (open !== undefined) {
      if (line === '}') {
        structs.set(open.name, { fields: open.fields, markers: open.markers });
        open = undefined;
      } else {
        const field = /^(?:(\w+)\s+)?(\S+)\s+`(.*)`/.exec(line);
        const json = /json:"([^"]*)"/.exec(field?.[3] ?? '')?.[1];
        if (field !== null && json !== undefined) {
          open.fields.push({ name: field[1] ?? '', goType: field[2] ?? '', json, tag: field[3] ?? '', markers });
        }
      }
    } else if (start?.[1] !== undefined) {
      if (start[2] === undefined) open = { name: start[1], fields: [], markers };
      else structs.set(start[1], { fields: [], markers });
    } else if (line.startsWith('type ') && simple?.[1] !== undefined) {
      named.set(simple[1], simple[2] ?? '');
      if (markers.includes('enum')) marked.add(simple[1]);
    } else if (constant?.[1] !== undefined) {
      enums.set(constant[1], [...(enums.get(constant[1]) ?? []), constant[2] ?? '']);
    }
    markers = [];
  }
  return {
    structs,
    named,
    enums: new Map([...enums].filter(([name]) => marked.has(name)).map(([name, list]) => [name, list.sort()])),
    imports,
  };
}

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new RangeError('usage: gen-go-types.ts DIRECTORY');
const packages = new Map<string, GoPackage>();

function packageAt(path: string): GoPackage {
  let found = packages.get(path);
  if (found === undefined) {
    found = parseGo(readFileSync(`${directory}/${path}/types.go`, 'utf8'));
    packages.set(path, found);
  }
  return found;
}

const fullName = (path: string, name: string): string => `io.k8s.api.${path.replace('/', '.')}.${name}`;

function typeOf(goType: string, path: string): TypeText {
  const text = goType.replace(/^\*/, '');
  const known = WELL_KNOWN[text];
  if (known !== undefined) return known;
  if (text.startsWith('[]')) return `[]${typeOf(text.slice(2), path)}`;
  const map = /^map\[\w+\](.+)$/.exec(text);
  if (map?.[1] !== undefined) return `map:${typeOf(map[1], path)}`;
  const [prefix = '', name = ''] = text.includes('.') ? text.split('.') : ['', text];
  if (prefix === 'metav1') return `#${META}.${name}`;
  const home = prefix === '' ? path : packageAt(path).imports.get(prefix);
  if (home === undefined) throw new ReferenceError(`${path}: the type ${goType} is of an unknown package`);
  if (prefix !== '' && name === 'ResourceList') return 'map:quantity';
  const alias = packageAt(home).named.get(name);
  if (alias !== undefined) return typeOf(alias, home);
  return `#${fullName(home, name)}`;
}

function enumOf(goType: string, path: string): readonly string[] | undefined {
  const text = goType.replace(/^\*/, '').replace(/^\[\]/, '');
  const [prefix, name] = text.includes('.') ? text.split('.') : ['', text];
  const home = prefix === '' ? path : packageAt(path).imports.get(prefix ?? '');
  return home === undefined || goType.includes('[]') ? undefined : packageAt(home).enums.get(name ?? '');
}

/** List types are in apiserver/schema/list-types.ts. */
function mergeOf(field: GoField): MergeFact | undefined {
  const strategy = /patchStrategy:"([^"]*)"/.exec(field.tag)?.[1];
  const key = /patchMergeKey:"([^"]*)"/.exec(field.tag)?.[1];
  if (strategy === undefined) return undefined;
  const words = strategy.split(',');
  return {
    strategy: words.filter((word) => word === 'merge' || word === 'replace' || word === 'retainKeys'),
    ...(key === undefined ? {} : { key }),
  };
}

/** The fields of a struct, those of embedded structs among them. */
function fieldsOf(path: string, name: string): readonly GoField[] {
  const found = packageAt(path).structs.get(name);
  if (found === undefined) throw new ReferenceError(`k8s.io/api/${path} has no struct ${name}`);
  return found.fields.flatMap((field) => {
    if (!field.json.endsWith(',inline')) return [field];
    if (field.goType === 'metav1.TypeMeta') {
      return ['apiVersion', 'kind'].map((json) => ({
        name: json,
        goType: 'string',
        json: `${json},omitempty`,
        tag: '',
        markers: [],
      }));
    }
    return fieldsOf(path, field.goType);
  });
}

function definitionOf(path: string, name: string): Definition {
  const fields: Record<string, TypeText> = {};
  const merge: Record<string, MergeFact> = {};
  const enums: Record<string, readonly string[]> = {};
  const [required, omitZero, pointers]: [string[], string[], string[]] = [[], [], []];
  const own = [...fieldsOf(path, name)].sort((a, b) => (a.json < b.json ? -1 : 1));
  for (const field of own) {
    const json = field.json.split(',')[0] ?? '';
    const type = typeOf(field.goType, path);
    const optional = field.json.includes('omitempty') || field.json.includes('omitzero');
    fields[json] = type;
    if (!optional && !field.markers.includes('optional')) required.push(json);
    if (optional && ['bool', 'int32', 'int64'].includes(type) && !field.goType.startsWith('*')) omitZero.push(json);
    if (type === 'string' && field.goType.startsWith('*')) pointers.push(json);
    const fact = mergeOf(field);
    if (fact !== undefined) merge[json] = fact;
    const allowed = enumOf(field.goType, path);
    if (allowed !== undefined) enums[json] = allowed;
  }
  const full = (record: object): boolean => Object.keys(record).length > 0;
  return {
    fields,
    ...(required.length > 0 ? { required } : {}),
    ...(full(merge) ? { merge } : {}),
    ...(full(enums) ? { enums } : {}),
    ...(omitZero.length > 0 ? { omitZero } : {}),
    ...(pointers.length > 0 ? { pointers } : {}),
  };
}

const output: Record<string, Definition> = {};

function add(path: string, name: string): void {
  const full = fullName(path, name);
  if (output[full] !== undefined) return;
  output[full] = definitionOf(path, name);
  for (const type of Object.values(output[full].fields)) {
    const reference = /#io\.k8s\.api\.(\w+)\.(\w+)\.(\w+)$/.exec(type);
    const [, group = '', version = '', target = ''] = reference ?? [];
    if (reference !== null && `${group}/${version}` === path) add(path, target);
  }
}

for (const path of PACKAGES) {
  for (const [name, { fields }] of packageAt(path).structs) {
    // A kind; lists are made by the server.
    if (fields.some((field) => field.goType === 'metav1.ObjectMeta') && !name.endsWith('List')) add(path, name);
  }
}
for (const [path, names] of Object.entries(SINGLE)) for (const name of names) add(path, name);

const sorted = Object.entries(output).sort(([a], [b]) => (a < b ? -1 : 1));
const lines = sorted.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
writeFileSync(OUTPUT, `{\n${lines.join(',\n')}\n}\n`);
process.stdout.write(`${lines.length} definitions in ${OUTPUT}\n`);
