// Go's text/template as far as people write it for crictl, from text to a tree: fields, variables, literals, pipelines,
// if, range, with, else, trim markers and comments. What is outside of that is refused by its name. Pure.

import { UserError } from '../../lib/errors.ts';

export class TemplateError extends UserError {
  override name = 'TemplateError';
}

export type Operand =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  /** `.a.b`, `$.a`, `$x.a`: `root` is "." or the variable's name. */
  | { readonly kind: 'path'; readonly root: string; readonly fields: readonly string[] }
  | { readonly kind: 'group'; readonly pipe: Pipeline; readonly fields: readonly string[] };

export interface Call {
  /** Undefined for an operand that stands alone. */
  readonly func: string | undefined;
  readonly args: readonly Operand[];
}

export interface Pipeline {
  /** `$i, $e :=` has two. */
  readonly declares: readonly string[];
  /** `=` instead of `:=`. */
  readonly assigns: boolean;
  readonly calls: readonly Call[];
}

export type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly pipe: Pipeline }
  | {
      readonly kind: 'if' | 'range' | 'with';
      readonly pipe: Pipeline;
      readonly body: readonly Node[];
      readonly otherwise: readonly Node[];
    };

/** What Go's templates have and this one does not. */
const REFUSED_WORDS = new Set(['define', 'template', 'block', 'break', 'continue']);
const REFUSED_FUNCTIONS = new Set(['call', 'html', 'js', 'urlquery', 'slice']);

export const FUNCTIONS: ReadonlySet<string> = new Set([
  'and',
  'or',
  'not',
  'eq',
  'ne',
  'lt',
  'le',
  'gt',
  'ge',
  'index',
  'len',
  'print',
  'printf',
  'println',
  'json',
  'lower',
  'upper',
  'title',
]);

interface Piece {
  readonly action: boolean;
  readonly text: string;
}

/** Text and actions in turn, with `{{-` and `-}}` done. */
function pieces(source: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  let trimNext = false;
  while (at <= source.length) {
    const open = source.indexOf('{{', at);
    let text = source.slice(at, open < 0 ? undefined : open);
    if (trimNext) text = text.trimStart();
    if (open < 0) {
      found.push({ action: false, text });
      break;
    }
    const trimsBefore = /^\{\{-\s/.test(source.slice(open, open + 4));
    found.push({ action: false, text: trimsBefore ? text.trimEnd() : text });
    const from = open + (trimsBefore ? 3 : 2);
    const close = actionEnd(source, from);
    const trimsAfter = /\s-$/.test(source.slice(from, close));
    found.push({ action: true, text: source.slice(from, trimsAfter ? close - 1 : close).trim() });
    trimNext = trimsAfter;
    at = close + 2;
  }
  return found;
}

/** Where the action that begins at `from` has its `}}`; those in strings do not count. */
function actionEnd(source: string, from: number): number {
  const token = /"(?:\\.|[^"\\])*"|`[^`]*`|\/\*[\s\S]*?\*\/|\}\}/g;
  token.lastIndex = from;
  for (let match = token.exec(source); match !== null; match = token.exec(source)) {
    if (match[0] === '}}') return match.index;
  }
  throw new TemplateError(`unclosed action: {{${source.slice(from, from + 20)}`);
}

const TOKEN =
  /\s*(?:("(?:\\.|[^"\\])*")|(`[^`]*`)|(:=|[=|(),])|(-?\d+(?:\.\d+)?)|(\$?(?:\w+)?(?:\.\w+)+|\$\w*|\.)|([A-Za-z_]\w*))/y;

interface Token {
  readonly kind: 'string' | 'sign' | 'number' | 'path' | 'word';
  readonly text: string;
  /** Nothing stands between it and the token before. */
  readonly joined: boolean;
}

function tokens(action: string): Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < action.length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(action);
    if (match === null) throw new TemplateError(`unexpected "${action.slice(from).trim()}" in {{${action}}}`);
    const [whole, quoted, raw, sign, number, path, word] = match;
    const joined = from > 0 && !/^\s/.test(whole);
    if (quoted !== undefined) found.push({ kind: 'string', text: unquote(quoted), joined });
    else if (raw !== undefined) found.push({ kind: 'string', text: raw.slice(1, -1), joined });
    else if (sign !== undefined) found.push({ kind: 'sign', text: sign, joined });
    else if (number !== undefined) found.push({ kind: 'number', text: number, joined });
    else if (path !== undefined) found.push({ kind: 'path', text: path, joined });
    else found.push({ kind: 'word', text: word ?? '', joined });
  }
  return found;
}

function unquote(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch (error) {
    if (error instanceof SyntaxError) throw new TemplateError(`bad string ${quoted}`);
    throw error;
  }
}

const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['nil', null],
]);

class ActionParser {
  readonly #action: string;
  readonly #tokens: Token[];

  constructor(action: string) {
    this.#action = action;
    this.#tokens = tokens(action);
  }

  /** The keyword in front, when there is one of `words`. */
  take(...words: readonly string[]): string | undefined {
    const [first] = this.#tokens;
    if (first?.kind !== 'word' || !words.includes(first.text)) return undefined;
    this.#tokens.shift();
    return first.text;
  }

  pipeline(): Pipeline {
    const pipe = this.#pipeline();
    this.end();
    return pipe;
  }

  end(): void {
    const [left] = this.#tokens;
    if (left !== undefined) throw new TemplateError(`unexpected "${left.text}" in {{${this.#action}}}`);
  }

