// Refuses moments that are plain numbers: what is named `now`, `at`, `startedAt`, `deadline`, `notBefore`… has one of the two
// types of lib/clock.ts, so that a time of the wall clock and one of the monotonic clock cannot be mixed; and no moment of
// one is compared with, or subtracted from, a moment of the other. Asks the compiler for types. `npm run lint` runs it; it
// changes nothing.

import { fileURLToPath } from 'node:url';
import { type BinaryExpression, type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import {
  isBinaryExpression,
  isIdentifier,
  isParameterDeclaration,
  isPrivateIdentifier,
  isPropertyDeclaration,
  isPropertySignatureDeclaration,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import { type Checker, type Type, TypeFlags } from 'typescript/unstable/sync';
import { isProduction } from './lint-lookups.ts';
import { LintProject } from './lint-project.ts';

export interface LooseTime {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** `at` is also what a parser calls its place in a text: as a local variable it may be one. */
const MOMENT = /^#?(now|at|since|until|deadline|notBefore)$|(At|Since|Until|Deadline|NotBefore)$/;
const PLACE = /^at$/;

/** "file name", as it is written there → why it may be a number. */
const ALLOWED: ReadonlyMap<string, string> = new Map([
  ['lib/clock.ts at', 'the sum that plusMs hides behind its signature'],
  ['apiserver/schema/duplicates.ts at', 'a place in a text'],
  ['apiserver/http/protobuf.ts #at', 'a place in a message'],
  ['labs/images/elf.ts at', 'a place in a file'],
  ['cli/commands/controlplane.ts leaderElectRenewDeadline', 'a duration, by the name of its flag'],
]);

/**
 * Times of a recording count from its own start, in ms: they are of neither clock, and are written so in its file.
 */
const FROM_ITS_START = /^cli\/tap\//;

interface Declared {
  readonly node: Node;
  readonly name: Node & { readonly text: string };
}

function declared(file: SourceFile): { moments: Declared[]; operations: BinaryExpression[] } {
  const moments: Declared[] = [];
  const operations: BinaryExpression[] = [];
  const visit = (node: Node): void => {
    if (
      isParameterDeclaration(node) ||
      isPropertyDeclaration(node) ||
      isPropertySignatureDeclaration(node) ||
      isVariableDeclaration(node)
    ) {
      const { name } = node;
      const named = isIdentifier(name) || isPrivateIdentifier(name);
      if (named && MOMENT.test(name.text) && !(isVariableDeclaration(node) && PLACE.test(name.text))) {
        moments.push({ node, name });
      }
    }
    if (isBinaryExpression(node) && COMPARING.has(node.operatorToken.kind)) operations.push(node);
    node.forEachChild(visit);
  };
  visit(file);
  return { moments, operations };
}

const COMPARING = new Set<SyntaxKind>([
  SyntaxKind.MinusToken,
  SyntaxKind.LessThanToken,
  SyntaxKind.LessThanEqualsToken,
  SyntaxKind.GreaterThanToken,
  SyntaxKind.GreaterThanEqualsToken,
]);

/** Whether the type is a plain number, may be one, or is a function of no arguments that returns one. */
function isPlainNumber(checker: Checker, type: Type | undefined): boolean {
  if (type === undefined) return false;
  if (type.isUnionType()) return type.getTypes().some((part) => isPlainNumber(checker, part));
  if ((type.flags & (TypeFlags.Number | TypeFlags.NumberLiteral)) !== 0) return true;
  return checker.typeToString(type) === '() => number';
}

const CLOCKS = /\b(EpochMs|MonotonicMs)\b/;

function clockOf(checker: Checker, type: Type | undefined): string | undefined {
  return type === undefined ? undefined : CLOCKS.exec(checker.typeToString(type))?.[1];
}

function timesIn({ project, root }: LintProject, name: string): LooseTime[] {
  const source = project.program.getSourceFile(name);
  if (source === undefined) return [];
  const { moments, operations } = declared(source);
  const { checker } = project;
  const file = name.slice(root.length);
  const place = (node: Node): LooseTime => ({
    file,
    line: source.text.slice(0, node.end).split('\n').length,
    text: source.text.slice(node.pos, node.end).trim(),
  });
  const types = moments.length === 0 ? [] : checker.getTypeAtLocation(moments.map((moment) => moment.name));
  const plain = moments.filter(
    (moment, index) =>
      !FROM_ITS_START.test(file) && !ALLOWED.has(`${file} ${moment.name.text}`) && isPlainNumber(checker, types[index]),
  );
  const lefts = operations.length === 0 ? [] : checker.getTypeAtLocation(operations.map(({ left }) => left));
  const rights = operations.length === 0 ? [] : checker.getTypeAtLocation(operations.map(({ right }) => right));
  const mixed = operations.filter((_, index) => {
    const [left, right] = [clockOf(checker, lefts[index]), clockOf(checker, rights[index])];
    return left !== undefined && right !== undefined && left !== right;
  });
  return [...plain.map(({ node }) => place(node)), ...mixed.map(place)];
}

/** Every such moment in the project's files that `wanted` accepts. */
export function looseTimes(project: LintProject, wanted: (file: string) => boolean): LooseTime[] {
  return project.files(wanted).flatMap((name) => timesIn(project, name));
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  using project = new LintProject(root);
  const found = looseTimes(project, isProduction);
  for (const { file, line, text } of found) {
    process.stderr.write(
      `${file}:${line}: ${text}: a moment is EpochMs or MonotonicMs, and never one with the other\n`,
    );
  }
  process.exitCode = found.length === 0 ? 0 : 1;
}
