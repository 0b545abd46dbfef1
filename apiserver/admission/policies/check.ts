// Checks the expressions of a policy, and the match conditions of webhooks, when they are written: `request`, `namespaceObject` and the
// policy's own variables have types, so that a field which is not there is refused. Parameters and the objects themselves have
// none: type-checking.ts does these, later. Evaluation is programs.ts.

import { setOwn } from '../../../lib/own-property.ts';
import { celEnvironment, compile } from '../../cel/cel.ts';
import { CelTypes } from '../../crd/cel-types.ts';
import { AUTHORIZER_TYPE, registerAuthorizer } from './authorizer.ts';
import { NAMESPACE, REQUEST, REQUEST_TYPES } from './kind-schemas.ts';
import type { Scope } from './programs.ts';

type Environment = ReturnType<typeof celEnvironment>;

const VARIABLES = 'kubernetes.variables';
/** For each an environment is made, which takes most of a millisecond; where there are more of them, `variables` has no type. */
const MAX_TYPED_VARIABLES = 32;

class VariablesOfPolicy {}

/** `variables` with these fields. */
export function withVariables(base: Environment, fields: Readonly<Record<string, string>>): Environment {
  const environment = base.clone();
  environment.registerType(VARIABLES, { ctor: VariablesOfPolicy, fields });
  environment.registerVariable('variables', VARIABLES);
  return environment;
}

const SIMPLE_TYPE = /^(?:bool|u?int|double|string|bytes|null|type|dyn|list|map|optional|google\.protobuf\.\w+)$/;

/** The type that a variable has for the expressions after it: objects are of any type then. Pure. */
export function variableType(type: string): string {
  return type.replaceAll(/[\w.]+/g, (name) => (SIMPLE_TYPE.test(name) ? name : 'dyn'));
}

/** Declares what every expression may name; returns the types of the variables. */
export function registerRequest(types: Environment, celTypes: CelTypes): Record<string, string> {
  registerAuthorizer(types);
  for (const [schema, name] of REQUEST_TYPES) celTypes.typeOf(schema, false, name);
  return {
    authorizer: AUTHORIZER_TYPE,
    request: celTypes.typeOf(REQUEST).name,
    namespaceObject: celTypes.typeOf(NAMESPACE).name,
  };
}

const bases = new Map<string, Environment>();

function baseOf({ params, authorizer }: Scope): Environment {
  const key = `${params} ${authorizer}`;
  const known = bases.get(key);
  if (known !== undefined) return known;
  const declared: Record<string, string> = {};
  const made = celEnvironment({}, (types) => {
    const { authorizer: type = '', ...others } = registerRequest(types, new CelTypes(types, { readReserved: true }));
    Object.assign(declared, others, authorizer ? { authorizer: type } : {});
  });
  const dynamic = ['object', 'oldObject', ...(params ? ['params'] : [])].map((name) => [name, 'dyn']);
  for (const [name = '', type = ''] of [...dynamic, ...Object.entries(declared)]) made.registerVariable(name, type);
  bases.set(key, made);
  return made;
}

/** A policy's own variables as they are declared one after the other; each may use those before it. */
export class DeclaredVariables {
  readonly #typed: boolean;
  #fields: Readonly<Record<string, string>> = {};
  readonly #environments = new Map<string, Environment>();

  /** `count`: how many the policy has. */
  constructor(count: number) {
    this.#typed = count <= MAX_TYPED_VARIABLES;
  }

  /** `type`: as `resultType` returns it; "dyn" for a variable whose expression does not compile. */
  declare(name: string, type: string): void {
    if (!this.#typed) return;
    const fields = { ...this.#fields };
    setOwn(fields, name, variableType(type));
    this.#fields = fields;
    this.#environments.clear();
  }

  environment(scope: Scope): Environment {
    const key = `${scope.params} ${scope.authorizer}`;
    let made = this.#environments.get(key);
    if (made === undefined) {
      made = this.#typed ? withVariables(baseOf(scope), this.#fields) : baseOf(scope).clone();
      if (!this.#typed) made.registerVariable('variables', 'dyn');
      this.#environments.set(key, made);
    }
    return made;
  }
}

/** The type of the expression's result. `variables`: absent where there are none. Throws CelCompileError. */
export function resultType(expression: string, scope: Scope, variables?: DeclaredVariables): string {
  return compile(expression, variables?.environment(scope) ?? baseOf(scope)).checkedType;
}

/** As upstream prints a type. Pure. */
export function printedType(type: string): string {
  return type
    .replaceAll('<', '(')
    .replaceAll('>', ')')
    .replaceAll('optional(', 'optional_type(')
    .replace(/^null$/, 'null_type');
}
