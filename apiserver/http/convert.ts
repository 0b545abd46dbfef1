// Conversions between JSON and YAML text, both ways, indented JSON, and JSON without managed fields. Pure, and slow for large texts:
// convert-aside.ts does that in a thread of its own.

import { isAlias, isMap, isScalar, isSeq, type Node, parseDocument, stringify } from 'yaml';
import { errorMessage } from '../../lib/errors.ts';
import { beyond, jsonSize } from '../../lib/json-limits.ts';
import { dropManagedFields } from '../audit/event.ts';
import { JSON_LIMITS, MAX_BODY_BYTES } from '../limits.ts';

export type Conversion = 'yaml-to-json' | 'json-to-yaml' | 'json-to-pretty' | 'without-managed-fields';

/** What is wrong with the text, for the client. */
export class ConversionError extends Error {
  override name = 'ConversionError';
  /** "tooLarge" for what goes beyond a limit other than depth. */
  readonly kind: 'malformed' | 'tooLarge';
  constructor(kind: 'malformed' | 'tooLarge', message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Throws ConversionError. */
export function convert(conversion: Conversion, text: string): string {
  switch (conversion) {
    case 'yaml-to-json':
      return yamlToJson(text);
    case 'json-to-yaml':
      return stringify(JSON.parse(text), { lineWidth: 0, aliasDuplicateObjects: false });
    case 'json-to-pretty':
      return JSON.stringify(JSON.parse(text), null, 2);
    case 'without-managed-fields': {
      const value: unknown = JSON.parse(text);
      dropManagedFields(value);
      return JSON.stringify(value);
    }
  }
}

function malformed(why: string): ConversionError {
  return new ConversionError('malformed', `error converting YAML to JSON: ${why}`);
}

function yamlToJson(text: string): string {
  let json: string;
  try {
    // The parser's own check compares each key with every other; checkKeys does not.
    const document = parseDocument(text, { uniqueKeys: false });
    const [error] = document.errors;
    if (error !== undefined) throw malformed(error.message.split('\n')[0] ?? '');
    checkNodes(document.contents, text);
    json = JSON.stringify(document.toJS({ maxAliasCount: 100 }) ?? null);
  } catch (error) {
    if (error instanceof RangeError) throw malformed(`exceeded max depth: ${error.message}`);
    // An alias without an anchor, or too many; a merge of something that is no map.
    if (error instanceof ReferenceError || (error instanceof Error && error.message.startsWith('Merge sources'))) {
      throw malformed(error.message);
    }
    if (error instanceof ConversionError) throw error;
    throw malformed(errorMessage(error));
  }
  const utf8 = Buffer.from(json);
  if (utf8.length > MAX_BODY_BYTES) {
    throw new ConversionError('tooLarge', `the body has more than ${MAX_BODY_BYTES} bytes as JSON`);
  }
  const limit = beyond(jsonSize(utf8, JSON_LIMITS), JSON_LIMITS);
  if (limit === 'depth') throw malformed(`exceeded max depth: more than ${JSON_LIMITS.depth} levels`);
  if (limit !== undefined)
    throw new ConversionError('tooLarge', `the body has more than ${JSON_LIMITS[limit]} ${limit}`);
  return json;
}

/** Throws for keys that a map has twice, and for one that JSON does not have. Goes by a list, not by calls: YAML can be deep. */
function checkNodes(root: Node | null, text: string): void {
  const left: unknown[] = [root];
  const duplicates: { readonly offset: number; readonly name: string }[] = [];
  while (left.length > 0) {
    const node = left.pop();
    if (isSeq(node)) for (const item of node.items) left.push(item);
    else if (isMap(node)) {
      const seen = new Set<string>();
      for (const { key, value } of node.items) {
        if (!isScalar(key) && !isAlias(key)) throw malformed('a key is not a plain value');
        const name = isScalar(key) ? String(key.value) : `*${key.source}`;
        if (seen.has(name)) duplicates.push({ offset: key.range?.[0] ?? 0, name });
        seen.add(name);
        left.push(value);
      }
    }
  }
  if (duplicates.length > 0) throw malformed(`yaml: unmarshal errors:${duplicateLines(duplicates, text)}`);
}

/** In the order and the words of the parser that kube-apiserver uses. `offset` is an index of `text`. */
function duplicateLines(
  duplicates: readonly { readonly offset: number; readonly name: string }[],
  text: string,
): string {
  let line = 1;
  let from = 0;
  let lines = '';
  for (const { offset, name } of duplicates.toSorted((a, b) => a.offset - b.offset)) {
    for (let next = text.indexOf('\n', from); next >= 0 && next < offset; next = text.indexOf('\n', from)) {
      line++;
      from = next + 1;
    }
    lines += `\n  line ${line}: key ${JSON.stringify(name)} already set in map`;
  }
  return lines;
}
