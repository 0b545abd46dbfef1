// Finds fields that a JSON text names twice in one object; JSON.parse drops them. Puts them in order with unknown ones. Reads text that is already known to be valid
// JSON within the limits of a body.

/** As many different ones as the real server reports. */
export const MAX_STRICT_ERRORS = 100;
/** Longer names are cut in paths: a path is only a hint, and a name may have megabytes. */
const MAX_NAME = 256;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Below it stand the blanks that JSON allows, and nothing else outside strings. */
const SPACE = 0x20;

/** "spec.containers" and "name" → "spec.containers.name" */
export function fieldPath(parent: string, name: string): string {
  const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
  return parent === '' ? short : `${parent}.${short}`;
}

/** Paths in order of appearance, each once: "spec.containers[0].image". */
export function duplicateFields(text: string): string[] {
  const found = new Set<string>();
  new Scanner(text, (path, again) => {
    if (again && found.size < MAX_STRICT_ERRORS) found.add(path);
  }).run();
  return [...found];
}

/**
 * What a strict decoder reports, in order of appearance and each once: fields that are `unknown`, by their paths, and known
 * ones that stand twice. What is below an unknown field is not read.
 */
export function strictErrors(unknown: ReadonlySet<string>, text: string | undefined): string[] {
  const duplicates = text === undefined ? [] : duplicateFields(text);
  if (unknown.size === 0) return duplicates.map(duplicateField);
  if (text === undefined || duplicates.length === 0) return Array.from(unknown, unknownField);
  const errors = new Set<string>();
  let skipped: string | undefined;
  new Scanner(text, (path, again) => {
    if (skipped !== undefined && (path.startsWith(`${skipped}.`) || path.startsWith(`${skipped}[`))) return;
    if (errors.size >= MAX_STRICT_ERRORS) return;
    if (unknown.has(path)) {
      skipped = path;
      errors.add(unknownField(path));
    } else if (again) errors.add(duplicateField(path));
  }).run();
  return [...errors];
}

function unknownField(path: string): string {
  return `unknown field ${JSON.stringify(path)}`;
}

function duplicateField(path: string): string {
  return `duplicate field ${JSON.stringify(path)}`;
}

class Scanner {
  private at = 0;
  private readonly text: string;
  private readonly visit: (path: string, again: boolean) => void;

  /** `visit` gets each field, and whether its object has had one of that name before. */
  constructor(text: string, visit: (path: string, again: boolean) => void) {
    this.text = text;
    this.visit = visit;
  }

  run(): void {
    this.value('');
  }

  /** The code of the next character that is no blank; NaN at the end. */
  private next(): number {
    while (this.text.charCodeAt(this.at) <= SPACE) this.at++;
    return this.text.charCodeAt(this.at);
  }

  private value(path: string): void {
    const start = this.next();
    if (start === OPEN_OBJECT) this.object(path);
    else if (start === OPEN_LIST) this.array(path);
    else if (start === QUOTE) this.skipString();
    else this.skipWord();
  }

  /** A number, true, false or null. */
  private skipWord(): void {
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code <= SPACE || code === COMMA || code === CLOSE_LIST || code === CLOSE_OBJECT) return;
    }
  }

  private object(path: string): void {
    const seen = new Set<string>();
    this.at++;
    for (;;) {
      const code = this.next();
      if (code === COMMA) {
        this.at++;
        continue;
      }
      if (code !== QUOTE) break;
      const start = this.at;
      this.skipString();
      const name = String(JSON.parse(this.text.slice(start, this.at)));
      const below = fieldPath(path, name);
      this.visit(below, seen.has(name));
      seen.add(name);
      this.next();
      // Behind the colon.
      this.at++;
      this.value(below);
    }
    this.at++;
  }

  private array(path: string): void {
    this.at++;
    for (let index = 0; this.at < this.text.length; ) {
      const code = this.next();
      if (code === CLOSE_LIST) break;
      if (code === COMMA) {
        this.at++;
        index++;
      } else this.value(`${path}[${index}]`);
    }
    this.at++;
  }

  /** Leaves the position behind the string that starts here. */
  private skipString(): void {
    for (this.at++; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code === BACKSLASH) this.at++;
      else if (code === QUOTE) break;
    }
    this.at++;
  }
}
