// The commands of simulated containers: a documented subset of the shell, so that the same manifest runs on a simulated node
// and, with busybox, on a real one. Text in, tree out; what is not in the subset is refused by name. Pure.

export type Redirect = { readonly append: boolean; readonly to: string };

export type Command =
  | { readonly kind: 'simple'; readonly words: readonly string[]; readonly redirect: Redirect | undefined }
  | { readonly kind: 'memory'; readonly bytes: number }
  | { readonly kind: 'and' | 'or'; readonly left: Command; readonly right: Command }
  | { readonly kind: 'not' | 'background'; readonly of: Command }
  | { readonly kind: 'list'; readonly commands: readonly Command[] }
  | { readonly kind: 'loop'; readonly until: boolean; readonly condition: Command; readonly body: Command }
  | {
      readonly kind: 'if';
      readonly condition: Command;
      readonly then: Command;
      readonly otherwise: Command | undefined;
    };

/** Not in the subset. */
export class ShellError extends Error {
  override name = 'ShellError';
}

type Token = { readonly kind: 'word' | 'sign'; readonly text: string };

const SIGN = /&&|\|\||>>|[;&|><\n]/y;
/** The one command substitution: it fills memory, with busybox too. */
const MEMORY = /^\w+=\$\(head -c (\d+)([km]?) \/dev\/zero \| tr '\\0' x\)/;
/** Those that busybox's head knows; with another one it writes nothing. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1024],
  ['m', 1024 ** 2],
]);

/** Single quotes keep everything; a mark before "$" keeps it from being replaced later. */
const LITERAL_DOLLAR = '\u0001';

