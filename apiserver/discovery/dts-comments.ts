// Reads the comments of generated declaration files: what a type is for, and each of its fields. Two packages have such files, both
// of one regular form; this reads that form alone and is no TypeScript parser.

export interface Comments {
  readonly type: string;
  readonly fields: ReadonlyMap<string, string>;
}

const DECLARATION = /^export (?:declare )?(interface|type|class) (\w+)/;
const FIELD = /^ {4}(?:readonly )?"?([\w$-]+)"?\??: /;

/** By the name of the type; of what is declared more than once, the first. */
export function readComments(text: string): ReadonlyMap<string, Comments> {
  const found = new Map<string, Comments>();
  let comment: string[] = [];
  let isInside = false;
  let fields: Map<string, string> | undefined;
  for (const line of text.split('\n')) {
    if (isInside || line.trimStart().startsWith('/**')) {
      if (!isInside) comment = [];
      comment.push(line);
      isInside = !line.trimEnd().endsWith('*/');
      continue;
    }
    const [, form, name = ''] = DECLARATION.exec(line) ?? [];
    if (form !== undefined) {
      fields = form === 'interface' && !found.has(name) ? new Map() : undefined;
      if (!found.has(name)) found.set(name, { type: words(comment), fields: fields ?? new Map() });
    }
    const field = FIELD.exec(line)?.[1];
    if (field !== undefined) fields?.set(field, words(comment));
    comment = [];
  }
  return found;
}

function words(comment: readonly string[]): string {
  return comment
    .map((line) => line.replace(/^\s*(?:\/\*\*|\*\/|\*)? ?/, '').replace(/\s*\*\/\s*$/, ''))
    .join('\n')
    .replace(/\n@deprecated\s*$/, '')
    .replaceAll('\\*', '*')
    .trim();
}
