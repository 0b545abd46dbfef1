// A command line of crictl, read with the rules of Go's flag package that crictl follows: `--name value`, `--name=value`,
// one dash as good as two, a boolean without a value or with `=true` and `=false`, several short booleans in one word
// (`-it`), and the end of the flags at `--`. Pure.

import { UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { getOwn } from '../../lib/own-property.ts';

export type FlagKind = 'bool' | 'text' | 'int' | 'duration' | 'list';

export interface FlagSpec {
  readonly name: string;
  readonly kind: FlagKind;
  readonly usage: string;
  /** "o" for -o; crictl has some of two letters. */
  readonly aliases?: readonly string[];
  /** Environment variable that sets the flag where the command line does not. */
  readonly env?: string;
  readonly preset?: string;
  /** The word for the value in the help; the kind's own by default. */
  readonly value?: string;
}

/** What cannot be read: crictl prints the help of the command with it. */
export class UsageError extends UserError {
  override name = 'UsageError';
}

type Value = boolean | string | number | readonly string[];

/** The flags of one command line. Every accessor throws TypeError for a flag that the command does not have. */
export class Flags {
  readonly #specs: ReadonlyMap<string, FlagSpec>;
  readonly #values: ReadonlyMap<string, Value>;

  constructor(specs: readonly FlagSpec[], values: ReadonlyMap<string, Value>) {
    this.#specs = new Map(specs.map((spec) => [spec.name, spec]));
    this.#values = values;
  }

  #get(name: string, ...kinds: readonly FlagKind[]): Value | undefined {
    const spec = this.#specs.get(name);
    if (spec === undefined || !kinds.includes(spec.kind))
      throw new TypeError(`no ${kinds.join(' or ')} flag --${name}`);
    return this.#values.get(name) ?? (spec.preset === undefined ? undefined : convert(spec, spec.preset));
  }

  /** On the command line or in the environment. */
  isSet(name: string): boolean {
    if (!this.#specs.has(name)) throw new TypeError(`no flag --${name}`);
    return this.#values.has(name);
  }

  bool(name: string): boolean {
    return this.#get(name, 'bool') === true;
  }

  /** "" when it was not given, as in Go. */
  text(name: string): string {
    const value = this.#get(name, 'text');
    return typeof value === 'string' ? value : '';
  }

  /** A whole number, or a duration in ms; 0 when it was not given. */
  number(name: string): number {
    const value = this.#get(name, 'int', 'duration');
    return typeof value === 'number' ? value : 0;
  }

  list(name: string): readonly string[] {
    const value = this.#get(name, 'list');
    return Array.isArray(value) ? value : [];
  }
}

export interface ParsedArguments {
  readonly flags: Flags;
  readonly args: readonly string[];
  /** -h or --help. */
  readonly help: boolean;
}

export interface ParseOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The first argument that is not a flag ends the flags: the rest is the command line of the container. */
  readonly flagsFirst: boolean;
}

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** Go's strconv.ParseBool. */
export function parseGoBool(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}

function convert(spec: FlagSpec, text: string): Value {
  const wrong = (): UsageError => new UsageError(`invalid value "${text}" for flag -${spec.name}`);
  if (spec.kind === 'list') return text.split(',');
  if (spec.kind === 'text') return text;
  const value = {
    bool: parseGoBool,
    int: (word: string) => (/^[+-]?\d+$/.test(word) && Number.isSafeInteger(Number(word)) ? Number(word) : undefined),
    duration: parseGoDuration,
  }[spec.kind](text);
  if (value === undefined) throw wrong();
  return value;
}

/** Throws UsageError for what the command does not know. */
export function parseArguments(
  specs: readonly FlagSpec[],
  words: readonly string[],
  options: ParseOptions,
): ParsedArguments {
  const byName = new Map(specs.flatMap((spec) => [spec.name, ...(spec.aliases ?? [])].map((name) => [name, spec])));
  const values = new Map<string, Value>();
  const args: string[] = [];
  let help = false;
  const set = (spec: FlagSpec, text: string): void => {
    const value = convert(spec, text);
    const before = values.get(spec.name);
    values.set(spec.name, Array.isArray(value) && Array.isArray(before) ? [...before, ...value] : value);
  };
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') {
      args.push(...rest);
      break;
    }
    if (!/^--?[^-=]/.test(word)) {
      args.push(word);
      if (!options.flagsFirst) continue;
      args.push(...rest);
      break;
    }
    const [, dashes = '', name = '', , inline] = /^(--?)([^=]+)(=([\s\S]*))?$/.exec(word) ?? [];
    const spec = byName.get(name);
    if (spec === undefined) {
      if (name === 'help' || name === 'h') help = true;
      else if (dashes === '-' && inline === undefined && name.length > 1) {
        const letters = splitLetters(name, byName);
        if (letters === undefined) throw new UsageError(`flag provided but not defined: -${name}`);
        rest.unshift(...letters);
      } else throw new UsageError(`flag provided but not defined: -${name}`);
      continue;
    }
    if (inline !== undefined) set(spec, inline);
    else if (spec.kind === 'bool') set(spec, 'true');
    else {
      const value = rest.shift();
      if (value === undefined) throw new UsageError(`flag needs an argument: -${name}`);
      set(spec, value);
    }
  }
  for (const spec of specs) {
    const text = spec.env === undefined ? undefined : getOwn(options.env, spec.env);
    if (!values.has(spec.name) && text !== undefined && text !== '') set(spec, text);
  }
  return { flags: new Flags(specs, values), args, help };
}

/** `-it` as `-i -t`: all letters are flags, and all but the last are booleans. */
function splitLetters(letters: string, byName: ReadonlyMap<string, FlagSpec>): string[] | undefined {
  const found = [...letters].map((letter) => byName.get(letter));
  if (found.includes(undefined)) return undefined;
  if (found.slice(0, -1).some((spec) => spec?.kind !== 'bool')) return undefined;
  return [...letters].map((letter) => `-${letter}`);
}

/** `key=value` each, as for --label. Throws UsageError for anything else. */
export function parsePairs(pairs: readonly string[]): Record<string, string> {
  const entries = pairs.map((pair) => {
    const parts = pair.split('=');
    if (parts.length !== 2) throw new UserError(`incorrectly specified label: ${pair}`);
    return [parts[0], parts[1]] as const;
  });
  return Object.fromEntries(entries);
}
