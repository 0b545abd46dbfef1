// Expressions of an AuthenticationConfiguration: `claims` are those of a token, `user` is whom it was mapped to
// (k8s.io/apiserver/pkg/authentication/cel). Numbers of claims are doubles, as upstream reads them.

import { goQuote } from '../../../lib/go-words.ts';
import { setOwn } from '../../../lib/own-property.ts';
import { CelBudget, CelEvaluationError, type CelProgram, celEnvironment, compile, evaluate } from '../../cel/cel.ts';
import { escapeField } from '../../crd/cel-types.ts';
import type { JsonObject } from '../../patch/json-value.ts';
import type { Caller } from '../attributes.ts';
import { TokenError } from '../tokens.ts';

const USER = 'kubernetes.UserInfo';

class UserInfo {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: unknown;
  constructor({ name, uid = '', groups, extra = {} }: Caller) {
    this.username = name;
    this.uid = uid;
    this.groups = groups;
    this.extra = mapValue(extra);
  }
}

let ofClaims: ReturnType<typeof celEnvironment> | undefined;
let ofUsers: ReturnType<typeof celEnvironment> | undefined;

/** Throws CelCompileError. */
export function claimsProgram(expression: string): CelProgram {
  ofClaims ??= celEnvironment({ claims: 'map<string, dyn>' });
  return compile(expression, ofClaims);
}

/** Throws CelCompileError. */
export function userProgram(expression: string): CelProgram {
  ofUsers ??= celEnvironment({ user: USER }, (types) => {
    types.registerType(USER, {
      ctor: UserInfo,
      fields: { username: 'string', uid: 'string', groups: 'list<string>', extra: 'map<string, list<string>>' },
    });
  });
  return compile(expression, ofUsers);
}

/** A map whose keys can be selected by their escaped names, too (`claims.foo__dot__bar`); these are not among its keys. */
function mapValue(json: object): Record<string, unknown> {
  const map: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(json)) setOwn(map, key, toCel(value));
  for (const key of Object.keys(map)) {
    const escaped = escapeField(key);
    if (escaped === undefined || Object.hasOwn(map, escaped)) continue;
    Object.defineProperty(map, escaped, { value: toCel(Reflect.get(json, key)) });
  }
  return map;
}

function toCel(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(toCel);
  return typeof json === 'object' && json !== null ? mapValue(json) : json;
}

/** What the expressions of one token may cost together. */
export class TokenEvaluation {
  readonly #budget = new CelBudget();
  readonly #claims: JsonObject;
  #value: unknown;

  constructor(claims: JsonObject) {
    this.#claims = claims;
  }

  /** Throws TokenError, which says that `what` failed. */
  ofClaims(program: CelProgram, what: string): unknown {
    this.#value ??= mapValue(this.#claims);
    return this.#run(program, { claims: this.#value }, what);
  }

  ofUser(program: CelProgram, user: Caller, what: string): unknown {
    return this.#run(program, { user: new UserInfo(user) }, what);
  }

  #run(program: CelProgram, variables: Readonly<Record<string, unknown>>, what: string): unknown {
    try {
      return evaluate(program, variables, this.#budget);
    } catch (error) {
      if (!(error instanceof CelEvaluationError)) throw error;
      const why = `expression '${program.expression}' resulted in error: ${error.message}`;
      throw new TokenError(`oidc: error evaluating ${what}: ${why}`);
    }
  }
}

/** A string, or a list of strings, without empty ones; null is none of them. Throws TokenError. */
export function stringsOf(value: unknown, what: string): string[] {
  if (value === null) return [];
  const list: unknown = typeof value === 'string' ? [value] : value;
  if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) {
    throw new TokenError(`oidc: error evaluating ${what}: expression must return a string or a list of strings`);
  }
  return list.filter((one) => one !== '');
}

/** Throws TokenError. */
export function stringOf(value: unknown, claim: string): string {
  if (typeof value === 'string') return value;
  throw new TokenError(
    `oidc: error evaluating ${claim} claim expression: ${claim} claim expression must return a string`,
  );
}

/** Throws TokenError for a rule that does not hold. */
export function checkRule(result: unknown, { expression }: CelProgram, message: string, what: string): void {
  if (typeof result !== 'boolean') {
    throw new TokenError(`oidc: error evaluating ${what}: validation expression must return a boolean`);
  }
  if (!result)
    throw new TokenError(`oidc: error evaluating ${what}: validation expression '${expression}' failed: ${message}`);
}

export const quotedList = (list: readonly string[]): string => `[${list.map(goQuote).join(' ')}]`;
