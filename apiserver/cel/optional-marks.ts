// The mark of optional elements in literals, `[?x]` and `{?key: value}`, which the library's parser does not know. For parsing it
// is replaced by `!`, which binds tighter than anything to its right, and so stands where the element begins; afterwards
// that node is taken out again. Positions in the text stay as they are.

import { isNode, type Node, nodesOf } from './library.ts';

const STAND_IN = '!';
const IDENTIFIER = /[A-Za-z0-9_]/;

/** The index after the string or bytes literal that begins with the quote at `from`. */
function endOfText(text: string, from: number): number {
  const quote = text[from] ?? '';
  const mark = text.startsWith(quote.repeat(3), from) ? quote.repeat(3) : quote;
  const isRaw = /(?:^|[^A-Za-z0-9_])(?:[rR][bB]?|[bB][rR])$/.test(text.slice(Math.max(0, from - 3), from));
  let index = from + mark.length;
  while (index < text.length && !text.startsWith(mark, index)) index += text[index] === '\\' && !isRaw ? 2 : 1;
  return index + mark.length;
}

function endOfName(text: string, from: number): number {
  let index = from;
  while (index < text.length && IDENTIFIER.test(text[index] ?? '')) index++;
  return index;
}

function endOfComment(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

/** Where the marks are, by their index in the text. */
function marksOf(text: string): number[] {
  const marks: number[] = [];
  /** What is open: "[" and "{" of literals; "(" for the rest. */
  const open: string[] = [];
  let isOperand = false;
  let isElement = false;
  for (let index = 0; index < text.length; ) {
    const char = text[index] ?? '';
    if (char.trim() === '') {
      index++;
      continue;
    }
    if (text.startsWith('//', index)) {
      index = endOfComment(text, index);
      continue;
    }
    if (char === '?' && isElement) marks.push(index);
    isElement = false;
    if (char === '"' || char === "'") {
      index = endOfText(text, index);
      isOperand = true;
      continue;
    }
    if (IDENTIFIER.test(char)) {
      const end = endOfName(text, index);
      isOperand = text.slice(index, end) !== 'in';
      index = end;
      continue;
    }
    if (char === '[' || char === '{' || char === '(') {
      isElement = char !== '(' && !isOperand;
      open.push(isElement ? char : '(');
    } else if (char === ',') isElement = open.at(-1) === '[' || open.at(-1) === '{';
    const isEnd = char === ']' || char === '}' || char === ')';
    if (isEnd) open.pop();
    isOperand = isEnd;
    index++;
  }
  return marks;
}

/** The text for the library's parser, and the places of the marks. Pure. */
export function replaceMarks(text: string): { readonly text: string; readonly marks: ReadonlySet<number> } {
  const marks = new Set(text.includes('?') ? marksOf(text) : []);
  if (marks.size === 0) return { text, marks };
  return { text: [...text.split('')].map((char, index) => (marks.has(index) ? STAND_IN : char)).join(''), marks };
}

/** The element without its mark; undefined where it has none. Changes the element's nodes. */
function unmarked(element: Node, marks: ReadonlySet<number>): Node | undefined {
  let parent: Node | undefined;
  for (let node: unknown = element; isNode(node); ) {
    if (node.op === '!_' && marks.has(node.start)) {
      if (!isNode(node.args)) return undefined;
      if (parent === undefined) return node.args;
      if (Array.isArray(parent.args)) parent.args[0] = node.args;
      return element;
    }
    parent = node;
    node = Array.isArray(node.args) ? node.args[0] : undefined;
  }
  return undefined;
}

/** Takes the marks out of the tree. Returns the elements that are optional, by the literal. */
export function takeMarks(root: object, marks: ReadonlySet<number>): ReadonlyMap<Node, ReadonlySet<number>> {
  const optional = new Map<Node, Set<number>>();
  if (marks.size === 0) return optional;
  for (const { node } of nodesOf(root)) {
    const literal: unknown = node;
    if (!isNode(literal) || (literal.op !== 'list' && literal.op !== 'map') || !Array.isArray(literal.args)) continue;
    for (const [index, entry] of literal.args.entries()) {
      const holder: unknown = literal.op === 'list' ? literal.args : entry;
      const at = literal.op === 'list' ? index : 0;
      if (!Array.isArray(holder) || !isNode(holder[at])) continue;
      const element = unmarked(holder[at], marks);
      if (element === undefined) continue;
      holder[at] = element;
      optional.set(literal, (optional.get(literal) ?? new Set()).add(index));
    }
  }
  return optional;
}
