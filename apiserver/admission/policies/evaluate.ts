// What a ValidatingAdmissionPolicy says of one request with one parameter object
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating, validator.go). Pure.

import { aggregate } from '../../../lib/aggregate.ts';
import { type CelBudget, CelEvaluationError, type CelProgram, celValue, evaluate } from '../../cel/cel.ts';
import type { policyOf } from '../../kinds/admission-policies.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { isObject } from '../../patch/json-value.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { admissionReview } from '../webhooks/review.ts';
import { authorizerOf } from './authorizer.ts';
import { policyProgram } from './programs.ts';

const MAX_MESSAGE = 5 * 1024;

type Policy = ReturnType<typeof policyOf>;

interface CompiledValidation {
  readonly program: CelProgram;
  readonly message: CelProgram | undefined;
  readonly fixedMessage: string;
  readonly reason: string;
}

export interface CompiledPolicy {
  readonly conditions: readonly CelProgram[];
  readonly variables: readonly { readonly name: string; readonly program: CelProgram }[];
  readonly validations: readonly CompiledValidation[];
  readonly annotations: readonly { readonly key: string; readonly program: CelProgram }[];
}

/** A validation that does not hold, or could not be evaluated. */
export interface Denial {
  /** Of the validation, in the policy's order. */
  readonly index: number;
  readonly message: string;
  readonly reason: string;
}

export interface Verdict {
  readonly denials: readonly Denial[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Annotations that could not be evaluated, where the policy fails for it. */
  readonly failures: readonly string[];
}

/** Compiles every expression. The policy is valid, so all of them can be. */
export function compilePolicy({ spec = {} }: Policy): CompiledPolicy {
  const params = spec.paramKind !== undefined;
  const program = (expression = '', authorizer = true): CelProgram => policyProgram(expression, { params, authorizer });
  return {
    conditions: (spec.matchConditions ?? []).map(({ expression }) => program(expression)),
    variables: (spec.variables ?? []).map(({ name = '', expression }) => ({ name, program: program(expression) })),
    validations: (spec.validations ?? []).map(({ expression = '', message = '', messageExpression = '', reason }) => ({
      program: program(expression),
      message: messageExpression === '' ? undefined : program(messageExpression, false),
      fixedMessage: message.trim() === '' ? `failed expression: ${expression.trim()}` : message.trim(),
      reason: reason ?? 'Invalid',
    })),
    annotations: (spec.auditAnnotations ?? []).map(({ key = '', valueExpression }) => ({
      key,
      program: program(valueExpression),
    })),
  };
}

/** What expressions see of a request, but for parameters and the policy's own variables. */
export function requestVariables(
  attributes: AdmissionAttributes,
  namespace: KubeObject | undefined,
): Readonly<Record<string, unknown>> {
  const { request } = admissionReview('v1', attributes.requestId, attributes);
  const { object, oldObject, ...rest } = isObject(request) ? request : {};
  const { managedFields: _fields, ...metadata } = namespace?.metadata ?? {};
  return {
    object: celValue(object ?? null),
    oldObject: celValue(oldObject ?? null),
    request: celValue(rest),
    authorizer: authorizerOf(attributes),
    namespaceObject: celValue(
      namespace === undefined ? null : { metadata, spec: namespace['spec'], status: namespace['status'] },
    ),
  };
}

/** The policy's variables, each evaluated when it is first read. */
function lazyVariables(policy: CompiledPolicy, outer: Record<string, unknown>): object {
  const values = {};
  outer['variables'] = values;
  for (const { name, program } of policy.variables) {
    let known: { readonly value: unknown } | undefined;
    const get = (): unknown => {
      known ??= { value: program.run(outer) };
      return known.value;
    };
    Object.defineProperty(values, name, { get, enumerable: true });
  }
  return values;
}

const failed = ({ expression }: CelProgram, error: CelEvaluationError): string =>
  `expression '${expression}' resulted in error: ${error.message}`;

/** Evaluates; an error is returned as text. */
function tryEvaluate(
  program: CelProgram,
  variables: Readonly<Record<string, unknown>>,
  budget: CelBudget,
): { readonly value?: unknown; readonly error?: string } {
  try {
    return { value: evaluate(program, variables, budget) };
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return { error: failed(program, error) };
  }
}

function messageOf(validation: CompiledValidation, variables: Record<string, unknown>, budget: CelBudget): string {
  if (validation.message === undefined) return validation.fixedMessage;
  const { value } = tryEvaluate(validation.message, variables, budget);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' || text.length > MAX_MESSAGE || text.includes('\n') ? validation.fixedMessage : text;
}

const NOTHING: Verdict = { denials: [], annotations: [], failures: [] };

/** `failOpen`: the policy's failurePolicy is Ignore, and what cannot be evaluated denies nothing. */
export function judge(
  policy: CompiledPolicy,
  request: Readonly<Record<string, unknown>>,
  params: KubeObject | undefined,
  failOpen: boolean,
  budget: CelBudget,
): Verdict {
  const variables: Record<string, unknown> = { ...request, params: celValue(params ?? null) };
  lazyVariables(policy, variables);
  const conditions = policy.conditions.map((program) => tryEvaluate(program, variables, budget));
  if (conditions.some(({ value }) => value === false)) return NOTHING;
  const broken = conditions.flatMap(({ error }) => error ?? []);
  if (broken.length > 0) {
    const message = aggregate(broken);
    return failOpen ? NOTHING : { ...NOTHING, denials: [{ index: 0, message, reason: 'Invalid' }] };
  }
  const denials = policy.validations.flatMap((validation, index): Denial[] => {
    const { value, error } = tryEvaluate(validation.program, variables, budget);
    if (error !== undefined) return failOpen ? [] : [{ index, message: error, reason: 'Invalid' }];
    if (value === true) return [];
    return [{ index, message: messageOf(validation, variables, budget), reason: validation.reason }];
  });
  const annotations: { key: string; value: string }[] = [];
  const failures: string[] = [];
  for (const { key, program } of policy.annotations) {
    const { value, error } = tryEvaluate(program, variables, budget);
    if (error !== undefined) {
      if (!failOpen) failures.push(error);
    } else if (typeof value === 'string') {
      if (value.trim() !== '') annotations.push({ key, value: value.trim() });
    } else if (value !== null) {
      failures.push(
        `valueExpression '${program.expression}' resulted in unsupported return type: ${typeof value}. Return type must be either string or null.`,
      );
    }
  }
  return { denials, annotations, failures };
}
