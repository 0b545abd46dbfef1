// The drills of docs/drills*.md as data: which commands a page shows, what it says that one sees, and whether what was
// printed is that. Pure: texts in, facts out; test/e2e/drills runs them.
//
// A drill is a section: it begins with a heading `## ` and ends with the next one. In it:
//
//   ```sh drill          commands, run by bash; all of a drill in one shell, from the first to the last
//   ```sh drill alone    (its first block) no other drill runs at the same time
//   ```text              what the block before it prints, from the first line to the last
//   ```text any order    the same lines, in any order
//
// In what is shown, `…` stands for anything in a line, and for any number of lines where it is a line's only character. Spaces
// are those of columns: any number of them is as good as one, and none matter at the end of a line. A block without a ```text
// has to succeed, each of its commands, and may print what it likes.

export interface Shown {
  readonly lines: readonly string[];
  readonly anyOrder: boolean;
}

export interface Step {
  /** Of the fence, from 1. */
  readonly line: number;
  readonly script: string;
  readonly shown?: Shown;
}

export interface Drill {
  readonly page: string;
  readonly title: string;
  /** The title as a name of an object: "C1: a pod" → "c1-a-pod". */
  readonly slug: string;
  readonly alone: boolean;
  readonly steps: readonly Step[];
}

const ANYTHING = '…';

/** The drills of one page. Throws, with the line, where the page is not written as the head of this file says. */
export function drillsOf(page: string, text: string): readonly Drill[] {
  const drills: (Omit<Drill, 'steps' | 'alone'> & { alone: boolean; readonly steps: Step[] })[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const title = /^## (.+)$/.exec(lines[at] ?? '')?.[1];
    if (title !== undefined) drills.push({ page, title, slug: slugOf(title), alone: false, steps: [] });
    const info = /^```(.*)$/.exec(lines[at] ?? '')?.[1];
    if (info === undefined) continue;
    const where = `${page}:${at + 1}`;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`${where}: the block does not end`);
    const body = lines.slice(at + 1, end);
    const drill = drills.at(-1);
    if (info.startsWith('sh drill')) {
      if (drill === undefined) throw new Error(`${where}: a block of a drill before the first heading`);
      if (info === 'sh drill alone' && drill.steps.length === 0) drill.alone = true;
      else if (info !== 'sh drill')
        throw new Error(`${where}: "${info}" is neither "sh drill" nor a first "sh drill alone"`);
      drill.steps.push({ line: at + 1, script: body.join('\n') });
    } else if (drill !== undefined && (info === 'text' || info === 'text any order')) {
      const step = drill.steps.pop();
      if (step === undefined || step.shown !== undefined) throw new Error(`${where}: no block of commands prints this`);
      drill.steps.push({ ...step, shown: { lines: body, anyOrder: info === 'text any order' } });
    }
    at = end;
  }
  return drills.filter(({ steps }) => steps.length > 0);
}

function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 30)
    .replace(/-$/, '');
}

const plain = (line: string): string => line.trimEnd().replace(/\s+/g, ' ');

/** Whether one printed line is a line that a page shows. */
export function lineMatches(shown: string, printed: string): boolean {
  const parts = plain(shown).split(ANYTHING);
  const pattern = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*');
  return new RegExp(`^${pattern}$`).test(plain(printed));
}

/** Undefined when what was printed is what is shown; else one line about the difference. */
export function difference(shown: Shown, printed: string): string | undefined {
  const lines = printed.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return shown.anyOrder ? unordered(shown.lines, lines) : ordered(shown.lines, lines);
}

function ordered(shown: readonly string[], printed: readonly string[]): string | undefined {
  // reach[n]: the shown lines so far are what the first n printed ones are.
  let reach = new Set([0]);
  for (const line of shown) {
    const next = new Set<number>();
    if (line.trim() === ANYTHING) {
      const least = Math.min(...reach);
      for (let at = least; at <= printed.length; at++) next.add(at);
    } else {
      for (const at of reach) if (at < printed.length && lineMatches(line, printed[at] ?? '')) next.add(at + 1);
    }
    if (next.size === 0) return `where "${line}" is shown, there is ${quoted(printed[Math.min(...reach)])}`;
    reach = next;
  }
  if (reach.has(printed.length)) return undefined;
  return `after what is shown, there is ${quoted(printed[Math.max(...reach)])}`;
}

function unordered(shown: readonly string[], printed: readonly string[]): string | undefined {
  const wanted = shown.filter((line) => line.trim() !== ANYTHING);
  const more = wanted.length < shown.length;
  /** Printed line → the shown one that it is. */
  const taken = new Map<number, number>();
  const place = (want: number, tried: Set<number>): boolean =>
    printed.some((line, at) => {
      if (tried.has(at) || !lineMatches(wanted[want] ?? '', line)) return false;
      tried.add(at);
      const other = taken.get(at);
      if (other !== undefined && !place(other, tried)) return false;
      taken.set(at, want);
      return true;
    });
  const missing = wanted.find((_, want) => !place(want, new Set()));
  if (missing !== undefined) return `no line is "${missing}"`;
  const left = printed.find((_, at) => !taken.has(at));
  return more || left === undefined ? undefined : `beside what is shown, there is ${quoted(left)}`;
}

function quoted(line: string | undefined): string {
  return line === undefined ? 'nothing' : `"${line}"`;
}
