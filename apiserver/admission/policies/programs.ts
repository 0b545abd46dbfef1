// The expressions of ValidatingAdmissionPolicies as compiled CEL: `object`, `oldObject`, `request`, `namespaceObject`,
// `variables`, `authorizer`, and `params` where the policy has a paramKind. Knows no policy.

import { type CelProgram, celEnvironment, compile } from '../../cel/cel.ts';
import { AUTHORIZER_TYPE, registerAuthorizer } from './authorizer.ts';

type Environment = ReturnType<typeof celEnvironment>;

const NAMES = ['object', 'oldObject', 'request', 'namespaceObject', 'variables'];

/** What an expression may name beside the request. */
export interface Scope {
  readonly params: boolean;
  /** Messages are made without it. */
  readonly authorizer: boolean;
}

const environments = new Map<string, Environment>();

function environment({ params, authorizer }: Scope): Environment {
  const key = `${params} ${authorizer}`;
  let made = environments.get(key);
  if (made === undefined) {
    const names = params ? [...NAMES, 'params'] : NAMES;
    const variables = Object.fromEntries(names.map((name) => [name, 'dyn']));
    made = authorizer
      ? celEnvironment({ ...variables, authorizer: AUTHORIZER_TYPE }, registerAuthorizer)
      : celEnvironment(variables);
    environments.set(key, made);
  }
  return made;
}

/** Throws CelCompileError. */
export function policyProgram(expression: string, scope: Scope): CelProgram {
  return compile(expression, environment(scope));
}
