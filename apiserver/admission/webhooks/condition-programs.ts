// The match conditions of webhooks as compiled CEL: `object`, `oldObject` and `request` are their variables. Compiled once;
// knows no webhook.

import { type CelProgram, celEnvironment, compile } from '../../cel/cel.ts';

const MAX_PROGRAMS = 1000;
let environment: ReturnType<typeof celEnvironment> | undefined;
const programs = new Map<string, CelProgram>();

/** The program of an expression. Throws CelCompileError. */
export function conditionProgram(expression: string): CelProgram {
  const known = programs.get(expression);
  if (known !== undefined) return known;
  environment ??= celEnvironment({ object: 'dyn', oldObject: 'dyn', request: 'dyn' });
  const program = compile(expression, environment);
  if (programs.size >= MAX_PROGRAMS) programs.clear();
  programs.set(expression, program);
  return program;
}
