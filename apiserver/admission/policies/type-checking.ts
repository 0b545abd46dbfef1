// Checks a policy's expressions against the schemas of the kinds that it matches, for `status.typeChecking`: warnings, which change nothing
// of what the policy does. As k8s.io/apiserver/pkg/admission/plugin/policy/validating, typechecking.go. Pure.

import type { ExpressionWarning } from 'kubernetes-types/admissionregistration/v1';
import { setOwn } from '../../../lib/own-property.ts';
import { CelCompileError, celEnvironment, compile } from '../../cel/cel.ts';
import { CelTypes } from '../../crd/cel-types.ts';
import type { JsonSchema } from '../../crd/types.ts';
import type { policyOf } from '../../kinds/admission-policies.ts';
import { registerRequest, variableType, withVariables } from './check.ts';
import { onlyNamed } from './kind-schemas.ts';

type Environment = ReturnType<typeof celEnvironment>;
type PolicySpec = NonNullable<ReturnType<typeof policyOf>['spec']>;

interface Rule {
  readonly apiGroups?: readonly string[] | undefined;
  readonly apiVersions?: readonly string[] | undefined;
  readonly resources?: readonly string[] | undefined;
}

export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The kinds that there are. */
export interface KindSource {
  /** Of a resource by its plural. */
  kindOf(group: string, version: string, resource: string): Kind | undefined;
  schemaOf(kind: Kind): JsonSchema | undefined;
}

/** No more kinds are checked for a policy. */
const MAX_KINDS = 10;

const printed = ({ group, version, kind }: Kind): string => `${group}/${version}, Kind=${kind}`;

function compare(a: Kind, b: Kind): number {
  const order = (x: string, y: string): number => (x < y ? -1 : x > y ? 1 : 0);
  return order(a.group, b.group) || order(a.version, b.version) || order(a.kind, b.kind);
}

/** The kinds of the rules that name groups and versions, by group, version and kind. */
export function kindsToCheck({ matchConstraints }: PolicySpec, source: KindSource): Kind[] {
  const found = new Map<string, Kind>();
  const sorted = (): Kind[] => [...found.values()].toSorted(compare);
  const rules: readonly Rule[] = matchConstraints?.resourceRules ?? [];
  for (const { apiGroups = [], apiVersions = [], resources = [] } of rules) {
    if ([...apiGroups, ...apiVersions].some((one) => one.includes('*'))) continue;
    let count = 0;
    for (const group of apiGroups.toSorted()) {
      for (const version of apiVersions.toSorted()) {
        for (const resource of resources.filter((one) => !/[*/]/.test(one)).toSorted()) {
          const kind = source.kindOf(group, version, resource);
          if (kind === undefined) continue;
          found.set(printed(kind), kind);
          if (++count === MAX_KINDS) return sorted();
        }
      }
    }
  }
  return sorted();
}

function paramsKind({ paramKind }: PolicySpec): Kind | undefined {
  if (paramKind === undefined) return undefined;
  const { apiVersion = '', kind = '' } = paramKind;
  const parts = apiVersion.split('/');
  if (parts.length > 2) return undefined;
  const [group = '', version = ''] = parts.length === 1 ? ['', apiVersion] : parts;
  return { group, version, kind };
}

/** All names in the policy's expressions: no other field is read. */
function wordsOf({ variables = [], validations = [] }: PolicySpec): ReadonlySet<string> {
  const texts = [
    ...variables.map(({ expression = '' }) => expression),
    ...validations.flatMap(({ expression = '', messageExpression = '' }) => [expression, messageExpression]),
  ];
  return new Set(texts.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []));
}

/** An environment in which `object`, `oldObject` and `params` have types. Upstream's names of types end in a number, too. */
function typedEnvironment(spec: PolicySpec, kind: Kind, object: JsonSchema, params: JsonSchema | undefined) {
  const words = wordsOf(spec);
  const declared: Record<string, string> = {};
  const environment = celEnvironment({}, (types) => {
    const celTypes = new CelTypes(types, { readReserved: true });
    declared['object'] = celTypes.typeOf(onlyNamed(object, words), false, `${kind.kind}1`).name;
    declared['oldObject'] = declared['object'];
    Object.assign(declared, registerRequest(types, celTypes));
    if (params !== undefined) {
      const name = `${spec.paramKind?.kind ?? ''}2`;
      declared['params'] = celTypes.typeOf(onlyNamed(params, words), false, name).name;
    }
  });
  for (const [name, type] of Object.entries(declared)) environment.registerVariable(name, type);
  return environment;
}

/** Undefined where nothing is wrong. `type`: the result's, "dyn" for an expression that does not compile. */
function check(expression: string, environment: Environment): { readonly type: string; readonly issues?: string } {
  try {
    return { type: compile(expression, environment).checkedType };
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return { type: 'dyn', issues: error.message };
  }
}

/** The environment of one kind with the policy's variables; a step for each of them. */
function* environmentOf(kind: Kind, spec: PolicySpec, source: KindSource): Generator<void, Environment | undefined> {
  const object = source.schemaOf(kind);
  if (object === undefined) return undefined;
  const paramKind = paramsKind(spec);
  const params = paramKind === undefined ? undefined : source.schemaOf(paramKind);
  const base = typedEnvironment(spec, kind, object, params);
  yield;
  const fields: Record<string, string> = {};
  for (const { name = '', expression = '' } of spec.variables ?? []) {
    setOwn(fields, name, variableType(check(expression, withVariables(base, fields)).type));
    yield;
  }
  return withVariables(base, fields);
}

interface Checked {
  readonly field: string;
  readonly expression: string;
}

function expressionsOf({ validations = [] }: PolicySpec): Checked[] {
  return validations.flatMap(({ expression = '', messageExpression = '' }, index) => {
    const field = `spec.validations[${index}]`;
    const message = { field: `${field}.messageExpression`, expression: messageExpression };
    return [{ field: `${field}.expression`, expression }, ...(messageExpression === '' ? [] : [message])];
  });
}

/** A step for each expression and kind; the result is `status.typeChecking.expressionWarnings`. */
export function* typeWarnings(spec: PolicySpec, source: KindSource): Generator<void, ExpressionWarning[]> {
  const expressions = expressionsOf(spec);
  const issues = new Map<Checked, string[]>(expressions.map((one) => [one, []]));
  for (const kind of kindsToCheck(spec, source)) {
    const environment = yield* environmentOf(kind, spec, source);
    if (environment === undefined) continue;
    for (const one of expressions) {
      const found = check(one.expression, environment).issues;
      if (found !== undefined) issues.get(one)?.push(`${printed(kind)}: ${found}\n`);
      yield;
    }
  }
  return expressions.flatMap((one) => {
    const found = issues.get(one) ?? [];
    return found.length === 0 ? [] : [{ fieldRef: one.field, warning: found.join('\n') }];
  });
}