  #sign(text: string): boolean {
    if (this.#tokens[0]?.kind !== 'sign' || this.#tokens[0].text !== text) return false;
    this.#tokens.shift();
    return true;
  }

  #pipeline(): Pipeline {
    const declares: string[] = [];
    let assigns = false;
    const [first, second, third, fourth] = this.#tokens;
    const isName = (token: Token | undefined): boolean => token?.kind === 'path' && /^\$\w+$/.test(token.text);
    const isSet = (token: Token | undefined): boolean => token?.text === ':=' || token?.text === '=';
    const names = isName(first) && isSet(second) ? 1 : second?.text === ',' && isName(third) && isSet(fourth) ? 2 : 0;
    if (names > 0 && first !== undefined) {
      declares.push(first.text);
      if (names === 2 && third !== undefined) declares.push(third.text);
      const [set] = this.#tokens.splice(0, names * 2).slice(-1);
      assigns = set?.text === '=';
    }
    const calls = [this.#call()];
    while (this.#sign('|')) calls.push(this.#call());
    return { declares, assigns, calls };
  }

  #call(): Call {
    const [first] = this.#tokens;
    let func: string | undefined;
    if (first?.kind === 'word' && !CONSTANTS.has(first.text)) {
      if (REFUSED_FUNCTIONS.has(first.text)) throw new TemplateError(`the function ${first.text} is not supported`);
      if (!FUNCTIONS.has(first.text)) throw new TemplateError(`function "${first.text}" not defined`);
      func = first.text;
      this.#tokens.shift();
    }
    const args: Operand[] = [];
    for (let operand = this.#operand(); operand !== undefined; operand = this.#operand()) args.push(operand);
    if (func === undefined && args.length === 0) throw new TemplateError(`missing value in {{${this.#action}}}`);
    if (func === undefined && args.length > 1) {
      throw new TemplateError(`{{${this.#action}}}: a value is no function and takes no arguments`);
    }
    return { func, args };
  }

  #operand(): Operand | undefined {
    const [token] = this.#tokens;
    if (token === undefined) return undefined;
    if (token.kind === 'sign') {
      if (token.text !== '(') return undefined;
      this.#tokens.shift();
      const pipe = this.#pipeline();
      if (!this.#sign(')')) throw new TemplateError(`unclosed parenthesis in {{${this.#action}}}`);
      const [next] = this.#tokens;
      if (next?.kind !== 'path' || !next.joined || !/^\.\w/.test(next.text)) return { kind: 'group', pipe, fields: [] };
      this.#tokens.shift();
      return { kind: 'group', pipe, fields: next.text.slice(1).split('.') };
    }
    if (token.kind === 'word' && !CONSTANTS.has(token.text)) {
      if (!FUNCTIONS.has(token.text)) throw new TemplateError(`function "${token.text}" not defined`);
      this.#tokens.shift();
      return {
        kind: 'group',
        pipe: { declares: [], assigns: false, calls: [{ func: token.text, args: [] }] },
        fields: [],
      };
    }
    this.#tokens.shift();
    if (token.kind === 'string') return { kind: 'literal', value: token.text };
    if (token.kind === 'number') return { kind: 'literal', value: Number(token.text) };
    if (token.kind === 'word') return { kind: 'literal', value: CONSTANTS.get(token.text) ?? null };
    if (token.text === '.') return { kind: 'path', root: '.', fields: [] };
    const [root = '', ...fields] = token.text.split('.');
    return { kind: 'path', root: root === '' ? '.' : root, fields };
  }
}

/** Reads a template. Throws TemplateError with what is wrong, or not supported. */
export function parseTemplate(source: string): readonly Node[] {
  const left = pieces(source);
  const nodes = block(left, true);
  return nodes.body;
}

/** Nodes up to `{{end}}` or `{{else …}}`, which is handed back. */
function block(left: Piece[], top: boolean): { readonly body: readonly Node[]; readonly closed?: ActionParser } {
  const body: Node[] = [];
  for (let piece = left.shift(); piece !== undefined; piece = left.shift()) {
    if (!piece.action) {
      if (piece.text !== '') body.push({ kind: 'text', text: piece.text });
      continue;
    }
    if (/^\/\*[\s\S]*\*\/$/.test(piece.text)) continue;
    const action = new ActionParser(piece.text);
    const refused = action.take(...REFUSED_WORDS);
    if (refused !== undefined) throw new TemplateError(`{{${refused}}} is not supported`);
    const control = action.take('if', 'range', 'with', 'else', 'end');
    if (control === undefined) body.push({ kind: 'print', pipe: action.pipeline() });
    else if (control === 'else' || control === 'end') {
      if (top) throw new TemplateError(`unexpected {{${control}}}`);
      if (control === 'end') action.end();
      return control === 'end' ? { body } : { body, closed: action };
    } else if (control === 'if' || control === 'range' || control === 'with') body.push(branch(control, action, left));
  }
  if (!top) throw new TemplateError('unexpected end of the template: {{end}} is missing');
  return { body };
}

function branch(kind: 'if' | 'range' | 'with', action: ActionParser, left: Piece[]): Node {
  const pipe = action.pipeline();
  const { body, closed } = block(left, false);
  if (closed === undefined) return { kind, pipe, body, otherwise: [] };
  const chained = closed.take('if', 'with');
  if (chained === 'if' || chained === 'with') return { kind, pipe, body, otherwise: [branch(chained, closed, left)] };
  closed.end();
  const otherwise = block(left, false);
  if (otherwise.closed !== undefined) throw new TemplateError('expected end; found {{else}}');
  return { kind, pipe, body, otherwise: otherwise.body };
}
