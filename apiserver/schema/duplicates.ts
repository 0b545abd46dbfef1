// Finds fields that a JSON text names twice in one object; parsing forgets them. Reads text that is known to be valid
// JSON and never judges it.

/** Paths in order of appearance: "spec.containers[0].image". A field named three times is reported twice. */
export function duplicateFields(text: string): string[] {
  return new Scanner(text).run();
}

class Scanner {
  private at = 0;
  private readonly text: string;
  private readonly found: string[] = [];

  constructor(text: string) {
    this.text = text;
  }

  run(): string[] {
    this.value('');
    return this.found;
  }

  private space(): void {
    while (/\s/.test(this.text[this.at] ?? '')) this.at++;
  }

  private value(path: string): void {
    this.space();
    const start = this.text[this.at];
    if (start === '{') this.object(path);
    else if (start === '[') this.array(path);
    else if (start === '"') this.string();
    else while (this.at < this.text.length && !/[\s,\]}]/.test(this.text[this.at] ?? '')) this.at++;
  }

  private object(path: string): void {
    const seen = new Set<string>();
    this.at++;
    for (;;) {
      this.space();
      if (this.at >= this.text.length) return;
      if (this.text[this.at] === '}') break;
      if (this.text[this.at] === ',') {
        this.at++;
        continue;
      }
      if (this.text[this.at] !== '"') return;
      const name = this.string();
      const field = path === '' ? name : `${path}.${name}`;
      if (seen.has(name)) this.found.push(field);
      seen.add(name);
      this.space();
      this.at++;
      this.value(field);
    }
    this.at++;
  }

  private array(path: string): void {
    this.at++;
    for (let index = 0; ; ) {
      this.space();
      if (this.at >= this.text.length) return;
      if (this.text[this.at] === ']') break;
      if (this.text[this.at] === ',') {
        this.at++;
        index++;
        continue;
      }
      this.value(`${path}[${index}]`);
    }
    this.at++;
  }

  /** The text of the string that starts here; leaves the position behind its end. */
  private string(): string {
    const start = this.at;
    this.at++;
    while (this.at < this.text.length && this.text[this.at] !== '"') this.at += this.text[this.at] === '\\' ? 2 : 1;
    this.at++;
    return String(JSON.parse(this.text.slice(start, this.at)));
  }
}