function wordAt(text: string, from: number): { readonly word: string; readonly end: number } {
  let word = '';
  let place = from;
  while (place < text.length && !/[\s;&|><]/.test(text[place] ?? '')) {
    const character = text[place] ?? '';
    if (character === "'") {
      const end = text.indexOf("'", place + 1);
      if (end < 0) throw new ShellError('a quote has no end');
      word += text.slice(place + 1, end).replaceAll('$', LITERAL_DOLLAR);
      place = end + 1;
    } else if (character === '"') {
      const [whole] = /^"(?:[^"\\]|\\.)*"/s.exec(text.slice(place)) ?? [];
      if (whole === undefined) throw new ShellError('a quote has no end');
      refuseSubstitution(whole);
      word += whole
        .slice(1, -1)
        .replace(/\\\$/g, LITERAL_DOLLAR)
        .replace(/\\(["\\])/g, '$1');
      place += whole.length;
    } else if (character === '\\') {
      word += text[place + 1] ?? '';
      place += 2;
    } else {
      refuseSubstitution(text.slice(place, place + 2));
      word += character;
      place++;
    }
  }
  return { word, end: place };
}

function refuseSubstitution(text: string): void {
  if (/\$\(|`/.test(text)) throw new ShellError('command substitution is not simulated');
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let place = 0;
  while (place < text.length) {
    const character = text[place] ?? '';
    if (character === ' ' || character === '\t') {
      place++;
      continue;
    }
    if (character === '#') {
      const end = text.indexOf('\n', place);
      place = end < 0 ? text.length : end;
      continue;
    }
    const [memory] = MEMORY.exec(text.slice(place)) ?? [];
    SIGN.lastIndex = place;
    const sign = SIGN.exec(text)?.[0];
    if (memory !== undefined) {
      tokens.push({ kind: 'word', text: memory });
      place += memory.length;
    } else if (sign !== undefined) {
      tokens.push({ kind: 'sign', text: sign === '\n' ? ';' : sign });
      place += sign.length;
    } else {
      const { word, end } = wordAt(text, place);
      tokens.push({ kind: 'word', text: word });
      place = end;
    }
  }
  return tokens;
}

const CLOSING: ReadonlySet<string> = new Set(['do', 'done', 'then', 'else', 'fi', '}']);
const UNSUPPORTED: ReadonlySet<string> = new Set(['for', 'case', 'function', 'elif', '(', 'select']);

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  #is(text: string): boolean {
    return this.#tokens[this.#next]?.text === text;
  }

  #accept(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#accept(text))
      throw new ShellError(`"${text}" is expected, not "${this.#tokens[this.#next]?.text ?? 'the end'}"`);
  }

  whole(): Command {
    const list = this.#list();
    const left = this.#tokens[this.#next];
    if (left !== undefined) throw new ShellError(`"${left.text}" has no meaning here`);
    return list;
  }

  #list(): Command {
    const commands: Command[] = [];
    for (;;) {
      while (this.#accept(';'));
      const token = this.#tokens[this.#next];
      if (token === undefined || (token.kind === 'word' && CLOSING.has(token.text))) break;
      const command = this.#andOr();
      if (this.#accept('&')) commands.push({ kind: 'background', of: command });
      else {
        commands.push(command);
        if (!this.#is(';')) break;
      }
    }
    return { kind: 'list', commands };
  }

  #andOr(): Command {
    let left = this.#command();
    for (;;) {
      if (this.#accept('&&')) left = { kind: 'and', left, right: this.#command() };
      else if (this.#accept('||')) left = { kind: 'or', left, right: this.#command() };
      else return left;
    }
  }

  #command(): Command {
    if (this.#accept('!')) return { kind: 'not', of: this.#command() };
    if (this.#is('while') || this.#is('until')) return this.#loop();
    if (this.#accept('if')) return this.#if();
    if (this.#accept('{')) {
      const inner = this.#list();
      this.#expect('}');
      return inner;
    }
    return this.#simple();
  }

  #loop(): Command {
    const until = this.#is('until');
    this.#next++;
    const condition = this.#list();
    this.#expect('do');
    const body = this.#list();
    this.#expect('done');
    return { kind: 'loop', until, condition, body };
  }

  #if(): Command {
    const condition = this.#list();
    this.#expect('then');
    const then = this.#list();
    const otherwise = this.#accept('else') ? this.#list() : undefined;
    this.#expect('fi');
    return { kind: 'if', condition, then, otherwise };
  }

  #simple(): Command {
    const words: string[] = [];
    let redirect: Redirect | undefined;
    for (let token = this.#tokens[this.#next]; token !== undefined; token = this.#tokens[this.#next]) {
      const { kind, text } = token;
      if (kind === 'word') {
        words.push(text);
        this.#next++;
      } else if (text === '>' || text === '>>') {
        const to = this.#tokens[++this.#next];
        if (to?.kind !== 'word') throw new ShellError('a redirection names no file');
        redirect = { append: text === '>>', to: to.text };
        this.#next++;
      } else if (text === '|' || text === '<') throw new ShellError(`"${text}" is not simulated`);
      else break;
    }
    const [first] = words;
    if (first === undefined) throw new ShellError('a command is missing');
    const memory = MEMORY.exec(first);
    if (memory !== null) return { kind: 'memory', bytes: Number(memory[1]) * (UNITS.get(memory[2] ?? '') ?? 1) };
    if (UNSUPPORTED.has(first) || first.startsWith('(')) throw new ShellError(`"${first}" is not simulated`);
    if (/^\w+=/.test(first)) throw new ShellError(`the assignment ${first} is not simulated`);
    if (!SIMPLE_COMMANDS.has(first)) {
      throw new ShellError(
        `the command ${first} is not simulated; there are ${[...SIMPLE_COMMANDS].sort().join(', ')}`,
      );
    }
    checkArguments(words, redirect);
    return { kind: 'simple', words, redirect };
  }
}

/** What simple commands there are; run.ts does them. */
export const SIMPLE_COMMANDS: ReadonlySet<string> = new Set([
  ':',
  '[',
  'cat',
  'echo',
  'exit',
  'false',
  'getent',
  'grep',
  'head',
  'httpd',
  'rm',
  'sleep',
  'test',
  'touch',
  'trap',
  'true',
  'wait',
]);

/** "500m" of `head -c` in bytes; undefined where it is none. */
export function sizeOf(text: string): number | undefined {
  const [whole, digits, unit] = /^(\d+)([km]?)$/.exec(text) ?? [];
  return whole === undefined ? undefined : Number(digits) * (UNITS.get(unit ?? '') ?? 1);
}

function checkArguments(words: readonly string[], redirect?: Redirect): void {
  const [name = '', first = '', second = ''] = words;
  const refuse = (usage: string): never => {
    throw new ShellError(`${words.join(' ')} is not simulated; ${usage}`);
  };
  if (name === 'sleep' && !/^(\d+(\.\d+)?[smhd]?|infinity|\$\w+)$/.test(first))
    refuse('sleep needs seconds, or infinity');
  if (name === 'exit' && first !== '' && !/^\d+$|^\$/.test(first)) refuse('exit needs a number');
  if (
    name === 'head' &&
    (first !== '-c' || sizeOf(second) === undefined || words[3] !== '/dev/zero' || redirect === undefined)
  ) {
    refuse('head is used as head -c SIZE /dev/zero > FILE, with a size such as 100m');
  }
  if (name === 'getent' && (first !== 'ahosts' || words.length !== 3)) refuse('getent is used as getent ahosts NAME');
  if (name === 'grep' && (first !== '-q' || words.length !== 4)) refuse('grep is used as grep -q TEXT FILE');
  if ((name === 'test' || name === '[') && !['-f', '-e', '!'].includes(first) && !['=', '!='].includes(second)) {
    refuse('test is used as test -f FILE or test A = B');
  }
  if (name === 'trap' && words[2] !== 'TERM') refuse("trap is used as trap 'commands' TERM");
  if (name === 'trap') parseShell(first);
}

/** Throws ShellError. */
export function parseShell(text: string): Command {
  return new Parser(text).whole();
}

/**
 * The command of a container, a probe or a hook: `sh -c SCRIPT`, or one command. Throws ShellError.
 */
export function parseCommand(argv: readonly string[]): Command {
  const [program = '', option, script = ''] = argv;
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (name === 'sh' || name === 'ash' || name === 'bash') {
    if (option === undefined) return { kind: 'list', commands: [] };
    if (option !== '-c') throw new ShellError(`${name} ${option} is not simulated, ${name} -c is`);
    return parseShell(script);
  }
  if (!SIMPLE_COMMANDS.has(name)) {
    throw new ShellError(
      `the command ${name} is not simulated; there are sh, ${[...SIMPLE_COMMANDS].sort().join(', ')}`,
    );
  }
  const words = [name, ...argv.slice(1).map((word) => word.replaceAll('$', LITERAL_DOLLAR))];
  checkArguments(words);
  return { kind: 'simple', words, redirect: undefined };
}

/** "$NAME" and "${NAME}" by their values. */
export function expandWord(word: string, variable: (name: string) => string): string {
  return word
    .replace(/\$(?:\{(\w+)\}|(\w+|\?))/g, (_, braced: string | undefined, plain: string | undefined) =>
      variable(braced ?? plain ?? ''),
    )
    .replaceAll(LITERAL_DOLLAR, '$');
}
