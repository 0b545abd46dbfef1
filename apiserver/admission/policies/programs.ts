// The expressions of ValidatingAdmissionPolicies as compiled CEL: `object`, `oldObject`, `request`, `namespaceObject`,
// `variables`, and `params` where the policy has a paramKind. Knows no policy.

import { type CelProgram, celEnvironment, compile } from '../../cel/cel.ts';

type Environment = ReturnType<typeof celEnvironment>;

const NAMES = ['object', 'oldObject', 'request', 'namespaceObject', 'variables'];
const environments = new Map<boolean, Environment>();

function environment(hasParams: boolean): Environment {
  let made = environments.get(hasParams);
  if (made === undefined) {
    const names = hasParams ? [...NAMES, 'params'] : NAMES;
    made = celEnvironment(Object.fromEntries(names.map((name) => [name, 'dyn'])));
    environments.set(hasParams, made);
  }
  return made;
}

/** Throws CelCompileError. */
export function policyProgram(expression: string, hasParams: boolean): CelProgram {
  return compile(expression, environment(hasParams));
}
