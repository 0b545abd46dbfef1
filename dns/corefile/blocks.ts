// A Corefile as blocks, directives and words, with the line of each: its grammar, and nothing of what the words mean. Pure.

/** What is wrong, and where: words as CoreDNS prints them. */
export class CorefileError extends Error {
  override name = 'CorefileError';
  constructor(line: number, what: string) {
    super(`Corefile:${line} - Error during parsing: ${what}`);
  }
}

/** One line inside a directive's braces. */
export interface Line {
  readonly line: number;
  readonly name: string;
  readonly args: readonly string[];
}

export interface Directive extends Line {
  /** What is in its braces. */
  readonly block: readonly Line[];
}

export interface ServerBlock {
  readonly line: number;
  /** What is before the brace: zones with ports. */
  readonly keys: readonly string[];
  readonly directives: readonly Directive[];
}

interface Word {
  readonly line: number;
  readonly text: string;
  /** In quotes: a brace is one no more. */
  readonly quoted: boolean;
}

const QUOTED = /^"((?:[^"\\]|\\.)*)"/s;

/** The words of each line that has some. Comments begin with # at the start of a word. */
function readWords(text: string): readonly (readonly Word[])[] {
  const lines: Word[][] = [];
  let words: Word[] = [];
  let line = 1;
  for (let rest = text; rest !== ''; ) {
    if (rest.startsWith('\n')) {
      if (words.length > 0) lines.push(words);
      words = [];
      line++;
      rest = rest.slice(1);
      continue;
    }
    const skipped = /^(?:[^\S\n]+|#[^\n]*)/.exec(rest)?.[0];
    if (skipped !== undefined) {
      rest = rest.slice(skipped.length);
      continue;
    }
    if (rest.startsWith('"')) {
      const [whole, inner] = QUOTED.exec(rest) ?? [];
      if (whole === undefined || inner === undefined) throw new CorefileError(line, 'a quote is not closed');
      words.push({ line, text: inner.replaceAll('\\"', '"'), quoted: true });
      line += whole.split('\n').length - 1;
      rest = rest.slice(whole.length);
      continue;
    }
    const word = /^\S+/.exec(rest)?.[0] ?? '';
    words.push({ line, text: word, quoted: false });
    rest = rest.slice(word.length);
  }
  if (words.length > 0) lines.push(words);
  return lines;
}

class Reader {
  readonly #lines: readonly (readonly Word[])[];
  #next = 0;

  constructor(lines: readonly (readonly Word[])[]) {
    this.#lines = lines;
  }

  take(): readonly Word[] | undefined {
    return this.#lines[this.#next++];
  }

  /** The lines up to the closing brace. Throws CorefileError where there is none. */
  untilBrace(opened: number): readonly (readonly Word[])[] {
    const found: (readonly Word[])[] = [];
    for (;;) {
      const words = this.take();
      if (words === undefined) throw new CorefileError(opened, 'Unexpected EOF: a brace is not closed');
      if (isBrace(words[0], '}')) {
        if (words.length > 1) throw new CorefileError(words[0]?.line ?? opened, 'nothing can follow a closing brace');
        return found;
      }
      found.push(words);
      if (!isBrace(words.at(-1), '{')) continue;
      // A block inside: its lines, and its brace.
      found.push(...this.untilBrace(words[0]?.line ?? opened), CLOSED);
    }
  }
}

const CLOSED: readonly Word[] = [{ line: 0, text: '}', quoted: false }];

function isBrace(word: Word | undefined, brace: '{' | '}'): boolean {
  return word !== undefined && !word.quoted && word.text === brace;
}

function asLine(words: readonly Word[]): Line {
  const [first, ...rest] = words;
  const stray = words.find((word) => isBrace(word, '{') || isBrace(word, '}'));
  if (stray !== undefined) throw new CorefileError(stray.line || (first?.line ?? 0), `a brace is out of place`);
  const open = words.find(({ text, quoted }) => !quoted && /\{[$%]/.test(text));
  if (open !== undefined) throw new CorefileError(open.line, `environment variables (${open.text}) are not there`);
  return { line: first?.line ?? 0, name: first?.text ?? '', args: rest.map(({ text }) => text) };
}

function readDirectives(lines: readonly (readonly Word[])[]): readonly Directive[] {
  const reader = new Reader(lines);
  const found: Directive[] = [];
  for (let words = reader.take(); words !== undefined; words = reader.take()) {
    if (!isBrace(words.at(-1), '{')) {
      found.push({ ...asLine(words), block: [] });
      continue;
    }
    const head = asLine(words.slice(0, -1));
    found.push({ ...head, block: reader.untilBrace(head.line).map(asLine) });
  }
  return found;
}

/** Throws CorefileError. */
export function readBlocks(text: string): readonly ServerBlock[] {
  const reader = new Reader(readWords(text));
  const blocks: ServerBlock[] = [];
  let keys: Line[] = [];
  for (let words = reader.take(); words !== undefined; words = reader.take()) {
    const opens = isBrace(words.at(-1), '{');
    const own = opens ? words.slice(0, -1) : words;
    if (own.length > 0) keys.push(asLine(own));
    const line = words[0]?.line ?? 0;
    if (!opens) {
      // Keys may go on in the next line, after a comma.
      if (words.at(-1)?.text.endsWith(',') === true) continue;
      throw new CorefileError(line, `a server block needs braces, and "${words.at(-1)?.text}" is followed by none`);
    }
    if (keys.length === 0) throw new CorefileError(line, 'a server block needs a zone before its brace');
    const names = keys.flatMap(({ name, args }) => [name, ...args]).flatMap((key) => key.split(','));
    const directives = readDirectives(reader.untilBrace(line));
    blocks.push({ line, keys: names.filter((key) => key !== ''), directives });
    keys = [];
  }
  const [left] = keys;
  if (left !== undefined) throw new CorefileError(left.line, 'Unexpected EOF: a server block needs braces');
  return blocks;
}
