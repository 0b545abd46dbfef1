// Finds fields that a JSON text names twice in one object; JSON.parse drops them. Reads text that is already known to be valid
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
  return new Scanner(text).run();
}

class Scanner {
  private at = 0;
  private readonly text: string;
  private readonly found = new Set<string>();

  constructor(text: string) {
    this.text = text;
  }

  run(): string[] {
    this.value('');
    return [...this.found];
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
      if (seen.has(name) && this.found.size < MAX_STRICT_ERRORS) this.found.add(fieldPath(path, name));
      seen.add(name);
      this.next();
      // Behind the colon.
      this.at++;
      this.value(fieldPath(path, name));
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
