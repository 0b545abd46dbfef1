// Reads the interfaces of the npm package `kubernetes-types`: fields, types, and the sentences that describe them. The
// package is generated and therefore very regular; this reads that form alone and is no TypeScript parser.

/** One field as the package writes it. */
export interface DtsField {
  readonly name: string;
  readonly optional: boolean;
  /** "string", "Array<Container>", "{ [name: string]: Quantity }". */
  readonly type: string;
  readonly description: string;
}

export interface DtsInterface {
  readonly name: string;
  readonly description: string;
  readonly fields: readonly DtsField[];
}

export interface DtsModule {
  readonly interfaces: ReadonlyMap<string, DtsInterface>;
  /** Type aliases: Time → "string". */
  readonly aliases: ReadonlyMap<string, string>;
  /** Imported name → module path as written ("../meta/v1"). */
  readonly imports: ReadonlyMap<string, string>;
}

const IMPORT = /^import \{([^}]*)\} from "([^"]+)";/;
const INTERFACE = /^export interface (\w+) \{/;
const ALIAS = /^export type (\w+) = ([^;]+);/;
const FIELD = /^ {4}(?:readonly )?"?([\w$-]+)"?(\?)?: (.+)$/;

/** Throws SyntaxError, naming the line, where the text is not of the regular form. */
export function parseDts(text: string): DtsModule {
  const interfaces = new Map<string, DtsInterface>();
  const aliases = new Map<string, string>();
  const imports = new Map<string, string>();
  const lines = text.split('\n');
  let comment: string[] = [];
  let open: { name: string; description: string; fields: DtsField[] } | undefined;
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? '';
    const trimmed = line.trim();
    if (trimmed === '') continue;
    if (trimmed.startsWith('/**')) {
      comment = [];
      for (let at = index; ; at++) {
        const piece = lines[at];
        if (piece === undefined) throw new SyntaxError(`line ${index + 1}: comment without an end`);
        comment.push(piece);
        index = at;
        if (piece.trimEnd().endsWith('*/')) break;
      }
      continue;
    }
    if (open !== undefined) {
      if (trimmed === '}') {
        interfaces.set(open.name, open);
        open = undefined;
        continue;
      }
      const field = FIELD.exec(line);
      if (field === null) throw new SyntaxError(`line ${index + 1}: not a field: ${trimmed}`);
      let type = (field[3] ?? '').trim();
      if (type === '{') {
        const inner = (lines[index + 1] ?? '').trim();
        type = `{ ${inner} }`;
        index += 2;
      }
      open.fields.push({
        name: field[1] ?? '',
        optional: field[2] === '?',
        type: type.replace(/;$/, ''),
        description: words(comment),
      });
      comment = [];
      continue;
    }
    const start = INTERFACE.exec(line);
    const alias = ALIAS.exec(line);
    const imported = IMPORT.exec(line);
    if (start !== null) open = { name: start[1] ?? '', description: words(comment), fields: [] };
    else if (alias !== null) aliases.set(alias[1] ?? '', alias[2] ?? '');
    else if (imported !== null)
      for (const name of (imported[1] ?? '').split(',')) imports.set(name.trim(), imported[2] ?? '');
    else throw new SyntaxError(`line ${index + 1}: neither an interface nor a type: ${trimmed}`);
    comment = [];
  }
  return { interfaces, aliases, imports };
}

function words(comment: readonly string[]): string {
  return comment
    .map((line) => line.trim().replace(/^\/\*\*\s?|^\*\s?|\s*\*\/$/g, ''))
    .join('\n')
    .replace(/\*\/$/, '')
    .trim();
}
