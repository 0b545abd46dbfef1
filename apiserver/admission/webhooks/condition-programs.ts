// The match conditions of webhooks as compiled CEL: `object`, `oldObject`, `request` and `authorizer` are their variables, and
// `namespaceObject`, which is null, as upstream. Compiled once; knows no webhook.

import { type CelProgram, celEnvironment, compile } from '../../cel/cel.ts';
import { AUTHORIZER_TYPE, registerAuthorizer } from '../policies/authorizer.ts';

const MAX_PROGRAMS = 1000;
let environment: ReturnType<typeof celEnvironment> | undefined;
const programs = new Map<string, CelProgram>();

/** The program of an expression. Throws CelCompileError. */
export function conditionProgram(expression: string): CelProgram {
  const known = programs.get(expression);
  if (known !== undefined) return known;
  environment ??= celEnvironment(
    { object: 'dyn', oldObject: 'dyn', request: 'dyn', namespaceObject: 'dyn', authorizer: AUTHORIZER_TYPE },
    registerAuthorizer,
  );
  const program = compile(expression, environment);
  if (programs.size >= MAX_PROGRAMS) programs.clear();
  programs.set(expression, program);
  return program;
}
