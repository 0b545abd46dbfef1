// Paths to fields of a schema, as rules and selectable fields name them: ".spec.size", ".spec['a.b']"
// (ValidFieldPath of k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel). Pure.

import { getOwn } from '../../lib/own-property.ts';
import { type JsonSchema, valueSchema } from './types.ts';

/** A path that leads nowhere; the message is upstream's. */
export class FieldPathError extends Error {
  override name = 'FieldPathError';
}

export interface FoundField {
  readonly schema: JsonSchema;
  readonly names: readonly string[];
}

/** A quoted name, a delimiter, or what is between delimiters. */
const TOKENS = /'(?:[^'\\]|\\.)*'|'[\s\S]*|[.[\]]|[^.[\]]+/g;

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
]);

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_whole, letter: string) => {
    const meant = ESCAPES.get(letter);
    if (meant === undefined) throw new FieldPathError('invalid string literal: unsupported escape sequence');
    return meant;
  });
}

/** Without listing them: a path is looked up for each of many rules. */
function hasFields(schema: JsonSchema): boolean {
  for (const _name in schema.properties) return true;
  return false;
}

/** Throws FieldPathError. */
export function fieldAt(path: string, root: JsonSchema, options: { readonly brackets: boolean }): FoundField {
  const tokens = path.match(TOKENS) ?? [];
  const names: string[] = [];
  let schema = root;
  let at = 0;
  const next = (): string => {
    const token = tokens[at++];
    if (token === undefined) throw new FieldPathError('unexpected end of JSON path');
    return token;
  };
  const enter = (name: string): void => {
    const found = getOwn(schema.properties, name) ?? (hasFields(schema) ? undefined : valueSchema(schema));
    if (found === undefined) throw new FieldPathError('does not refer to a valid field');
    names.push(name);
    schema = found;
  };
  while (at < tokens.length) {
    const token = next();
    if (token === '.') enter(next());
    else if (token === '[') {
      if (!options.brackets) throw new FieldPathError('array notation is not allowed');
      const quoted = next();
      if (quoted.length < 2 || !quoted.startsWith("'") || !quoted.endsWith("'")) {
        throw new FieldPathError(`expected single quoted string but got ${quoted}`);
      }
      enter(unescaped(quoted.slice(1, -1)));
      const end = next();
      if (end !== ']') throw new FieldPathError(`expected ] but got ${end}`);
    } else throw new FieldPathError(`expected [ or . but got: ${token}`);
  }
  return { schema, names };
}
