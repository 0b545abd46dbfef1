// Refuses `table[name]`, `table[name] = …` and `name in table` where the key is any string and the table a plain object:
// a client's `constructor` would find what every object inherits. Such code uses lib/own-property.ts, or a Map. Uses the
// compiler's types, so that lists, and keys from a fixed set, are accepted. `npm run lint` runs it; it changes
// nothing.

import { fileURLToPath } from 'node:url';
import {
  type BinaryExpression,
  type ElementAccessExpression,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { isBinaryExpression, isDeleteExpression, isElementAccessExpression } from 'typescript/unstable/ast/is';
import { type Checker, type Type, TypeFlags } from 'typescript/unstable/sync';
import { LintProject } from './lint-project.ts';

export interface Lookup {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** File → why it may. */
const ALLOWED: Readonly<Record<string, string>> = {
  'lib/own-property.ts': 'the two functions that everything else calls',
  'proto/unary.ts': 'a gRPC client inherits its methods, and the caller names them in its code',
};

const STRING_LIKE = TypeFlags.String | TypeFlags.TemplateLiteral | TypeFlags.StringMapping;

/** Whether the key can be any string, as opposed to one of a fixed set, a number or a symbol. */
function isOpen(checker: Checker, type: Type | undefined): boolean {
  if (type === undefined) return false;
  if (type.isUnionType() || type.isIntersectionType()) return type.getTypes().some((part) => isOpen(checker, part));
  if ((type.flags & TypeFlags.TypeParameter) !== 0) return isOpen(checker, checker.getBaseConstraintOfType(type));
  return (type.flags & STRING_LIKE) !== 0;
}

/** An array's elements are found by number; whatever else has an index signature or none is an object. */
function isList(checker: Checker, type: Type | undefined): boolean {
  if (type === undefined) return false;
  const bare = checker.getNonNullableType(type) ?? type;
  return checker.isArrayLikeType(bare);
}

interface Candidate {
  readonly node: ElementAccessExpression | BinaryExpression;
  readonly table: Node;
  readonly key: Node;
}

function candidates(file: SourceFile): Candidate[] {
  const found: Candidate[] = [];
  const visit = (node: Node): void => {
    if (isDeleteExpression(node) && isElementAccessExpression(node.expression)) {
      // Deletes only what is the object's own.
      visit(node.expression.expression);
      visit(node.expression.argumentExpression);
      return;
    }
    if (isElementAccessExpression(node)) {
      found.push({ node, table: node.expression, key: node.argumentExpression });
    } else if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword) {
      found.push({ node, table: node.right, key: node.left });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

function lookupsIn({ project, root }: LintProject, name: string): Lookup[] {
  const source = project.program.getSourceFile(name);
  if (source === undefined) return [];
  const all = candidates(source);
  if (all.length === 0) return [];
  const { checker } = project;
  const keys = checker.getTypeAtLocation(all.map(({ key }) => key));
  const open = all.filter((_, index) => isOpen(checker, keys[index]));
  if (open.length === 0) return [];
  const tables = checker.getTypeAtLocation(open.map(({ table }) => table));
  return open
    .filter((_, index) => !isList(checker, tables[index]))
    .map(({ node }) => ({
      file: name.slice(root.length),
      line: source.text.slice(0, node.end).split('\n').length,
      text: source.text.slice(node.pos, node.end).trim(),
    }));
}

/** Every such look-up in the project's files that `wanted` accepts. */
export function unsafeLookups(project: LintProject, wanted: (file: string) => boolean): Lookup[] {
  return project
    .files((file) => wanted(file) && !Object.hasOwn(ALLOWED, file))
    .flatMap((name) => lookupsIn(project, name));
}

/** What runs as nodelet; tests and scripts use their own names. */
export function isProduction(file: string): boolean {
  return !/^(test|scripts|proto\/gen)\/|^vitest\.config/.test(file);
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  using project = new LintProject(root);
  const found = unsafeLookups(project, isProduction);
  for (const { file, line, text } of found) {
    process.stderr.write(`${file}:${line}: ${text}: any string may be the key; use getOwn or setOwn, or a Map\n`);
  }
  process.exitCode = found.length === 0 ? 0 : 1;
}
